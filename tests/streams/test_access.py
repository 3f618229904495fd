"""Which stream a target names, and what a message needs, without a socket."""

from pathlib import Path

import pytest

from rig.stream_venue import HOST, VENUE
from sealgate.errors import Refusal
from sealgate.keys.bot import Bot
from sealgate.streams.access import check_open, find_wanted, judge
from sealgate.streams.login import Login
from sealgate.streams.openings import Openings
from sealgate.streams.tally import Tally, Traffic
from sealgate.venues.key_kinds import Kind
from sealgate.venues.routes import Permission
from sealgate.venues.venue import Venue, read_venue

TEST = f"""
[environments.test]
streams = {{ "{HOST}" = "test.lab.example" }}
[environments.demo]
headers = {{ x-demo = "1" }}
"""
LAB = read_venue("lab.toml", VENUE + TEST)
READER = Bot("eye", ("main",), frozenset({Permission.READ}))
TRADER = Bot("grid", ("main",), frozenset({Permission.READ, Permission.TRADE}))


@pytest.mark.parametrize(
    ("environment", "name", "dialed"),
    [
        ("", HOST, HOST),
        ("", HOST.upper(), HOST),
        ("", f"{HOST}:443", HOST),
        ("", "other.lab.example:8443", "other.lab.example:8443"),
        ("demo", HOST, HOST),
        ("test", HOST, "test.lab.example"),
        ("test", "test.lab.example", "test.lab.example"),
    ],
)
def test_a_host_by_each_of_its_names(environment: str, name: str, dialed: str) -> None:
    wanted = find_wanted(f"/{name}/private?x=1", LAB, LAB.stream_hosts(environment))
    assert (wanted.host, wanted.target.raw, wanted.stream.label) == (
        dialed,
        "/private?x=1",
        f"{HOST}/private",
    )


def test_a_host_of_another_environment_is_named_as_such() -> None:
    with pytest.raises(Refusal, match='of the environment "test"'):
        find_wanted("/test.lab.example/private", LAB, LAB.stream_hosts(""))


@pytest.mark.parametrize(
    ("environment", "target"),
    [
        ("", "/test.lab.example/private"),
        ("test", "/other.lab.example:8443/private"),
        ("", f"{HOST}/private"),
        ("", f"/{HOST}/public"),
        ("", ""),
    ],
)
def test_what_is_no_stream(environment: str, target: str) -> None:
    with pytest.raises(Refusal, match="unknown_stream"):
        find_wanted(target, LAB, LAB.stream_hosts(environment))


def test_a_venue_without_streams_says_so() -> None:
    text = VENUE.partition("[[streams]]")[0]
    venue: Venue = read_venue("lab.toml", text)
    with pytest.raises(Refusal, match="Lab has no streams here"):
        find_wanted("/x/y", venue, venue.stream_hosts(""))


def test_a_query_right_behind_the_host() -> None:
    assert find_wanted(f"/{HOST}?a=1", LAB, LAB.stream_hosts("")).target.raw == "/?a=1"


def test_a_stream_needs_what_its_file_says(tmp_path: Path) -> None:
    text = VENUE.replace('paths = ["/private", "/"]', 'paths = ["/private"]\nneeds = "trade"')
    stream = read_venue(str(tmp_path / "lab.toml"), text).streams[0]
    check_open(TRADER, stream)
    with pytest.raises(Refusal, match="needs trade, and the bot eye may only read"):
        check_open(READER, stream)


@pytest.mark.parametrize(
    ("message", "template", "needs"),
    [
        (b'{"op":"login"}', "login", "read"),
        (b'{"op":"login","arms":0}', "login", "trade"),
        (b"ping", "ping", "read"),
        (b'{"op":"order.place"}', "order.place", "trade"),
        (b'{"op":"order.cancel"}', "order.cancel", "trade"),
        (b'{"op":"more"}', "other", "trade"),
        (b'"more"', "other", "trade"),
    ],
)
def test_what_a_message_is(message: bytes, template: str, needs: str) -> None:
    judged = judge(LAB.streams[0], TRADER, Kind.HMAC, message, is_text=True)
    assert (judged.route.template, judged.route.needs) == (f"{HOST}/private {template}", needs)
    if needs == "trade":
        with pytest.raises(Refusal, match="the bot eye may only read"):
            judge(LAB.streams[0], READER, Kind.HMAC, message, is_text=True)


@pytest.mark.parametrize(
    ("message", "is_text", "reason"),
    [
        (b"{}", False, "bad_request"),
        (b"{", True, "bad_request"),
        (b'{"op":"basic"}', True, "bot_forbidden"),
        (b'{"op":"withdraw"}', True, "bot_forbidden"),
    ],
)
def test_what_may_not_be_sent(message: bytes, reason: str, *, is_text: bool) -> None:
    with pytest.raises(Refusal) as refused:
        judge(LAB.streams[0], TRADER, Kind.HMAC, message, is_text=is_text)
    assert refused.value.slug == reason
    assert "not sent" in refused.value.detail


def test_openings_are_counted_within_their_window() -> None:
    openings = Openings(2, 10.0)
    assert openings.wait_s(100.0) == 0
    openings.opened(100.0)
    openings.opened(103.0)
    assert openings.wait_s(104.0) == pytest.approx(6.0)
    assert openings.wait_s(110.0) == 0
    openings.refused(120.0)
    openings.refused(115.0)
    assert openings.wait_s(113.0) == pytest.approx(7.0)


def test_without_a_limit_all_are_opened() -> None:
    openings = Openings()
    openings.opened(1.0)
    assert openings.wait_s(1.0) == 0


def test_the_tally_of_what_ended() -> None:
    tally = Tally()
    tally.carried("lab", "grid", "to_bot", Traffic(2, 30))
    tally.carried("lab", "grid", "to_bot", Traffic(1, 4))
    assert (tally.messages, tally.bytes) == (
        {("lab", "grid", "to_bot"): 3},
        {("lab", "grid", "to_bot"): 34},
    )


def login(refused: str = "") -> Login:
    text = VENUE.replace('done = {{ "/ok" = true }}', f'done = {{ "/ok" = true }}{refused}')
    rule = read_venue(
        "lab.toml", text.replace('done = { "/ok" = true }', f'done = {{ "/ok" = true }}{refused}')
    )
    found = rule.streams[0].messages[1].reply
    assert found is not None
    return Login(found, None, 5.0)


def test_the_reply_to_a_login() -> None:
    assert login().result({"op": "login", "ok": True}) == ("ok", 200)
    assert login().result({"op": "login", "ok": False}) == ("failed", 401)
    assert login().result({"op": "else"}) == ("", 0)


def test_where_the_file_says_what_a_refusal_is_nothing_else_is_one() -> None:
    said = login(', refused = { "/ok" = false }')
    assert said.result({"op": "login", "ok": False})[0] == "failed"
    assert said.result({"op": "login", "wait": 1})[0] == ""


def test_a_login_is_not_waited_for_without_end() -> None:
    waiting = login()
    assert not waiting.note_message(6.0, 10.0)
    assert waiting.note_message(15.1, 10.0)
    assert [waiting.note_message(6.0, 10.0) for _ in range(1000)][-1]
