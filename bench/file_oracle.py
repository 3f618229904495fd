"""What a venue's file says of one request, read anew: it shares nothing with the gateway but the file.

Its own reader of TOML tables, of templates, of JSON and of each filter. A signature stands as SEAL in what
is expected; what stands there in truth is verified with the key.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from bench.file_filters import FILTERS, NoAnswerError, Table, mac_of, read_signed, value_at
from venues.through import FOLDER

SEAL = b"\0SEAL\0"
NOW_MS = 1_790_000_000_387
NONCES = {
    "none": "",
    "s": "1790000000",
    "s8": "1790000000.38700000",
    "ms": "1790000000387",
    "us": "1790000000387000",
    "ns": "1790000000387000000",
    "uuid": "6f1c2f6e-0000-4000-8000-00000000cafe",
    "hex": "00112233445566778899aabbccddeeff",
}
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[^{}]+")


def table_of(name: str) -> Table:
    """Return the tables of a venue's file, with those of the file that it is like."""
    own = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))
    return _added(table_of(own["like"]), own) if "like" in own else own


def _added(base: Table, own: Table) -> Table:
    whole = dict(base)
    for key, value in own.items():
        if not key.endswith("+"):
            whole[key] = value
        elif isinstance(value, dict):
            whole[key[:-1]] = _added(whole.get(key[:-1], {}), value)
        else:
            whole[key[:-1]] = [*value, *whole.get(key[:-1], [])]
    return whole


@dataclass(frozen=True)
class Key:
    """A key: its texts, how its secret signs a message (HMAC and hashes), or what verifies a signature."""

    kind: str
    secret: str
    verify: Callable[[bytes, bytes], bool] | None = None  # of a message and a raw signature
    api_key: str = 'KEY"4f\\0e{}'
    passphrase: str = "pass{signature}"
    uid: str = "17"


@dataclass(frozen=True)
class Place:
    """A venue and one kind of its keys: `whole` is its file, `signing` the tables for that kind."""

    name: str
    whole: Table
    signing: Table
    key: Key

    @property
    def prefix(self) -> str:
        return str(self.whole.get("prefix", ""))


@dataclass(frozen=True)
class Asked:
    """A request: `path` with the prefix, the query without its `?`."""

    method: str
    path: bytes
    query: bytes
    body: bytes


class Expected:
    """What must be sent for a request. Raises NoAnswerError where nothing may.

    `query`, `members` and `fields` have SEAL where the signature stands. `members` are those of a JSON body,
    as they are written, None where the body must stay as it came. What is signed may have the body as it was
    sent.
    """

    def __init__(self, place: Place, host: str, asked: Asked, sent_body: bytes) -> None:
        signing, key, prefix = place.signing, place.key, place.prefix
        self._signing, self._key, self._asked = signing, key, asked
        body = asked.body
        looks = body.lstrip(b"\xef\xbb\xbf\xfe\xff\x00\t\n\x0b\x0c\r ")[:1] in (b"{", b"[")
        self._kind = "empty" if not body else "json" if looks else "form"
        path = asked.path[len(prefix) :]
        self._values = {
            "timestamp": _stamp(signing, NOW_MS),
            "expires": _stamp(signing, NOW_MS + 1000 * signing.get("expires_s", 0)),
            "nonce": NONCES[signing.get("nonce", "none")].encode(),
            "path": path,
            "method": asked.method.encode(),
            "host": host.encode(),
            "api_key": key.api_key.encode(),
            "secret": key.secret.encode(),
            "passphrase": key.passphrase.encode(),
            "uid": key.uid.encode(),
            "recv_window": signing.get("recv_window", "").encode(),
            "signature": SEAL,
        }
        if "by_route" in signing:
            name = signing["by_route"].get(f"{asked.method} {path.decode()}")
            if name is None:
                raise NoAnswerError("no name for its route")
            self._values["by_route"] = name.encode()
        self._put_query(host, prefix)
        self._put_body(sent_body)
        self.message = self._text(self._picked(signing.get("message", "")))
        self.query = self._values["query"] + self._text(self._picked(signing.get("query_end", "")))
        self.fields = {
            name.lower().encode(): self._text(text)
            for name, text in signing.get("headers", {}).items()
            if text
        }

    def _put_query(self, host: str, prefix: str) -> None:
        signing = self._signing
        parts = self._asked.query.split(b"&")
        strips = [name.encode() for name in signing.get("strips", ())]
        kept = [one for one in parts if unquote_to_bytes(one.partition(b"=")[0]) not in strips]
        self._values["query"] = self._asked.query if kept == parts else b"&".join(filter(None, kept))
        query = self._with_additions(self._values["query"])
        if signing.get("sorts_query"):
            query = FILTERS["sorted"](query)
        target = b"%b?%b" % (self._values["path"], query) if query else self._values["path"]
        self._values |= {"query": query, "target": target, "url": f"{host}{prefix}".encode() + target}

    def _with_additions(self, query: bytes) -> bytes:
        template = self._picked(self._signing.get("query", ""))
        if not template or re.search(r"\{query[|}]", template):
            return self._text(template) if template else query
        return query + (b"&" if query else b"") + self._text(template)

    def _put_body(self, sent_body: bytes) -> None:
        signing, body = self._signing, self._asked.body
        table = signing.get("json")
        is_object = self._kind == "json" or (
            self._kind == "empty" and self._asked.method in signing.get("json_empty", ())
        )
        self.members: list[bytes] | None = None
        self._values["body"] = body
        if table is None:
            return
        if not is_object:
            if body or not any(self._picked(signing.get(key, "")) for key in ("query", "query_end")):
                raise NoAnswerError("no JSON object to put members into")
            return
        kept = self._kept(body)
        is_late = "{signature" in json.dumps(table)
        self._values["body"] = b"{%b}" % b",".join(kept) if is_late else sent_body
        self.members = [] if "*" in table else kept
        for name, value in table.items():
            if name == "*":
                self.members = [*self.members, *kept]
            elif (written := self._member(name, value)) is not None:
                self.members = [*self.members, written]

    def _kept(self, body: bytes) -> list[bytes]:
        """Return the bot's members, as they are written. None may be read as one of the gateway's."""
        if not body:
            return []
        came = read_signed(body, may_repeat=True)
        if came.kind != "{":
            raise NoAnswerError("the body is no object")
        strips = self._signing.get("strips", ())
        own = {name.removesuffix("?").casefold() for name in self._signing["json"]}
        kept = [(name, raw) for name, raw in came.written if name not in strips]
        if any(name.casefold().strip("\0 ") in own for name, _ in kept):
            raise NoAnswerError("a member of the bot could be read as the gateway's")
        return [raw for _, raw in kept]

    def _member(self, name: str, value: object) -> bytes | None:
        written = self._written(value)
        if written in (b'""', b"") and name.endswith("?"):
            return None
        if not written:
            raise NoAnswerError(f"{name} has no value")
        return json.dumps(name.removesuffix("?")).encode() + b":" + written

    def _written(self, value: object) -> bytes:
        """Return a value of a JSON table as JSON."""
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return b"[%b]" % b",".join(map(self._written, value))
        if not isinstance(value, str):
            return json.dumps(value).encode()
        text = self._text(value)
        if value.endswith("|bare}"):
            return read_signed(text).raw if text else text
        try:
            string = json.dumps(text.decode(), ensure_ascii=False).encode()
            return string.replace(json.dumps(SEAL.decode())[1:-1].encode(), SEAL)
        except UnicodeDecodeError:
            raise NoAnswerError("what is signed is not UTF-8") from None

    def _object(self, table: Table) -> bytes:
        """Return a JSON table as an object; at `*` stand the members of another one, as they are written."""
        around = [b"{", b"}"]
        members = []
        for name, value in table.items():
            if name != "*":
                members.append(self._member(name, value))
            elif text := self._text(value):
                whole = read_signed(text)
                own = {one.casefold() for one in table}
                if whole.kind != "{" or any(one.casefold() in own for one in whole.members):
                    raise NoAnswerError("no object of the bot's own members")
                before, _, behind = text.partition(whole.raw)
                members.append(whole.raw[1:-1] if whole.members else None)
                around = [before + b"{", b"}" + behind]
        return b",".join(one for one in members if one is not None).join(around)

    def _picked(self, choice: str | Mapping[str, str]) -> str:
        if isinstance(choice, str):
            return choice
        cases = (self._asked.method, self._kind, *(("body",) if self._kind != "empty" else ()), "*")
        return next((choice[case] for case in cases if case in choice), "")

    def _text(self, template: str) -> bytes:
        found = b""
        for piece in _PIECE.finditer(template):
            if piece[0] in ("{{", "}}"):
                found += piece[0][:1].encode()
            elif piece[1] is None:
                found += piece[0].encode()
            else:
                found += self._filtered(*piece[1].split("|"))
        return found

    def _filtered(self, name: str, *filters: str) -> bytes:
        value = self._values[name] if name in self._values else self._part(self._signing["parts"][name])
        for one in filters:
            value = mac_of(self._signing, self._key.secret, value) if one == "hmac" else FILTERS[one](value)
        return value

    def _part(self, part: Any) -> bytes:
        if isinstance(part, str) or not {"of", "each", "json"} & part.keys():
            return self._text(self._picked(part))
        if "json" in part:
            return self._written(part["json"])
        if "each" in part:
            return self._of_each(self._text(self._picked(part["each"])), self._picked(part["then"]))
        text = self._text(self._picked(part["of"]))
        if "then" in part:
            return self._text(self._picked(part["then"])) if text else b""
        if "finds" in part:
            found = re.search(part["finds"].encode(), text)
            return found[1] or b"" if found else b""
        return value_at(text, part["at"]) if text else b""

    def _of_each(self, text: bytes, then: str) -> bytes:
        """Return a text for each member of a list; what is no list is its only one."""
        is_list = text.lstrip(b" \t\n\r").startswith(b"[")
        found = b""
        for item in [one.raw for one in read_signed(text).items] if is_list else [text] if text else []:
            self._values["item"] = item
            found += self._text(then)
        return found


def _stamp(signing: Table, now_ms: int) -> bytes:
    form = signing.get("timestamp", "ms")
    if form in ("ms", "s", "us", "ns"):
        return b"%d" % {"ms": now_ms, "s": now_ms // 1000, "us": now_ms * 1000, "ns": now_ms * 10**6}[form]
    raise NoAnswerError(f"a stamp as {form} is not told here")


def seals_in(expected: bytes, sent: bytes) -> list[bytes] | None:
    """Return what stands where the signature is expected; None where all else is not as expected."""
    pieces = expected.split(SEAL)
    found = re.fullmatch(rb"([!-~]+?)".join(map(re.escape, pieces)), sent, re.DOTALL)
    return None if found is None else list(found.groups())
