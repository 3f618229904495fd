"""Let ccxt sign random requests, with a real and a dummy key.

`python -m venues.oracle SEED ROUNDS [VENUE...]`, in the folder of the tests. `at=URL` as the first VENUE lets
ccxt sign for that address in the place of the exchange's. With `calls VENUE...` it
prints each method and path that ccxt knows of a venue, and whether it signs them; with `errors VENUE...` each
code of an error, what ccxt makes of it, and what its source says of it.

A program of its own, as importing ccxt is slow and brings much along. It prints JSON lines, one per request.
Its clock stands still, so that what ccxt signs can be signed again.
"""

import base64
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random  # noqa: TID251 - seeded
from typing import Any
from urllib.parse import urlsplit

import ccxt  # type: ignore[import-untyped]

from rig.private_keys import base58, from_base58
from venues.calls import GONE, NAMES, OF_EVERY_KIND, VENUES, Calls
from venues.private_keys import FORMS, from_base64, key_of, public_of

NOW_MS = 1_790_000_000_387  # what the gateway signs by; the bot's clock is behind
BOT_MS = NOW_MS - 61_234
GATEWAY = "http://127.0.0.1:8787"  # where a bot's class thinks that the exchange is

Params = dict[str, Any]


_UUIDS = ("6f1c2f6e-0000-4000-8000-00000000cafe", "11111111-0000-4000-8000-000000000000")
_HEXES = ("5ea1ca7e0123456789abcdef00c0ffee", "11111111111111111111111111111111")


def exchange_with(calls: Calls, *, is_dummy: bool) -> Any:
    """Return one of ccxt's exchanges, whose clock stands still."""
    name = "dummy" if is_dummy else "real"
    secret = f"{name} secret {calls.exchange} 0123456789"
    if calls.kind != "hmac":
        secret = FORMS[calls.secret](key_of(calls.kind, name))
    elif calls.secret == "base64":
        secret = base64.b64encode(secret.encode()).decode()
    exchange = getattr(ccxt, calls.exchange)(
        {
            "apiKey": "account-dummy"
            if calls.api_key.startswith("account") and is_dummy
            else ("dummy" if is_dummy else calls.api_key),
            "secret": secret,
            "privateKey": secret,
            "password": f"{name} pass",
            **dict.fromkeys(("uid", "accountId", "walletAddress"), f"{name}-memo"),
            "login": f"{name}-login",
            "options": dict(calls.options or {}),
        }
    )
    exchange.operations = calls.operations
    if not is_dummy:
        exchange.options.update(calls.real_options or {})
    now_ms = BOT_MS if is_dummy else NOW_MS
    exchange.milliseconds = lambda: now_ms
    exchange.seconds = lambda: now_ms // 1000
    exchange.microseconds = lambda: now_ms * 1000
    if calls.exchange == "coinbaseinternational":
        exchange.nonce = (
            exchange.milliseconds
        )  # any new text will do; ccxt takes seconds, of deribit milliseconds
    exchange.uuid = lambda: _UUIDS[is_dummy]
    exchange.random_bytes = lambda size: _HEXES[is_dummy][: 2 * size]
    if calls.last and not is_dummy:
        exchange.urlencode = _ending_in(calls.last, exchange.urlencode)
    exchange.uuid16 = exchange.uuid22 = lambda *_: "0123456789abcdef"  # ids that ccxt gives orders
    if calls.exchange == "cryptocom" and not is_dummy:
        _keep_id(exchange)
    if calls.exchange == "lbank":  # a nonce there; and of a private key's text, ccxt leaves out the last line
        exchange.uuid22, exchange.uuid16 = lambda: _HEXES[is_dummy][:16], lambda: _HEXES[is_dummy][16:]
        exchange.convert_secret_to_pem = lambda _: FORMS["pem"](key_of("rsa", name))
    if calls.exchange == "zaif":  # whose nonce has the noise of a float behind its milliseconds
        exchange.custom_nonce = lambda: f"{now_ms // 1000}.{now_ms % 1000:03}00000"
    return exchange


def _ending_in(last: tuple[str, ...], urlencode: Callable[..., str]) -> Callable[..., str]:
    """Put parameters of these names behind the others, where ccxt then signs them."""

    def encode(params: Params, *rest: Any) -> str:
        moved = {name: params[name] for name in last if name in params}
        return urlencode({name: params[name] for name in params if name not in moved} | moved, *rest)

    return encode


def _keep_id(exchange: Any) -> None:
    """Let Crypto.com's `id`, of which ccxt makes a second nonce, be the bot's own, as the dummy sends it."""
    mac, write = exchange.hmac, exchange.json
    own, other = str(NOW_MS), str(BOT_MS)
    exchange.hmac = lambda text, *rest: mac(text.replace(own.encode(), other.encode(), 1), *rest)
    exchange.json = lambda data: write(data | {"id": other})


def move(exchange: Any, base: str) -> None:
    """Let a class think that its exchange is at another address."""

    def moved(urls: Any) -> Any:
        if isinstance(urls, dict):
            return {name: moved(one) for name, one in urls.items()}
        if not isinstance(urls, str):
            return urls
        return re.sub(r"^https://[^/]+", base, urls) if "://" in urls else urlsplit(base).netloc

    exchange.hostname = urlsplit(base).netloc
    exchange.urls["api"] = moved(exchange.urls["api"])
    if "hostnames" in exchange.urls:
        exchange.urls["hostnames"] = moved(exchange.urls["hostnames"])


def cases(venue: str, seed: int, rounds: int, base: str = "") -> Iterator[dict[str, Any]]:
    """Yield requests: as ccxt signs them, and as it does with a dummy key and a clock that is behind."""
    calls, chance = OF_EVERY_KIND[venue], Random(f"{venue} {seed}")
    real = exchange_with(calls, is_dummy=False)
    key = ("", real.apiKey) if calls.is_token else (real.apiKey, real.secret)
    # Where a venue takes HMAC keys as well, a bot may have a dummy of either kind.
    kinds = (calls, replace(calls, kind="hmac")) if ":" in venue else (calls,)
    dummies = [exchange_with(one, is_dummy=True) for one in kinds]
    if base:
        move(real, base)
        for dummy in dummies:
            move(dummy, GATEWAY)
    for number in range(rounds):
        for api, method, path in calls.rows:
            params: Any = _params(calls, chance)
            if f"{method} {path}" in calls.lists:
                params = [_params(calls, chance) | {"symbol": name} for name in chance.choice(("A", "BC"))]
            case = {
                "venue": venue,
                "dummy": _sign(dummies[number % len(dummies)], path, api, method, params),
                "signed": _sign(real, path, api, method, params),
                "key": [*key, real.password, real.uid],
                "now_ms": NOW_MS,
                "uuid": _UUIDS[0],
                "hex": _HEXES[0],
            }
            if calls.kind != "hmac":
                message, signature = _proofs[-1]
                case["proof"] = {
                    "public": public_of(key_of(calls.kind, "real")),
                    "message": message.hex(),
                    "signature": signature.hex(),
                }
            yield case


_proofs: list[tuple[bytes, bytes]] = []  # what ccxt signed with private keys, and the raw signatures


def note_proofs() -> None:
    """Let ccxt note each message that it signs with a private key, and its signature, in `_proofs`."""

    def noting(own: Callable[..., Any], raw: Callable[[Any], bytes]) -> Callable[..., Any]:
        def sign(message: str | bytes, *arguments: Any, **named: Any) -> Any:
            made = own(message, *arguments, **named)
            _proofs.append((message.encode() if isinstance(message, str) else message, raw(made)))
            return made

        return sign

    def both(made: dict[str, str]) -> bytes:
        return bytes.fromhex(made["r"].rjust(64, "0") + made["s"].rjust(64, "0"))

    # ccxt loses zeros at the beginning of what it writes and reads in base58.
    ccxt.Exchange.binary_to_base58 = staticmethod(base58)
    ccxt.Exchange.base58_to_binary = staticmethod(from_base58)
    for name, raw in (("eddsa", from_base64), ("rsa", from_base64), ("ecdsa", both)):
        setattr(ccxt.Exchange, name, staticmethod(noting(getattr(ccxt.Exchange, name), raw)))


def _params(calls: Calls, chance: Random) -> Params:
    count = chance.choice((0, 1, 2, 3, 6))
    params = {name: chance.choice(calls.values) for name in chance.sample(NAMES, count)}
    if "symbol" in params:
        params["symbol"] = str(params["symbol"])  # ccxt's poloniex takes no number there
    if calls.exchange == "ascendex":
        params |= {"account-group": 4, "account-category": chance.choice(("cash", "margin"))}
    return params


def _sign(exchange: Any, path: str, api: Any, method: str, params: Any) -> dict[str, Any]:
    exchange.options.pop("lastNonce", None)  # each is the first of its millisecond
    if path in exchange.operations:
        agent = {"agentAddress": exchange.apiKey}
        params = exchange.post_action_request(exchange.operations[path], params, agent)
    signed = exchange.sign(path, api, method, deepcopy(params))
    headers = {name: str(value) for name, value in (signed["headers"] or {}).items() if value is not None}
    return {"method": method, "url": signed["url"], "headers": headers, "body": signed["body"]}


_PROOF = re.compile('sign|authorization|secret|tapi-mac|"sig"')  # what a signed request has, and no other


def calls_of(venue: str) -> Iterator[dict[str, Any]]:
    """Yield every method and path that ccxt knows of a venue, and whether it signs them."""
    exchange = exchange_with(VENUES[venue], is_dummy=False)
    for api, method, path in _paths(exchange.api, ()):
        names = re.findall(r"\{([^}]*)\}", path)
        try:
            signed = exchange.sign(path, list(api), method, {name: f"x{at}" for at, name in enumerate(names)})
        except (ccxt.BaseError, KeyError, TypeError, AttributeError):
            continue  # a path of another venue's, or one that wants parameters of a shape of its own
        proof = f"{signed['url']}{signed['headers']}{signed['body']}".lower()
        parts = urlsplit(signed["url"])
        call = {"venue": venue, "method": method, "path": parts.path.rstrip("/"), "host": parts.netloc}
        yield call | {"is_signed": _PROOF.search(proof) is not None}


_ENTRY = re.compile(r"(\w+) = Entry(?:\[\w+\])?\('([^']*)', ('[^']*'|\[[^]]*\]), '([A-Z]+)'")


def unified_of(venue: str) -> Iterator[dict[str, Any]]:
    """Yield each call that stands in ccxt's own functions which cancel, create or change orders."""
    exchange = exchange_with(VENUES[venue], is_dummy=False)
    kinds = [kind for kind in type(exchange).__mro__ if kind.__module__.startswith("ccxt.abstract.")]
    entries = {name: call for kind in kinds for name, *call in _ENTRY.findall(inspect.getsource(kind))}
    found = set()
    for name, function in inspect.getmembers(type(exchange), inspect.isfunction):
        verb = name.partition("_")[0]
        if verb in ("cancel", "create", "edit") and name.islower():
            words = set(re.findall(r"\w+", inspect.getsource(function)))
            found |= {(verb, *entries[word]) for word in words & entries.keys()}
    for verb, path, api, method in sorted(found):
        parts = urlsplit(_url(exchange, re.findall(r"\w+", api), method, path))
        if target := parts.path.rstrip("/"):
            yield {"venue": venue, "verb": verb, "method": method, "path": target, "host": parts.netloc}


def _url(exchange: Any, api: list[str], method: str, path: str) -> str:
    """Return the address that ccxt signs, with x0, x1 … for its placeholders; "" where it signs none."""
    names = re.findall(r"\{([^}]*)\}", path)
    try:
        signed = exchange.sign(path, api, method, {name: f"x{at}" for at, name in enumerate(names)})
    except (ccxt.BaseError, KeyError, TypeError, AttributeError):
        return ""
    return str(signed["url"])


def _paths(apis: dict[str, Any], api: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    for name, inner in apis.items():
        if name in ("get", "post", "put", "delete", "patch"):
            yield from ((api, name.upper(), path) for path in inner)
        elif isinstance(inner, dict):
            yield from _paths(inner, (*api, name))


_CODE = re.compile(r"""^ +(['"])(.+)\1: ([A-Z][A-Za-z]+),\s*(?:#\s*(.*))?$""", re.MULTILINE)


def errors_of(venue: str) -> Iterator[dict[str, Any]]:
    """Yield the codes of ccxt's tables of errors, with their comments: only there it says what they are."""
    file = inspect.getsourcefile(getattr(ccxt, VENUES[venue].exchange)) or ""
    for _, code, error, comment in _CODE.findall(Path(file).read_text("utf-8")):
        if inspect.isclass(made := getattr(ccxt, error, None)) and issubclass(made, ccxt.BaseError):
            is_late = issubclass(made, ccxt.RequestTimeout)
            yield {"venue": venue, "code": code, "is_late": is_late, "comment": comment}


_BESIDE = {"/iso": "epoch", "/epochMillis": "epochSeconds"}  # what ccxt reads of two that are the same moment


def _answering(document: Any, asked: list[str]) -> Callable[..., Any]:
    def fetch(url: str, *_: Any) -> Any:
        asked.append(url)
        return document

    return fetch


# Where ccxt would ask elsewhere by itself.
_TIME_BY = {
    **{name: {"type": "swap"} for name in ("mexc-contract", "htx-swap", "weex-contract", "zebpay-swap")},
    "coinbase": {"method": "v3PublicGetBrokerageTime"},
}


def time_of(venue: str, pointer: str) -> Iterator[dict[str, Any]]:
    """Yield where ccxt asks for the time, and whether it reads it at a JSON pointer."""
    exchange = exchange_with(VENUES[venue], is_dummy=False)
    exchange.enableRateLimit = False
    asked: list[str] = []
    read: list[Any] = []
    iso = "2026-09-21T14:13:20.387Z"
    for value in (NOW_MS, str(NOW_MS), NOW_MS // 1000, NOW_MS * 1000, NOW_MS * 1_000_000, iso):
        document: Any = value
        for name in reversed(pointer.split("/")[1:]):
            document = [document] if name == "0" else {name: document}
        if pointer in _BESIDE:
            document[_BESIDE[pointer]] = NOW_MS / 1000
        exchange.fetch = _answering(document, asked)
        try:
            read.append(exchange.fetch_time(_TIME_BY.get(venue, {})))
        except (ccxt.BaseError, TypeError, ValueError, OverflowError, OSError):
            continue
    is_read = any(moment is not None and abs(moment - NOW_MS) < 1000 for moment in read)
    yield {"venue": venue, "path": urlsplit(asked[0]).path if asked else "", "is_read": is_read}


def environments_of(venue: str, base_url: str) -> Iterator[dict[str, Any]]:
    """Yield where ccxt's sandbox and its demo have what it sends to an address, and what headers they add."""
    calls = VENUES[venue]
    plain = exchange_with(calls, is_dummy=False)
    for name, switch in (("test", "set_sandbox_mode"), ("demo", "enable_demo_trading")):
        other = exchange_with(calls, is_dummy=False)
        with suppress(ccxt.NotSupported, TypeError, KeyError):
            getattr(other, switch)(True)
            for api, method, path in calls.rows:
                (url, headers), (moved, more) = (_sent(one, api, method, path) for one in (plain, other))
                added = {one: text for one, text in more.items() if one not in headers}
                if url == base_url and (moved != url or added):
                    yield {"venue": venue, "name": name, "base_url": moved, "headers": added}
                    break


def _sent(exchange: Any, api: Any, method: str, path: str) -> tuple[str, dict[str, str]]:
    """Return the origin and the headers of a request."""
    signed = _sign(exchange, path, api, method, {})
    parts = urlsplit(signed["url"])
    return f"{parts.scheme}://{parts.netloc}", {**exchange.headers, **signed["headers"]}


_ASKED: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
    "calls": calls_of,
    "environments": environments_of,
    "errors": errors_of,
    "times": time_of,
    "unified": unified_of,
}


def main() -> None:
    seed, rounds, *wanted = sys.argv[1:]
    if seed in _ASKED:
        for row in (rounds, *wanted):
            for found in _ASKED[seed](*row.split("=")):
                print(json.dumps(found))  # noqa: T201
        return
    note_proofs()
    base = wanted.pop(0).removeprefix("at=") if wanted and wanted[0].startswith("at=") else ""
    for venue in wanted or [name for name in OF_EVERY_KIND if name not in GONE]:
        for case in cases(venue, int(seed), int(rounds), base):
            print(json.dumps(case))  # noqa: T201


if __name__ == "__main__":
    main()
