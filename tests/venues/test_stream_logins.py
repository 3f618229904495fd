"""Which login on a venue's streams can be tried, and the message that it begins with."""

import pytest

from sealgate.venues.key_kinds import Kind
from sealgate.venues.stream_logins import NO_LOGIN, LoginPlan, find_login, first_message
from sealgate.venues.venue import Venue, read_venue

HEAD = """name = "mine"
title = "Mine"
base_url = "https://api.eu.example.com"
[signing]
message = "{timestamp}"
headers = { SIGN = "{signature}" }
[signing.kinds]
hmac = {}
ed25519 = {}
[environments.test]
streams = { "ws.example.com" = "test.example.com" }
[environments.demo]
streams = { "other.example.com" = "demo.example.com" }
"""
SIGNED = 'signs = "{timestamp}"\nputs = { "/sign" = "{signature}" }\n'
LOGIN = f'[[streams.messages]]\nwhen = {{ "/op" = "auth" }}\nlogin = true\n{SIGNED}'


def login_of(venue: Venue, kind: Kind) -> LoginPlan:
    plan = find_login(venue, "", kind)
    assert isinstance(plan, LoginPlan), plan
    return plan


def mine(*streams: str) -> Venue:
    return read_venue("mine.toml", HEAD + "".join(f"[[streams]]\n{one}" for one in streams))


def stream(rows: str, host: str = '"ws.example.com"', more: str = 'paths = ["/private"]\n') -> str:
    return f"host = {host}\n{more}{rows}"


@pytest.mark.parametrize(
    ("venue", "environment", "words"),
    [
        (mine(), "", NO_LOGIN),
        (mine(stream("")), "", NO_LOGIN),
        (
            mine(stream(LOGIN)),
            "demo",
            "the venue's file has no stream with a login for the environment demo",
        ),
        (mine(stream(LOGIN + 'kinds = ["ed25519"]\n')), "", "the venue's file has no login for hmac keys"),
        (
            mine(stream(LOGIN, more='paths = ["/{group}/private", "/x/**"]\n')),
            "",
            "only a bot knows the whole path of ws.example.com/{group}/private",
        ),
        # Of nothing but the file they cannot be made: a value of a bot's, a token of a bot's.
        (
            mine(stream(f'[[streams.messages]]\nwhen = {{ "/op" = "a*" }}\nlogin = true\n{SIGNED}')),
            "",
            "the venue's file has no login for hmac keys",
        ),
        (
            mine(stream('[[streams.messages]]\nwhen = { "/op" = "auth" }\nlogin = true\n')),
            "",
            "the venue's file has no login for hmac keys",
        ),
    ],
)
def test_where_none_can_be_tried_it_is_said_why(venue: Venue, environment: str, words: str) -> None:
    assert find_login(venue, environment, Kind.HMAC) == words


def test_the_login_that_needs_least_is_tried_on_the_host_that_is_dialed() -> None:
    venue = mine(
        stream(LOGIN, more='paths = ["/trade"]\nneeds = "trade"\n'),
        stream(LOGIN + 'needs = "trade"\n', more='paths = ["/orders"]\n'),
        stream(LOGIN),
    )
    plan = login_of(venue, Kind.HMAC)
    assert (plan.host, plan.path) == ("ws.example.com", "/private")
    tested = find_login(venue, "test", Kind.HMAC)
    assert isinstance(tested, LoginPlan)
    assert (tested.host, tested.path) == ("test.example.com", "/private")


def test_of_several_hosts_it_is_the_one_of_the_region() -> None:
    hosts = '["ws.us.example.com", "ws.eu.example.com", "ws.eu.example.com:9443"]'
    assert login_of(mine(stream(LOGIN, hosts)), Kind.HMAC).host == "ws.eu.example.com"


def test_a_path_that_the_handshake_knows_need_not_be_known() -> None:
    handshake = '[streams.handshake]\npath = "/private/{uid}"\n'
    plan = login_of(mine(stream(LOGIN + handshake, more='paths = ["/private/{uid}"]\n')), Kind.HMAC)
    assert plan.path == ""
    assert plan.rule is not None


def test_a_handshake_that_is_signed_is_the_login() -> None:
    handshake = '[streams.handshake]\nsigns = "{timestamp}"\nheaders = { SIGN = "{signature}" }\n'
    venue = mine(stream(LOGIN + handshake), stream(handshake, '"other.example.com"'))
    assert login_of(venue, Kind.HMAC).rule is None


def test_a_message_of_the_file_is_where_it_begins() -> None:
    row = (
        '[[streams.messages]]\nwhen = { "/op" = ["*.x", "auth"], "/args/kind" = 7, "/sign" = "*" }\n'
        """message = '{"sign":"","args":{"kind":7},"nonce":"{unique}"}'\n"""
        f'reply = {{ id = "/args/id", done = {{ "/ok" = true }} }}\n{SIGNED}'
    )
    rule = login_of(mine(stream(row)), Kind.HMAC).rule
    assert rule is not None
    text = '{"sign":"","args":{"kind":7,"id":1},"nonce":"8-letters","op":"auth"}'
    assert first_message(rule, "8-letters") == text
    with_id = row.replace('"kind":7}', '"kind":7,"id":"9"}')
    rule = login_of(mine(stream(with_id)), Kind.HMAC).rule
    assert rule is not None
    assert '"args":{"kind":7,"id":"9"}' in first_message(rule, "u")
