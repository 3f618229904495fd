"""A venue's file that starts from another one: what replaces, what adds, and where a mistake is."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from sealgate.config.venues import built_in_venue, parse_venue
from sealgate.venues.routes import RouteTable
from sealgate.venues.venue import Venue, VenueError, read_venue

BASE = """
name = "base"
title = "Base"
base_url = "https://api.example.com"
checked = "ccxt"
words = "/msg"

[signing]
message = "{timestamp}{method}{target}{body}"
strips = ["sign"]

[signing.headers]
SIGN = "{signature}"

[clock]
path = "/time"
field = "/ms"

[limits]
scope = "address"
known = ["10/1s"]
counters = [{ header = "USED", window_s = 1, most = 10 }]

[[routes]]
match = "POST /order"
cost = 2

[[replies]]
at = "/code"
is = ["1"]
means = "refused"
kind = "order_refused"
"""
HEAD = 'name = "mine"\nlike = "base"\n'


def read(text: str, others: Mapping[str, str] = {"base": BASE}) -> Venue:
    def find(like: str, file: str) -> tuple[str, str]:
        if like not in others:
            raise ValueError(f"{like!r} is no file beside {file}; write base")
        return f"{like}.toml", others[like]

    return read_venue("mine.toml", text, find)


def test_what_a_file_does_not_say_is_said_by_the_one_that_it_is_like() -> None:
    base, mine = read(BASE, {}), read(HEAD)
    assert (mine.name, mine.like, mine.file) == ("mine", "base", "mine.toml")
    assert (mine.title, mine.base_url, mine.clock_path, mine.routes, mine.limits, mine.replies.rules) == (
        *(base.title, base.base_url, base.clock_path, base.routes, base.limits),
        base.replies.rules,
    )
    assert base.like == ""


def test_neither_the_name_nor_what_it_was_verified_with_is_taken_over() -> None:
    assert read(HEAD).checked == ""
    with pytest.raises(VenueError, match=r"^mine.toml:1: name is missing"):
        read('like = "base"\n')


def test_a_table_replaces_the_whole_table() -> None:
    mine = read(f'{HEAD}base_url = "https://b.example.com"\n[clock]\npath = "/v2/time"\n[limits]\n')
    assert (mine.base_url, mine.clock_path, mine.clock_field) == ("https://b.example.com", "/v2/time", "")
    assert (mine.limits.scope, mine.limits.pools[0].known, mine.limits.counters) == ("key", (), ())


def test_a_table_with_a_plus_changes_what_it_says_and_keeps_the_rest() -> None:
    counter = '{ header = "LEFT", counts = "left", most_header = "MOST" }'
    mine = read(
        f'{HEAD}["limits+"]\nknown = ["5/1s"]\n"counters+" = [{counter}]\n["signing+"]\n"strips+" = "nonce"'
    )
    assert (mine.limits.scope, mine.limits.pools[0].known) == ("address", ("5/1s",))
    assert [one.header for one in mine.limits.counters] == ["LEFT", "USED"]
    assert mine.signing.strips == {b"sign", b"nonce"}
    assert [name for name, _ in mine.signing.headers] == ["SIGN"]


def test_tables_of_a_list_with_a_plus_go_before_the_others() -> None:
    """Of replies, the first rule that matches decides."""
    rule = 'at = "/code"\nis = ["1"]\nmeans = "limited"\nkind = "rate_limited"\n'
    mine = read(f'{HEAD}[["routes+"]]\nmatch = "GET /fast"\nauth = "open"\n[["replies+"]]\n{rule}')
    assert RouteTable(mine.routes).find("POST", "/order").cost == 2
    assert RouteTable(mine.routes).find("GET", "/fast").auth == "open"
    assert mine.replies.judge(400, b'{"code": 1}').means == "limited"
    alone = read(f"{HEAD}[[replies]]\n{rule}")
    assert len(alone.replies.rules) == len(mine.replies.rules) - 1


def test_a_text_and_a_list_of_texts_add_up() -> None:
    judge = read(f'"words+" = ["/error"]\n{HEAD}').replies
    assert judge.judge(400, b'{"error": "no"}').words == judge.judge(400, b'{"msg": "no"}').words == "no"


def test_what_is_added_to_nothing_is_all_there_is() -> None:
    assert read(f'{HEAD}["reads+"]\nsigned = "/me"').signed_read == "/me"


def test_a_file_may_be_like_one_that_is_like_another() -> None:
    middle = 'name = "middle"\nlike = "base"\ntitle = "Middle"\n["limits+"]\nknown = ["7/1s"]'
    mine = read('name = "mine"\nlike = "middle"\n', {"base": BASE, "middle": middle})
    assert (mine.title, mine.like, mine.limits.pools[0].known, mine.clock_path) == (
        *("Middle", "middle", ("7/1s",)),
        "/time",
    )


LIKE_ANOTHER = {
    "base": BASE,
    "b": 'name = "b"\nlike = "c"',
    "c": 'name = "c"\nlike = "base"',
    "x": "like = 1",
}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            'name = "mine"\nlike = "bas"',
            "mine.toml:2: like: 'bas' is no file beside mine.toml; write base",
        ),
        ('name = "mine"\nlike = ["base"]', "mine.toml:2: like must be a text"),
        ('like = "x"', "x.toml:1: like must be a text"),
        (
            '\nlike = "b"',
            "mine.toml:2: like goes back too far (mine.toml is like b.toml is like c.toml is like base.toml)",
        ),
        (f'{HEAD}[["rutes+"]]\nmatch = ""', "mine.toml:3: unknown key rutes; did you mean routes?"),
        (
            f'{HEAD}[signing]\nmessage = "m"\n"headers+" = 1',
            "mine.toml:5: unknown key headers+; did you mean",
        ),
        (
            f'{HEAD}"clock+" = []',
            "mine.toml:3: clock+ cannot add to clock there; write clock, which replaces it",
        ),
        (f'{HEAD}["limits+"]\nknown = ["1"]', "mine.toml:4: '1' in known is not a limit such as 1200/60s"),
        (
            f'{HEAD}["limits+"]\n[["limits+"."counters+"]]\nheader = "A"\nwindow_s = 5',
            "mine.toml:4: a counter has most, most_header where replies say it, or known of its window",
        ),
        (
            f'{HEAD}[routes]\n[["routes+"]]',
            "mine.toml:4: routes replaces and routes+ adds; write one of them",
        ),
        (
            f'{HEAD}[["routes+"]]\nmatch = "GET /a"\n[["routes+"]]\nmatch = "GTE /a"',
            "mine.toml:6: 'GTE /a' does not begin with a method",
        ),
        # What the other file says may not fit: that is where it stands.
        (f'{HEAD}prefix = "/v1"', "base.toml:25: 'POST /order' is not under the prefix /v1/"),
        (f'{HEAD}prefix = "/v1"\n[["routes+"]]\nmatch = "GET /v1/a"', "base.toml:25: 'POST /order' is not"),
        (
            f'{HEAD}["signing+"]\n["signing+"."headers+"]\nTIME = "{{tme}}"',
            "mine.toml:5: TIME: unknown name {tme}; did you mean timestamp?",
        ),
    ],
)
def test_a_mistake_is_named_with_the_file_and_the_line_where_it_was_written(text: str, error: str) -> None:
    with pytest.raises(VenueError) as raised:
        read(text, LIKE_ANOTHER)
    assert str(raised.value).startswith(error)


@pytest.mark.parametrize(
    ("others", "text", "error"),
    [
        ({"mine": HEAD}, 'like = "mine"', "mine.toml:1: like = 'mine' leads back to mine.toml; start from"),
        ({"b": 'like = "mine"', "mine": ""}, 'like = "b"', "b.toml:1: like = 'mine' leads back to mine.toml"),
        ({"b": 'like = "b"'}, 'like = "b"', "b.toml:1: like = 'b' leads back to b.toml"),
    ],
)
def test_a_circle_is_an_error(others: dict[str, str], text: str, error: str) -> None:
    with pytest.raises(VenueError) as raised:
        read(text, others)
    assert str(raised.value).startswith(error)


def test_a_text_alone_can_be_like_no_other() -> None:
    with pytest.raises(
        VenueError, match=r"^mine.toml:2: like: 'base' cannot be looked up for mine.toml; write"
    ):
        read_venue("mine.toml", HEAD)


def test_a_file_of_ones_own_is_like_a_built_in_one_or_like_another_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\nlike = "binanceusdm"\n[["routes+"]]\nmatch = "GET /fapi/v1/new"\nauth = "open"\n'
    )
    (tmp_path / "other.toml").write_text(
        'name = "other"\nlike = "./parts/third.toml"\nbase_url = "https://o.example"'
    )
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "third.toml").write_text('name = "third"\nlike = "okx"\n')
    mine, futures = parse_venue(str(tmp_path / "mine.toml")), built_in_venue("binanceusdm")
    assert (mine.base_url, mine.limits, mine.signed_read) == (
        *(futures.base_url, futures.limits),
        futures.signed_read,
    )
    assert len(mine.routes) > len(futures.routes)
    other = parse_venue(str(tmp_path / "other.toml"))
    assert (other.base_url, other.signing) == ("https://o.example", built_in_venue("okx").signing)


@pytest.mark.parametrize(
    ("like", "error"),
    [
        ("okxx", "like: 'okxx' is not a venue; did you mean okx?"),
        ("binance-futures", "like: 'binance-futures' is not a venue; use binanceusdm"),
        ("./none.toml", "cannot be read: No such file or directory; correct the path"),
        ("./mine.toml", "leads back to"),
    ],
)
def test_what_a_file_of_ones_own_cannot_be_like(tmp_path: Path, like: str, error: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'name = "mine"\n\nlike = "{like}"\n')
    with pytest.raises(ValueError, match=r"mine.toml:3: ") as raised:
        parse_venue(str(file))
    assert error in str(raised.value)
