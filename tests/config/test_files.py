import socket
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trustme

from sealgate.config.files import (
    SOCKET_PATH_BYTES,
    parse_ca_file,
    parse_group,
    parse_journal_file,
    parse_pem_file,
    parse_socket,
)

PARSERS: list[Callable[[object], object]] = [
    parse_ca_file,
    parse_group,
    parse_journal_file,
    parse_pem_file,
    parse_socket,
]


@pytest.mark.parametrize("parse", PARSERS)
def test_an_empty_text_is_none(parse: Callable[[object], object]) -> None:
    assert parse("") is None


def test_a_ca_file_holds_certificates(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(file)
    assert parse_ca_file(str(file)) == file
    file.write_text("no certificate")
    with pytest.raises(ValueError, match="holds no certificate"):
        parse_ca_file(str(file))


@pytest.mark.parametrize("value", ["/no/such/file.pem", ".", 3])
@pytest.mark.parametrize("parse", [parse_ca_file, parse_pem_file])
def test_what_is_no_file(parse: Callable[[object], object], value: object) -> None:
    with pytest.raises(ValueError, match="is not a file that exists; "):
        parse(value)


@pytest.mark.parametrize("value", ["/no/such/folder/journal.db", ".", 3])
def test_what_cannot_be_a_journal(value: object) -> None:
    with pytest.raises(ValueError, match="is not a file in a folder that exists"):
        parse_journal_file(value)


def test_a_journal_need_not_exist_yet(tmp_path: Path) -> None:
    assert parse_journal_file(str(tmp_path / "journal.db")) == tmp_path / "journal.db"


@pytest.mark.parametrize(
    "value", ["/run/sealgate/bots.sock", "bots.sock", "/" + "x" * (SOCKET_PATH_BYTES - 1)]
)
def test_sockets(value: str) -> None:
    assert parse_socket(value) == Path(value)


def test_the_longest_path_of_a_socket_is_what_this_system_takes() -> None:
    with socket.socket(socket.AF_UNIX) as sock, TemporaryDirectory(dir="/tmp") as folder:
        longest = f"{folder}/" + "x" * (SOCKET_PATH_BYTES - len(folder) - 1)
        sock.bind(longest)
        with pytest.raises(OSError, match="too long"):
            sock.connect(f"{longest}x")


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ("/", "is not the path of a socket"),
        ("/run/\0bots", "is not the path of a socket"),
        (3, "is not the path of a socket"),
        ("/" + "x" * SOCKET_PATH_BYTES, "is longer than a socket's path may be"),
        ("/" + "ü" * 60, "is longer than a socket's path may be"),
        ("~nobody-here/x", "names no home"),
    ],
)
def test_what_is_no_socket(value: object, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        parse_socket(value)


def test_the_home_of_the_gateways_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/gate")
    assert parse_socket("~/bots.sock") == Path("/home/gate/bots.sock")


@pytest.mark.parametrize(("value", "number"), [("root", 0), ("0", 0), (4711, 4711), ("4711", 4711)])
def test_groups_by_name_and_by_number(value: object, number: int) -> None:
    assert parse_group(value) == number


@pytest.mark.parametrize("value", ["no-such-group", True, -1, "1.5"])
def test_what_is_no_group(value: object) -> None:
    with pytest.raises(ValueError, match="is not a group on this machine; "):
        parse_group(value)
