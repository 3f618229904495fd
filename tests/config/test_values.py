"""What the types of settings read as what, and what they refuse in which words."""

import errno
import socket
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from sealgate.config import values
from sealgate.config.addresses import Address, BaseUrl, ProxyUrl, parse_address, parse_base_url
from sealgate.config.files import SOCKET_PATH_BYTES
from sealgate.config.problems import problems_of
from sealgate.config.references import split_command, split_entry
from sealgate.limits.quotas import Quota


def read(kind: Any, value: object) -> object:
    return TypeAdapter(kind).validate_python(value)


def refusal(kind: Any, value: object) -> str:
    """Return why a value is refused, in one sentence that does not repeat it."""
    with pytest.raises(ValidationError) as caught:
        read(kind, value)
    [problem] = problems_of(caught.value)
    assert "s3cr3t" not in problem.text
    return problem.text


KEPT: list[tuple[Any, list[str]]] = [
    (values.Name, ["main", "Grid-2_b", "x" * 32]),
    (values.OptionalPath, ["", "/v1/trade/time", "/a.b/~c/_-", "/..a", "/a..", "/..."]),
    (values.HeaderPrefix, ["X-SERVICE-"]),
    (values.ApiKey, ["ak_live-9/+=!", ""]),
    (values.JsonPointer, ["", "/data/serverTime", "/a~1b/~0/0"]),
    (values.RouteMatch, ["POST /v1/trade/orders/{orderId}/query", "GET /..a"]),
    (
        values.Reference,
        [
            *("file:/run/secrets/main", "file:a b", "env:EXCHANGE_SECRET", "cmd:pass show exchange"),
            *("cmd:'a b' c", "systemd:main", "systemd:exchange.main-2"),
            *("keyring:sealgate/main", "keyring:https://exchange.example/main"),
        ],
    ),
    (
        values.Redis,
        [
            *("", "redis://127.0.0.1:6379/0", "redis://redis.trading.svc", "rediss://cache.example:6380/2"),
            *("unix:///run/redis/redis.sock", "env:REDIS_URL", "file:/run/secrets/the redis"),
            "cmd:get-url --pass hunter2",
        ],
    ),
]


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, all_ in KEPT for value in all_])
def test_keeps_what_is_right(kind: Any, value: str) -> None:
    assert read(kind, value) == value


READ_AS: list[tuple[Any, list[tuple[object, object]]]] = [
    (values.Seconds, [(3, 3.0), (0.5, 0.5), ("2.5", 2.5), (" 10 ", 10.0), ("1e3", 1000.0)]),
    (values.SecondsOrZero, [(0, 0.0), ("0", 0.0), ("2.5", 2.5)]),
    (values.Weight, [(2, 2.0), ("0.5", 0.5), (100, 100.0)]),
    (values.Count, [(1, 1), ("32", 32), (5000.0, 5000), ("1e3", 1000)]),
    (values.Uid, [(0, 0), ("1001", 1001), (2**32 - 2, 2**32 - 2)]),
    (values.Group, [("root", 0), ("0", 0), (4711, 4711), ("4711", 4711)]),
    (
        values.Size,
        [
            *((1, 1), ("1048576", 1048576), ("1 MiB", 1048576), ("1MiB", 1048576), ("512 kib", 524288)),
            *(("2 GiB", 2**31), ("10 B", 10), ("1 KB", 1000), ("5 MB", 5000000), ("1 GB", 10**9)),
        ],
    ),
    (values.Amounts, [("0.50", Decimal("0.50")), (5, Decimal(5)), ({"BTC": "0.5"}, {"BTC": Decimal("0.5")})]),
    (values.Amounts, [('{"BTC": "0.5", "ETH": 10}', {"BTC": Decimal("0.5"), "ETH": Decimal(10)})]),
    (values.Amount, [("10000", Decimal(10000)), (7, Decimal(7))]),
    (values.KeyUid, [("memo", "memo"), (1001, "1001"), ("", "")]),
    (values.PathPrefix, [("/v1/trade", "/v1/trade"), ("/v1/trade/", "/v1/trade"), ("/", "")]),
    (values.Aliases, [(["b", "a"], ("b", "a")), ("b,a", ("b", "a")), (" b , a, ", ("b", "a"))]),
    (values.Aliases, [('["b", "a"]', ("b", "a"))]),
    (values.Variables, [([], ()), ("", ()), (["A", "VAULT_*"], ("A", "VAULT_*"))]),
    (values.Permissions, [(["trade", "read"], {"read", "trade"}), ("keys", {"keys"})]),
    (values.Hosts, [(["Localhost", "[::1]", "127.0.0.1"], ("localhost", "::1", "127.0.0.1"))]),
    (
        values.Quotas,
        [
            *((["1200/60s"], (Quota(1200, 60.0),)), (["20/s"], (Quota(20, 1.0),)), ([], ()), ("", ())),
            (["1200/1m", "5/100ms"], (Quota(1200, 60.0), Quota(5, 0.1))),
            ("20/s, 3600 / 1h", (Quota(20, 1.0), Quota(3600, 3600.0))),
        ],
    ),
    (
        values.OptionalAddress,
        [
            *(("", None), ("127.0.0.1:8787", Address("127.0.0.1", 8787))),
            *(("LOCALHOST:0", Address("localhost", 0)), ("[::1]:8787", Address("::1", 8787))),
        ],
    ),
    (
        values.OptionalLoopbackAddress,
        [
            *(("", None), ("127.0.0.1:8802", Address("127.0.0.1", 8802))),
            *(("localhost:0", Address("localhost", 0)), ("[::1]:8802", Address("::1", 8802))),
        ],
    ),
    (values.SourceAddress, [("", None), ("127.0.0.1", "127.0.0.1")]),
    (
        values.OptionalProxy,
        [
            *(("", None), ("http://proxy.example:3128", ProxyUrl("http", "proxy.example", 3128))),
            ("HTTP://grid@10.0.0.1:3128/", ProxyUrl("http", "10.0.0.1", 3128, "grid")),
            ("socks5h://a%40b@[::1]:1080", ProxyUrl("socks5", "::1", 1080, "a@b")),
        ],
    ),
    (
        values.HeaderFields,
        [
            *(({}, {}), ({"x-simulated-trading": "1"}, {"x-simulated-trading": "1"})),
            ('{"User-Agent": "a b"}', {"User-Agent": "a b"}),
        ],
    ),
    (values.AdminSocket, [("off", "off"), ("", None), ("a.sock", Path("a.sock"))]),
    (
        values.OptionalSocket,
        [(one, Path(one)) for one in ("/run/bots.sock", "bots.sock", "/" + "x" * (SOCKET_PATH_BYTES - 1))],
    ),
    (values.CaFile, [("", None)]),
    (values.PemFile, [("", None)]),
    (values.JournalFile, [("", None)]),
    (values.OptionalGroup, [("", None)]),
    (values.OptionalSocket, [("", None)]),
]


@pytest.mark.parametrize(
    ("kind", "value", "meant"), [(kind, *pair) for kind, pairs in READ_AS for pair in pairs]
)
def test_reads_what_is_written_in_several_ways(kind: Any, value: object, meant: object) -> None:
    assert read(kind, value) == meant


NO_SECONDS = [-1, "inf", "nan", "", "10s", True, None, [1], 10**400]
NO_AMOUNT = [0.5, 0, "0", "0.0", "1e3", "-1", "+1", "", "x", True, None, "\u0661", [1]]
REFUSED: list[tuple[Any, str, list[object]]] = [
    (values.Name, "is not a usable name; use", ["", "x" * 33, "a b", "ä", "a\n", 1]),
    (values.PathPrefix, "is not a plain path; ", ["", "v1", "/v1/../v2", "//v1", "/%61", "/a b", "/ä", 1]),
    (values.OptionalPath, "is not a plain path; ", ["/time/", "/time?x=1", "/a/./b", "/..", "/a;b", None]),
    (values.HeaderPrefix, "cannot begin a header's name; ", ["", "X SERVICE", "X:", "X-\r\n"]),
    (values.ApiKey, "is not an API key; ", ["s3cr3t b", "ä", "a\n", 17]),
    (values.JsonPointer, "is not a JSON pointer; ", ["data", "/a~2"]),
    (
        values.RouteMatch,
        "is not METHOD and path; ",
        ["POST", "post /x", "TRACE /x", "GET x", "GET /a/../b", "GET /{A B}", 3],
    ),
    (values.KeyUid, "is not an account's id or memo; ", ["ä", "a\n", "x" * 513, True, 1.5]),
    (
        values.OptionalAddress,
        "is not host:port; ",
        ["8787", "127.0.0.1", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:٣", "::1:8787"],
    ),
    (values.OptionalAddress, "is not text; ", [8787]),
    (values.OptionalAddress, "has no valid host; ", [":8787", "a b:1", "http//x:1", "[::zz]:1"]),
    (values.OptionalAddress, "has brackets around a host that is not IPv6; ", ["[127.0.0.1]:1"]),
    (values.OptionalAddress, "has a port out of range; ", ["127.0.0.1:65536", "127.0.0.1:" + "9" * 5000]),
    (values.OptionalLoopbackAddress, "is not host:port; ", ["8802"]),
    (
        values.OptionalLoopbackAddress,
        "can be reached from other machines, and every client there counts as this bot; ",
        ["0.0.0.0:8802", "192.0.2.1:8802", "[::]:8802", "gate.example:8802", "localhost.:8802"],
    ),
    (
        values.ExchangeUrl,
        "is not a URL in plain ASCII; write a foreign host name in its xn-- form",
        ["https://a.example /x", "https://a.exa\tmple", "https://a.example\n", "https://bücher.example"],
    ),
    (values.ExchangeUrl, "is not text; ", [5]),
    (values.ExchangeUrl, "is not an http or https URL; ", ["", "api.example.com", "ftp://a.example"]),
    (values.ExchangeUrl, "has no host; ", ["https://", "https:///v1"]),
    (
        values.ExchangeUrl,
        "contains a user name or a password; ",
        ["https://user@a.example", "https://:@a.example", "https://u:s3cr3t@x.example"],
    ),
    (
        values.ExchangeUrl,
        "has a query, a fragment or a backslash; ",
        ["https://a.example?s3cr3t", "https://a.example/#x", "https://a.example\\@evil.example"],
    ),
    (values.ExchangeUrl, "is not a URL; ", ["https://[::1"]),
    (values.ExchangeUrl, "has no valid host; ", ["https://exa_mple.com"]),
    (
        values.ExchangeUrl,
        "has a port out of range; ",
        ["https://a.example:0", "https://a.example:65536", "https://x:s3cr3t"],
    ),
    (
        values.ExchangeUrl,
        "has a path that is not plain; ",
        ["https://a.example/a//b", "https://a.example/a/../b", "https://a.example/%61"],
    ),
    (
        values.ExchangeUrl,
        "is plain http to another machine; ",
        ["http://a.example", "http://192.168.1.9", "http://localhost.example"],
    ),
    (values.Hosts, "is not a list; ", [3, {"a": 1}]),
    (values.Hosts, "begins like a JSON array but is not valid; ", ['["a"']),
    (values.Hosts, "is empty; ", [[], ""]),
    (values.Hosts, "has the same member twice; ", [["a", "a"], "a,a"]),
    (values.Hosts, "is not text; ", [["a", 3]]),
    (values.Hosts, "has no valid host; ", [["localhost:8787"]]),
    (values.Aliases, "is not a usable name; ", [["a b"]]),
    (values.Variables, "is not the name of a variable; ", [["*"], ["A B"], ["A=b"]]),
    (values.Symbols, "is not a symbol; ", [[""], ["B\nC"]]),
    (values.Permissions, "is not one of the choices; ", [["read", "withdraw"]]),
    (values.Quotas, "is not a list; ", [20]),
    (
        values.Quotas,
        "is not a limit; ",
        [["0/1s"], ["20/0s"], ["20"], ["20/1d"], ["-1/s"], ["x/s"], [20], ["20/s/s"]],
    ),
    (values.Weight, "is not a weight; ", [0, -1, 101, "x", "nan", True, None]),
    (values.Count, "is not a count; ", [0, -1, 1.5, "1.5", "x", True, "inf", None]),
    (
        values.Size,
        "is not a size above 0; ",
        [0, -1, 10**15, "0 MiB", "1.5 MiB", "1 MiBB", "MiB", "", "1e6", True, 1.5, None, "9" * 30],
    ),
    (values.Uid, "is not a numeric user id; ", [-1, 1.5, "root", True, "", 2**32 - 1, 1e99, "inf"]),
    (values.Uid, "is 65534, the id that all users of other containers appear as; ", [65534]),
    (values.Group, "is not a group on this machine; ", ["no-such-group", True, -1, "1.5"]),
    (values.Seconds, "is not a duration; write a number of seconds above 0", [0, "0", *NO_SECONDS]),
    (values.SecondsOrZero, "is not a duration; write a number of seconds, 0 or more", NO_SECONDS),
    (values.Amount, 'is not an amount above 0; write it as text, as in "0.5"', NO_AMOUNT),
    (
        values.Amounts,
        "is not an amount above 0; ",
        [*NO_AMOUNT, {}, {"BTC": {}}, *({"BTC": value} for value in NO_AMOUNT)],
    ),
    (values.Amounts, "begins like a JSON table but is not valid; ", ['{"BTC": }']),
    (
        values.Reference,
        "is not a reference to a secret; put",
        ["s3cr3t-canary", "s3cr3t:canary", "FILE:/s3cr3t", "", "s3cr3t" * 1000, "~s3cr3t", "s3cr3t\n"],
    ),
    (
        values.Reference,
        "names no credential after systemd:; ",
        ["systemd:", "systemd:../s3cr3t", "systemd:..", "systemd:.", "systemd:s3cr3t x"],
    ),
    (
        values.Reference,
        "names no entry after keyring:; ",
        ["keyring:s3cr3t", "keyring:/s3cr3t", "keyring:s3cr3t/", "keyring:s3cr3t/\n"],
    ),
    (values.Reference, "begins with a ~ that is not a home", ["file:~s3cr3t/x"]),
    (values.Reference, "names no file after file:; ", ["file:", "file:/s3cr3t\0"]),
    (values.Reference, "names no variable after env:; ", ["env:", "env:s3cr3t-x"]),
    (values.Reference, "names no program after cmd:; ", ["cmd:", "cmd:  ", "cmd:'' s3cr3t"]),
    (values.Reference, "has an open quote after cmd:; ", ["cmd:echo 's3cr3t"]),
    (
        values.Redis,
        "is neither a Redis URL nor a reference to one; ",
        ["127.0.0.1:6379", "http://127.0.0.1:6379", "cmd:'s3cr3t"],
    ),
    (values.Redis, "is not a URL; ", ["redis://127.0.0.1 :6379", "redis://127.0.0.1/\n"]),
    (values.Redis, "has no host; ", ["redis://"]),
    (values.Redis, "is not a Redis URL; ", ["redis://127.0.0.1:99999", "rediss://[::1:6379"]),
    (values.Redis, "names no socket; ", ["unix://"]),
    (
        values.Redis,
        "contains a password; put the whole URL into a file",
        [
            *("redis://:s3cr3t@127.0.0.1:6379", "redis://bot:s3cr3t@127.0.0.1:6379"),
            "unix:///run/redis.sock?db=1&password=s3cr3t",
        ],
    ),
    (values.SourceAddress, "is not an IP address; ", ["localhost", "127.0.0.1:80", "fe80::1%lo", "1.2.3"]),
    (
        values.SourceAddress,
        "is not an IP address of this machine; ",
        ["203.0.113.7", "2001:db8::7", "0.0.0.0", "::", "224.0.0.1"],
    ),
    (
        values.OptionalProxy,
        "contains a password; remove it",
        ["http://u:s3cr3t@p.example:3128", "socks5://:s3cr3t@p.example:1080", "https://u:s3cr3t@p.example:1"],
    ),
    (values.OptionalProxy, "is an https proxy, which cannot be used; ", ["https://p.example:3128"]),
    (
        values.OptionalProxy,
        "is not the URL of a proxy; ",
        ["p.example:3128", "socks4://p.example:1080", "s3cr3t"],
    ),
    (values.OptionalProxy, "has no host; ", ["http://", "http://:3128"]),
    (values.OptionalProxy, "has no port, or one out of range; ", ["http://p.example", "http://p.example:0"]),
    (values.OptionalProxy, "has no port, or one out of range; ", ["http://p.example:65536"]),
    (values.OptionalProxy, "has a path; ", ["http://p.example:3128/x"]),
    (values.OptionalProxy, "has a query, a fragment", ["http://p.example:3128?s3cr3t"]),
    (values.OptionalProxy, "is not a URL; ", ["http://[::1"]),
    (values.OptionalProxy, "has a user name that is not plain; ", ["http://a%3As3cr3t@p.example:3128"]),
    (values.HeaderFields, "is not a table; ", [3, "x"]),
    (
        values.HeaderFields,
        "is not a header's name; ",
        [{"a b": "1"}, {"x_y": "1"}, {"": "1"}, {"a\r\nb": "1"}],
    ),
    (
        values.HeaderFields,
        "is not a header's value; ",
        [{"x": "1\r\ns3cr3t: 1"}, {"x": " 1"}, {"x": ""}, {"x": "ä"}, {"x": 1}, {"x": "y" * 1025}],
    ),
    (
        values.HeaderFields,
        "is a header that the gateway or the bot sets itself; ",
        [
            *({name: "1"} for name in ("Host", "content-length", "Transfer-Encoding", "Connection")),
            *({name: "1"} for name in ("Authorization", "Proxy-Authorization", "X-Gateway-Key", "Expect")),
            *({name: "1"} for name in ("Accept-Encoding", "Content-Type", "Upgrade", "TE")),
        ],
    ),
    (values.HeaderFields, "has the same header twice; ", [{"X-A": "1", "x-a": "2"}]),
    (values.CaFile, "is not a file that exists; ", ["/no/such/file.pem", ".", "x" * 600]),
    (values.PemFile, "is not a file that exists; ", ["/no/such/file.pem", ".", "x" * 600]),
    (values.JournalFile, "is not a file in an existing folder; ", ["/no/such/folder/journal.db", "."]),
    (values.PemFile, "is not a file name; ", [3]),
    (values.OptionalSocket, "is not the path of a socket; ", ["/", "/run/\0bots"]),
    (
        values.OptionalSocket,
        "is longer than a socket's path may be",
        ["/" + "x" * SOCKET_PATH_BYTES, "/" + "ü" * 60],
    ),
    (values.OptionalSocket, "begins with a ~ that is not a home directory here; ", ["~nobody-here/x"]),
]


@pytest.mark.parametrize(
    ("kind", "words", "value"), [(kind, words, value) for kind, words, all_ in REFUSED for value in all_]
)
def test_refuses_with_the_cause_and_does_not_echo(kind: Any, words: str, value: object) -> None:
    assert refusal(kind, value).startswith(words)


def test_a_limit_reads_as_it_is_written() -> None:
    assert str(Quota(1200, 60.0)) == "1200/60s"


@pytest.mark.parametrize(
    ("text", "is_loopback"),
    [
        *(("127.9.9.9:1", True), ("localhost:0", True), ("[::1]:8787", True), ("0.0.0.0:65535", False)),
        *(("[::]:80", False), ("gateway.example:80", False), ("localhost.example:80", False)),
    ],
)
def test_which_addresses_only_this_machine_reaches(text: str, is_loopback: bool) -> None:
    assert parse_address(text).is_loopback is is_loopback


hosts = st.ip_addresses().map(str) | st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)


@settings(deadline=None)
@given(st.builds(Address, hosts, st.integers(0, 65535)))
def test_an_address_is_read_as_it_is_written(address: Address) -> None:
    assert parse_address(str(address)) == address


A_EXAMPLE = BaseUrl("https", "a.example", 443, "")


@pytest.mark.parametrize(
    ("text", "parsed", "written"),
    [
        ("https://a.example", A_EXAMPLE, "https://a.example"),
        ("https://a.example/", A_EXAMPLE, "https://a.example"),
        ("HTTPS://A.example:443", A_EXAMPLE, "https://a.example"),
        ("https://x.example:8443/a/b/", BaseUrl("https", "x.example", 8443, "/a/b"), None),
        ("http://localhost", BaseUrl("http", "localhost", 80, ""), None),
        ("http://127.0.0.1:8790", BaseUrl("http", "127.0.0.1", 8790, ""), None),
        ("http://[::1]:8790/x", BaseUrl("http", "::1", 8790, "/x"), None),
    ],
)
def test_base_urls(text: str, parsed: BaseUrl, written: str | None) -> None:
    assert parse_base_url(text) == parsed == parse_base_url(str(parsed))
    assert str(parsed) == (written or text.rstrip("/"))


@pytest.mark.parametrize(
    ("value", "proposed"),
    [
        ("api.foo.com", "https://api.foo.com"),
        ("api.foo.com:8443/", "https://api.foo.com:8443"),
        ("127.0.0.1:8790", "http://127.0.0.1:8790"),
        ("localhost:8790", "http://localhost:8790"),
        ("[::1]:8790", "http://[::1]:8790"),
        ("10.0.0.5:8790", "https://10.0.0.5:8790"),
        ("api.foo.com:99999", "https://api.example.com"),
        ("[::1::1]:8790", "https://api.example.com"),
        ("htps://api.foo.com", "https://api.example.com"),
        ("user:s3cr3t@api.foo.com", "https://api.example.com"),
        ("api.foo.com/s3cr3t", "https://api.example.com"),
        ("s3cr3t", "https://api.example.com"),
        ("eyJhbGci.eyJzdWIi.S3cr3tS3cr3t", "https://api.example.com"),
        ("", "https://api.example.com"),
    ],
)
def test_without_a_scheme_the_host_is_proposed_with_the_right_one(value: str, proposed: str) -> None:
    assert refusal(values.ExchangeUrl, value).endswith(f'URL; write "{proposed}"')


def test_the_name_of_a_file_lacks_its_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.secret").touch()
    told = 'is a file\'s name, not a reference to a secret; write "file:main.secret"'
    assert refusal(values.Reference, "main.secret") == told


def test_a_command_is_split_as_a_shell_would() -> None:
    words = ["vault", "kv", "get", "-field=a b", "secret/x"]
    assert split_command("vault kv get -field='a b' secret/x") == words


def test_the_home_is_expanded_as_no_shell_does_it_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/gate")
    assert read(values.Reference, "file:~/main.secret") == "file:/home/gate/main.secret"
    assert read(values.Reference, "file:/a/~/b") == "file:/a/~/b"
    assert read(values.OptionalSocket, "~/bots.sock") == Path("/home/gate/bots.sock")


def test_the_service_of_an_entry_may_have_slashes() -> None:
    assert split_entry("https://exchange.example/main") == ("https://exchange.example", "main")


def test_a_ca_file_holds_certificates(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(file)
    assert read(values.CaFile, str(file)) == file
    file.write_text("no certificate")
    assert refusal(values.CaFile, str(file)).startswith("contains no certificate; ")


@pytest.mark.parametrize("kind", [values.CaFile, values.PemFile, values.JournalFile])
def test_a_file_that_this_user_may_not_look_at_is_a_mistake_and_no_crash(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who halts a gateway as another user must get as far as its socket. Root may look at everything."""

    def refuse(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    for look in ("is_file", "is_dir"):
        monkeypatch.setattr(Path, look, refuse)
    told = refusal(kind, "/var/lib/sealgate/file")
    assert told == "is in a folder that this user may not read; run the command as the gateway's user"


def test_a_journal_need_not_exist_yet(tmp_path: Path) -> None:
    assert read(values.JournalFile, str(tmp_path / "journal.db")) == tmp_path / "journal.db"


def test_the_longest_path_of_a_socket_is_what_this_system_takes() -> None:
    with socket.socket(socket.AF_UNIX) as sock, TemporaryDirectory(dir="/tmp") as folder:
        longest = f"{folder}/" + "x" * (SOCKET_PATH_BYTES - len(folder) - 1)
        sock.bind(longest)
        with pytest.raises(OSError, match="too long"):
            sock.connect(f"{longest}x")
