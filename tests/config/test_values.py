import errno
import socket
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from sealgate.config.addresses import (
    Address,
    BaseUrl,
    parse_address,
    parse_base_url,
    parse_optional_address,
    parse_redis,
)
from sealgate.config.files import (
    SOCKET_PATH_BYTES,
    parse_ca_file,
    parse_group,
    parse_journal_file,
    parse_pem_file,
    parse_socket,
)
from sealgate.config.names import (
    is_plain_path,
    parse_api_key,
    parse_header_prefix,
    parse_match,
    parse_name,
    parse_optional_path,
    parse_pointer,
    parse_prefix,
    split_match,
)
from sealgate.config.quantities import (
    parse_aliases,
    parse_amount,
    parse_amounts,
    parse_count,
    parse_hosts,
    parse_known_limits,
    parse_list,
    parse_permissions,
    parse_seconds,
    parse_seconds_or_zero,
    parse_size,
    parse_uid,
    parse_weight,
)
from sealgate.config.references import parse_reference, split_command, split_entry
from sealgate.limits.quotas import Quota


@pytest.mark.parametrize("path", ["", "/v1", "/v1/trade", "/a.b/~c/_-", "/..a", "/a..", "/..."])
def test_plain_paths(path: str) -> None:
    assert is_plain_path(path)


@pytest.mark.parametrize(
    "path", ["/", "v1", "/v1/", "//v1", "/a/./b", "/a/..", "/..", "/%61", "/a b", "/ä", "/a;b", "/a?b"]
)
def test_paths_with_two_readings(path: str) -> None:
    assert not is_plain_path(path)


@pytest.mark.parametrize(
    ("value", "prefix"), [("/v1/trade", "/v1/trade"), ("/v1/trade/", "/v1/trade"), ("/", "")]
)
def test_a_prefix_has_no_slash_at_its_end(value: str, prefix: str) -> None:
    assert parse_prefix(value) == prefix


ACCEPTED: list[tuple[Callable[[str], object], str]] = [
    (parse_name, "main"),
    (parse_name, "Grid-2_b"),
    (parse_name, "x" * 32),
    (parse_optional_path, "/v1/trade/time"),
    (parse_header_prefix, "X-SERVICE-"),
    (parse_api_key, "ak_live-9/+=!"),
    (parse_pointer, ""),
    (parse_pointer, "/data/serverTime"),
    (parse_pointer, "/a~1b/~0/0"),
    (parse_match, "POST /v1/trade/orders/{orderId}/query"),
]


@pytest.mark.parametrize(("parse", "value"), ACCEPTED)
def test_keeps_what_is_right(parse: Callable[[str], object], value: str) -> None:
    assert parse(value) == value


READ_AS: dict[Callable[[object], object], list[tuple[object, object]]] = {
    parse_weight: [(2, 2.0), ("0.5", 0.5), (100, 100.0)],
    parse_count: [(1, 1), ("32", 32), (5000.0, 5000)],
    parse_uid: [(0, 0), ("1001", 1001), (2**32 - 2, 2**32 - 2)],
    parse_size: [
        (1, 1),
        ("1048576", 1048576),
        ("1 MiB", 1048576),
        ("1MiB", 1048576),
        ("512 kib", 524288),
        ("2 GiB", 2147483648),
        ("10 B", 10),
        ("1 KB", 1000),
        ("5 MB", 5000000),
        ("1 GB", 1000000000),
    ],
    parse_group: [("root", 0), ("0", 0), (4711, 4711), ("4711", 4711)],
}


@pytest.mark.parametrize(
    ("parse", "value", "read"), [(parse, *pair) for parse, pairs in READ_AS.items() for pair in pairs]
)
def test_reads_what_is_written_in_several_ways(
    parse: Callable[[object], object], value: object, read: object
) -> None:
    assert parse(value) == read


REFUSED: dict[tuple[Callable[..., object], str], list[object]] = {
    (parse_name, "usable name"): ["", "x" * 33, "a b", "ä", "a\n"],
    (parse_prefix, "plain path"): ["", "v1", "/v1/../v2", 1],
    (parse_optional_path, "plain path"): ["/time/", "/time?x=1", None],
    (parse_header_prefix, "cannot begin a header"): ["", "X SERVICE", "X:", "X-\r\n"],
    (parse_api_key, "is not an API key"): ["", "a b", "ä", "a\n", 17],
    (parse_pointer, "JSON pointer"): ["data", "/a~2"],
    (parse_match, "METHOD and path"): ["POST", "post /x", "TRACE /x", "GET x", "GET /a/../b", "GET /{A B}"],
    (parse_match, "must be a string"): [3],
    (parse_address, "is not host:port"): [
        *("", "8787", "127.0.0.1", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:٣", "::1:8787", 8787),
    ],
    (parse_address, "has no valid host"): [":8787", "a b:1", "http//x:1", "[::zz]:1"],
    (parse_address, "brackets around a host that is not IPv6"): ["[127.0.0.1]:1"],
    (parse_address, "port out of range"): ["127.0.0.1:65536", "127.0.0.1:" + "9" * 5000],
    (parse_base_url, "plain ASCII"): [
        *(5, "https://api.example.com /x", "https://api.exa\tmple.com", "https://api.example.com\n"),
    ],
    (parse_base_url, "xn--"): ["https://bücher.example"],
    (parse_base_url, "not an http or https URL"): ["", "api.example.com", "ftp://api.example.com"],
    (parse_base_url, "no host"): ["https://", "https:///v1"],
    (parse_base_url, "user name or a password"): [
        *("https://user@api.example.com", "https://:@api.example.com"),
    ],
    (parse_base_url, "query"): ["https://api.example.com?"],
    (parse_base_url, "fragment"): ["https://api.example.com/#x"],
    (parse_base_url, "backslash"): ["https://api.example.com\\@evil.example"],
    (parse_base_url, "is not a URL"): ["https://[::1"],
    (parse_base_url, "no valid host"): ["https://exa_mple.com"],
    (parse_base_url, "port out of range"): [
        *("https://api.example.com:0", "https://api.example.com:65536", "https://api.example.com:x"),
    ],
    (parse_base_url, "path that is not plain"): [
        *("https://api.example.com/a//b", "https://api.example.com/a/../b", "https://api.example.com/%61"),
    ],
    (parse_base_url, "plain http"): [
        *("http://api.example.com", "http://192.168.1.9", "http://localhost.example"),
    ],
    (parse_list, "must be a list"): [3, {"a": 1}],
    (parse_list, "begins like a JSON array"): ['["a"'],
    (parse_hosts, "one or more different strings"): [[], ["a", "a"], ["a", 3]],
    (parse_hosts, "no valid host"): [["localhost:8787"]],
    (parse_aliases, "usable name"): [["a b"]],
    (parse_permissions, "unknown permission"): [["read", "withdraw"]],
    (parse_permissions, "one or more different strings"): [""],
    (parse_weight, "is not a weight"): [0, -1, 101, "x", "nan", True, None],
    (parse_count, "is not a count"): [0, -1, 1.5, "1.5", "x", True, "inf", None],
    (parse_size, "is not a size"): [
        0,
        -1,
        "0 MiB",
        "1.5 MiB",
        "1 MiBB",
        "MiB",
        "",
        "1e6",
        True,
        1.5,
        None,
        "9" * 30,
    ],
    (parse_uid, "is not a user's number; "): [-1, 1.5, "root", True, "", 2**32 - 1, 1e99, "inf"],
    (parse_known_limits, "is not a limit"): [
        ["0/1s"],
        ["20/0s"],
        ["20"],
        ["20/1d"],
        ["-1/s"],
        ["x/s"],
        [20],
        ["20/s/s"],
    ],
    (parse_group, "is not a group on this machine; "): ["no-such-group", True, -1, "1.5"],
    (parse_seconds, "is not a duration"): [-1, "inf", "nan", "", "10s", True, None, [1], 10**400],
    (parse_seconds_or_zero, "is not a duration"): [-1, "inf", "nan", "", "10s", True, None, [1], 10**400],
}


@pytest.mark.parametrize(
    ("parse", "cause", "value"), [(*by, value) for by, values in REFUSED.items() for value in values]
)
def test_refuses(parse: Callable[..., object], cause: str, value: object) -> None:
    with pytest.raises(ValueError, match=cause):
        parse(value)


def test_a_match_splits_into_method_and_path() -> None:
    assert split_match("DELETE /v1/trade/order/{id}") == ("DELETE", "/v1/trade/order/{id}")


@pytest.mark.parametrize(
    ("value", "members"),
    [
        (["a", "b"], ("a", "b")),
        ("a,b", ("a", "b")),
        (" a , b, ", ("a", "b")),
        ('["a", "b"]', ("a", "b")),
        ('[{"match": "GET /x"}]', ({"match": "GET /x"},)),
        ("", ()),
    ],
)
def test_lists_from_toml_json_and_commas(value: object, members: tuple[object, ...]) -> None:
    assert parse_list(value) == members


def test_hosts_are_lower_case_and_without_brackets() -> None:
    assert parse_hosts(["Localhost", "[::1]", "127.0.0.1"]) == ("localhost", "::1", "127.0.0.1")


def test_aliases_keep_their_order() -> None:
    assert parse_aliases("main,alt") == ("main", "alt")


def test_permissions_are_a_set() -> None:
    assert parse_permissions(["trade", "read"]) == {"read", "trade"}


@pytest.mark.parametrize(
    ("value", "seconds"), [(3, 3.0), (0.5, 0.5), ("2.5", 2.5), (" 10 ", 10.0), ("1e3", 1000.0)]
)
def test_seconds(value: object, seconds: float) -> None:
    assert parse_seconds(value) == parse_seconds_or_zero(value) == seconds


@pytest.mark.parametrize("value", [0, "0", 0.0])
def test_zero_seconds_only_where_it_means_something(value: object) -> None:
    assert parse_seconds_or_zero(value) == 0
    with pytest.raises(ValueError, match="above 0"):
        parse_seconds(value)


@pytest.mark.parametrize(("value", "amount"), [("0.50", "0.50"), ("10000", "10000"), (5, "5")])
def test_amounts_are_decimals(value: object, amount: str) -> None:
    assert parse_amount(value) == parse_amounts(value) == Decimal(amount)
    assert parse_amounts({"BTC": value}) == {"BTC": Decimal(amount)}


def test_amounts_by_symbol_as_text() -> None:
    assert parse_amounts('{"BTC": "0.5", "ETH": 10}') == {"BTC": Decimal("0.5"), "ETH": Decimal(10)}


@pytest.mark.parametrize("value", [0.5, 0, "0", "0.0", "1e3", "-1", "+1", "", "x", True, None, "\u0661", [1]])
@pytest.mark.parametrize("parse", [parse_amount, parse_amounts, lambda value: parse_amounts({"BTC": value})])
def test_what_is_no_amount(parse: type, value: object) -> None:
    with pytest.raises(ValueError, match=r'is not an amount above 0; write it as text, as in "0\.5"'):
        parse(value)


def test_what_is_no_table_of_amounts() -> None:
    with pytest.raises(ValueError, match="has no symbol"):
        parse_amounts({})
    with pytest.raises(ValueError, match="is none; check quotes"):
        parse_amounts('{"BTC": }')


def test_the_user_that_all_strangers_look_like() -> None:
    with pytest.raises(ValueError, match="as all users of other containers appear"):
        parse_uid(65534)


@pytest.mark.parametrize(
    ("value", "limits"),
    [
        pytest.param(["1200/60s"], (Quota(1200, 60.0),), id="seconds"),
        pytest.param(["20/s"], (Quota(20, 1.0),), id="a unit alone"),
        pytest.param(["1200/1m", "5/100ms"], (Quota(1200, 60.0), Quota(5, 0.1)), id="two stacked"),
        pytest.param("20/s, 3600 / 1h", (Quota(20, 1.0), Quota(3600, 3600.0)), id="from the environment"),
        pytest.param([], (), id="none: learned"),
    ],
)
def test_limits(value: object, limits: tuple[Quota, ...]) -> None:
    assert parse_known_limits(value) == limits


def test_a_limit_reads_as_it_is_written() -> None:
    assert str(Quota(1200, 60.0)) == "1200/60s"


@pytest.mark.parametrize(
    ("text", "address", "is_loopback"),
    [
        ("127.0.0.1:8787", Address("127.0.0.1", 8787), True),
        ("127.9.9.9:1", Address("127.9.9.9", 1), True),
        ("localhost:0", Address("localhost", 0), True),
        ("LOCALHOST:0", Address("localhost", 0), True),
        ("[::1]:8787", Address("::1", 8787), True),
        ("0.0.0.0:65535", Address("0.0.0.0", 65535), False),
        ("[::]:80", Address("::", 80), False),
        ("gateway.example:80", Address("gateway.example", 80), False),
        ("localhost.example:80", Address("localhost.example", 80), False),
    ],
)
def test_addresses(text: str, address: Address, is_loopback: bool) -> None:
    assert parse_address(text) == address
    assert address.is_loopback is is_loopback


def test_nothing_is_no_address() -> None:
    assert parse_optional_address("") is None


hosts = st.ip_addresses().map(str) | st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)


@settings(deadline=None)
@given(st.builds(Address, hosts, st.integers(0, 65535)))
def test_an_address_is_read_as_it_is_written(address: Address) -> None:
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "parsed", "written"),
    [
        ("https://api.example.com", BaseUrl("https", "api.example.com", 443, ""), "https://api.example.com"),
        ("https://api.example.com/", BaseUrl("https", "api.example.com", 443, ""), "https://api.example.com"),
        (
            "HTTPS://API.example.com:443",
            BaseUrl("https", "api.example.com", 443, ""),
            "https://api.example.com",
        ),
        (
            "https://x.example:8443/a/b/",
            BaseUrl("https", "x.example", 8443, "/a/b"),
            "https://x.example:8443/a/b",
        ),
        ("http://localhost", BaseUrl("http", "localhost", 80, ""), "http://localhost"),
        ("http://127.0.0.1:8790", BaseUrl("http", "127.0.0.1", 8790, ""), "http://127.0.0.1:8790"),
        ("http://[::1]:8790/x", BaseUrl("http", "::1", 8790, "/x"), "http://[::1]:8790/x"),
    ],
)
def test_base_urls(text: str, parsed: BaseUrl, written: str) -> None:
    assert parse_base_url(text) == parsed
    assert str(parsed) == written
    assert parse_base_url(written) == parsed


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
    with pytest.raises(ValueError, match="URL; write") as caught:
        parse_base_url(value)
    assert str(caught.value).endswith(f'URL; write "{proposed}"')


@pytest.mark.parametrize(
    "value", ["https://u:s3cr3t@x.example", "https://x.example/?s3cr3t", "https://x:s3cr3t"]
)
def test_an_error_does_not_echo_the_url(value: str) -> None:
    with pytest.raises(ValueError, match="; ") as caught:
        parse_base_url(value)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        *("", "redis://127.0.0.1:6379/0", "redis://redis.trading.svc", "rediss://cache.example:6380/2"),
        *("unix:///run/redis/redis.sock", "env:REDIS_URL", "file:/run/secrets/redis"),
        *("file:/run/secrets/the redis", "cmd:get-url --pass hunter2"),
    ],
)
def test_where_redis_is(text: str) -> None:
    assert parse_redis(text) == text


@pytest.mark.parametrize(
    "reference",
    [
        *("file:/run/secrets/main", "file:a b", "env:EXCHANGE_SECRET", "cmd:pass show exchange"),
        *("cmd:'a b' c", "systemd:main", "systemd:exchange.main-2"),
        *("keyring:sealgate/main", "keyring:https://exchange.example/main"),
    ],
)
def test_references(reference: str) -> None:
    assert parse_reference(reference) == reference


REFUSED_IN_SILENCE: dict[tuple[Callable[[object], object], str], list[object]] = {
    (parse_reference, "is not a reference to a secret"): [
        *("s3cr3t-canary", "s3cr3t:canary", "FILE:/s3cr3t", "", 7),
    ],
    (parse_reference, "is not a reference to a secret; put"): ["s3cr3t" * 1000, "~s3cr3t", "s3cr3t\n"],
    (parse_reference, "names no credential"): [
        *("systemd:", "systemd:../s3cr3t", "systemd:..", "systemd:.", "systemd:s3cr3t x"),
    ],
    (parse_reference, "names no entry"): [
        *("keyring:s3cr3t", "keyring:/s3cr3t", "keyring:s3cr3t/", "keyring:s3cr3t/\n"),
    ],
    (parse_reference, "begins with a ~ that names no home"): ["file:~s3cr3t/x"],
    (parse_reference, "names no file"): ["file:", "file:/s3cr3t\0"],
    (parse_reference, "names no variable"): ["env:", "env:s3cr3t-x"],
    (parse_reference, "names no program"): ["cmd:", "cmd:  ", "cmd:'' s3cr3t"],
    (parse_reference, "open quote"): ["cmd:echo 's3cr3t"],
    (parse_redis, "neither a Redis URL nor a reference"): [
        *(5, "127.0.0.1:6379", "http://127.0.0.1:6379", "cmd:'s3cr3t"),
    ],
    (parse_redis, "is not a URL"): ["redis://127.0.0.1 :6379", "redis://127.0.0.1/\n"],
    (parse_redis, "has no host"): ["redis://"],
    (parse_redis, "is not a Redis URL"): ["redis://127.0.0.1:99999", "rediss://[::1:6379"],
    (parse_redis, "names no socket"): ["unix://"],
    (parse_redis, "holds a password; put the whole URL into a file"): ["redis://:s3cr3t@127.0.0.1:6379"],
    (parse_redis, "holds a password"): [
        *("redis://bot:s3cr3t@127.0.0.1:6379", "unix:///run/redis.sock?db=1&password=s3cr3t"),
    ],
}


@pytest.mark.parametrize(
    ("parse", "cause", "value"),
    [(*by, value) for by, values in REFUSED_IN_SILENCE.items() for value in values],
)
def test_refuses_and_does_not_echo(parse: Callable[[object], object], cause: str, value: object) -> None:
    with pytest.raises(ValueError, match=cause) as caught:
        parse(value)
    assert "s3cr3t" not in str(caught.value)


def test_the_name_of_a_file_lacks_its_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.secret").touch()
    with pytest.raises(
        ValueError, match=r'a file\'s name, not a reference to a secret; write "file:main\.secret"$'
    ):
        parse_reference("main.secret")


def test_a_command_is_split_as_a_shell_would() -> None:
    assert split_command("vault kv get -field='a b' secret/x") == [
        "vault",
        "kv",
        "get",
        "-field=a b",
        "secret/x",
    ]


def test_the_home_is_expanded_as_no_shell_does_it_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/gate")
    assert parse_reference("file:~/main.secret") == "file:/home/gate/main.secret"
    assert parse_reference("file:/a/~/b") == "file:/a/~/b"


def test_the_service_of_an_entry_may_have_slashes() -> None:
    assert split_entry("https://exchange.example/main") == ("https://exchange.example", "main")


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


@pytest.mark.parametrize("parse", [parse_ca_file, parse_pem_file, parse_journal_file])
def test_a_file_that_this_user_may_not_look_at_is_a_mistake_and_no_crash(
    parse: Callable[[object], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who halts a gateway as another user must get as far as its socket. Root may look at everything."""

    def refuse(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    for look in ("is_file", "is_dir"):
        monkeypatch.setattr(Path, look, refuse)
    with pytest.raises(ValueError, match="is in a folder closed to this user; act as the gateway's user"):
        parse("/var/lib/sealgate/file")


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
