"""What `config init` prints at its end: the next two commands, and lines to paste into a bot."""

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from sealgate.config import Config, ExchangeConfig
from sealgate.config.first_read import curl_lines, first_read
from sealgate.config.sources import DEFAULT_FILE, FILE_VARIABLE


def config_option_for(file: Path) -> str:
    """Return " --config FILE" for a command, "" if it finds the file by itself."""
    is_found = file == Path(DEFAULT_FILE) and not os.environ.get(FILE_VARIABLE)
    return "" if is_found else f" --config {shlex.quote(str(file))}"


def next_steps(config: Config, file: Path, exchange: str, bot: str, *, is_new: bool) -> Iterator[str]:
    """Yield what to do now, for an exchange and a bot that may use it, "" if there is none.

    `is_new`: no gateway can have the file yet. What is to be pasted begins each line, so that it can be
    copied as it is.
    """
    option = config_option_for(file)
    has_none = bool(config.bots) and not bot
    served, token = config.served[exchange], config.bots[bot].token if bot else None
    name = f"/{exchange}" if served.at else ""
    scheme = "https" if config.listen.tls_cert else "http"
    address = f"{scheme}://{config.listen.tcp or '127.0.0.1:8787'}{name}"
    url = first_read(served, address)
    yield "Next:"
    yield ""
    yield f"sealgate check{option}    # tests key, clock and network; sends only reads"
    if not is_new:
        yield f"sealgate reload{option}   # if the gateway runs; else:"
    yield f"sealgate serve{option}    # runs the gateway until Ctrl-C"
    yield ""
    if has_none:
        yield "No bot has its key yet: add the key to `keys` of a bot, for these lines with the bot's token."
        yield ""
    yield "While it runs, in another terminal, a signed read through it:"
    yield ""
    yield from curl_lines(url, token)
    yield ""
    yield "A bot sends the exchange's own requests there, unsigned, with its token:"
    yield ""
    yield from _requests_lines(url, token)
    yield ""
    yield "An unmodified ccxt class needs made-up keys, and then:"
    yield ""
    yield from _ccxt_lines(served, url, token)


def _requests_lines(url: str, token: str | None) -> Iterator[str]:
    yield "import requests"
    yield from _token_lines(token)
    yield f'url = "{url}"'
    headers = ', headers={"Authorization": f"Bearer {token}"}' if token is not None else ""
    yield f"reply = requests.get(url{headers})"
    yield 'print(reply.headers["X-Gateway-Outcome"], reply.json())'


def _ccxt_lines(exchange: ExchangeConfig, url: str, token: str | None) -> Iterator[str]:
    signs_with_it = any(name.lower() == "authorization" for name, _ in exchange.venue.signing.headers)
    header = '"X-Gateway-Token": token' if signs_with_it else '"Authorization": f"Bearer {token}"'
    path = exchange.venue.signed_read
    yield "import json, re"
    if token is not None:
        yield f"exchange.headers = {{{header}}}"
    yield 'api = json.dumps(exchange.urls["api"])'
    yield f"""api = re.sub(r'"https?://[^/"]+', '"{url.removesuffix(path)}', api)"""
    yield 'exchange.urls["api"] = json.loads(api)'


def _token_lines(token: str | None) -> Iterator[str]:
    if token is not None:
        path = token.removeprefix("file:")
        yield (
            f"token = open({json.dumps(str(Path(path).absolute()))}).read().strip()"
            if path != token
            else 'token = "TOKEN"'
        )
