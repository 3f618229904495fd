"""What a gateway is asked from outside, and where it does not even start."""

from types import SimpleNamespace
from typing import Any

import aiohttp.http_parser
import pytest

from rig.station import ENVIRON, make_config
from sealgate.config import Address
from sealgate.gateway.host.start import StartError
from sealgate.gateway.life.gateway import Gateway, running_gateway


def gateway_at(tcp: Address | None) -> Gateway:
    doors: Any = SimpleNamespace(tcp=tcp)
    rest: Any = None
    return Gateway(doors, 0.0, rest, rest, rest, rest, rest)


def test_where_it_listens() -> None:
    assert gateway_at(Address("127.0.0.1", 5)).address == Address("127.0.0.1", 5)
    with pytest.raises(LookupError, match=r"listen\.tcp is turned off"):
        _ = gateway_at(None).address


async def test_the_parser_in_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It judges some malformed requests otherwise."""
    parser = aiohttp.http_parser.HttpRequestParserPy
    monkeypatch.setattr(aiohttp.http_parser, "HttpRequestParser", parser)
    with pytest.raises(StartError, match="without its C parser here; install its binary wheel"):
        async with running_gateway(make_config("http://127.0.0.1:9"), environ=ENVIRON):
            pass
