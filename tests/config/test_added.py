"""An exchange added to the text of a configuration file: what was there stays, and means the same."""

import tomllib

import pytest

from sealgate.config.added import Exchange, NotAddedError, with_exchange

NEW = '[exchanges.kraken]\nvenue = "kraken"\n'
KRAKEN = Exchange("kraken", NEW, "kraken")


def added(text: str, new: Exchange = KRAKEN, only: str = "bybit") -> str:
    return with_exchange(text, only, new).text


def test_a_file_about_one_exchange() -> None:
    text = """\
# what this is

# the exchange
venue = "bybit"   # since May
cmd_env = [
    "A",          # a # b
]
# its network
environment = "test"

# the keys
[keys.main]
api_key = "x"

[limits.pools."weight"]
known = ["1/1s"]
[[routes]]
match = "GET /[limits]"
  [ upstream ]
ca_file = '''
[limits]'''
"""
    assert (
        added(text)
        == """\
# what this is

cmd_env = [
    "A",          # a # b
]

[exchanges.bybit]
# the exchange
venue = "bybit"   # since May
# its network
environment = "test"

# the keys
[keys.main]
exchange = "bybit"
api_key = "x"

[exchanges.bybit.limits.pools."weight"]
known = ["1/1s"]
[[exchanges.bybit.routes]]
match = "GET /[limits]"
  [ exchanges.bybit.upstream ]
ca_file = '''
[limits]'''

[exchanges.kraken]
venue = "kraken"
"""
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # without a line end, without a blank line, without anything
        ('venue = "bybit"', '[exchanges.bybit]\nvenue = "bybit"\n'),
        (
            'venue = "bybit"\n[keys.main]',
            '[exchanges.bybit]\nvenue = "bybit"\n\n[keys.main]\nexchange = "bybit"\n',
        ),
        ("", "[exchanges.bybit]\n"),
        ("# about\n[log]\n", "[exchanges.bybit]\n# about\n[log]\n"),
        ("cmd_env = []", "cmd_env = []\n\n[exchanges.bybit]\n"),
        ('cmd_env = []\n\nvenue = "bybit"\n', 'cmd_env = []\n\n[exchanges.bybit]\nvenue = "bybit"\n'),
        ('upstream.prefix = "/v1"\n', '[exchanges.bybit]\nupstream.prefix = "/v1"\n'),
    ],
)
def test_the_table_of_the_one_exchange(before: str, after: str) -> None:
    assert added(before) == f"{after}\n{NEW}"
    tomllib.loads(added(before))


def test_a_file_about_several_exchanges_gets_tables_at_its_end() -> None:
    text = '[exchanges.bybit]\nvenue = "bybit"\n[limits]\nmax_wait = 7\n[keys.main]\nexchange = "bybit"\n'
    result = with_exchange(text, "bybit", KRAKEN)
    assert (result.text, result.changes) == (f"{text}\n{NEW}", ())


@pytest.mark.parametrize(
    ("bots", "chosen", "keys"),
    [
        ("[bots.grid]\n", (), 'key = "main"\n'),
        ("[bots.grid]\n", ("grid",), 'keys = ["main", "kraken"]\n'),
        ('[bots.grid]\nkey = "main"  # "#"\n', ("grid",), 'keys = ["main", "kraken"]  # "#"\n'),
        ('[bots.grid]\nkeys = ["main"]\n', ("grid",), 'keys = ["main", "kraken"]\n'),
        ('[bots.grid]\nkeys = ["main"]', (), 'keys = ["main"]\n'),
        (
            '[bots.grid]\nkey = "#a" #b\n[bots.x]\nkey = "main"\n',
            ("x",),
            'key = "#a" #b\n[bots.x]\nkeys = ["main", "kraken"]\n',
        ),
        ('[bots.grid]\nkey = "#a" #b\n', ("grid",), 'keys = ["#a", "kraken"] #b\n'),
    ],
)
def test_a_bot_keeps_its_keys_and_gets_another_only_if_it_is_chosen(
    bots: str, chosen: tuple[str, ...], keys: str
) -> None:
    text = f'[exchanges.bybit]\n[keys.main]\nexchange = "bybit"\n{bots}'
    head = text.partition("[bots.grid]\n")[0]
    new = Exchange("kraken", NEW, "kraken", bots=chosen)
    assert added(text, new) == f"{head}[bots.grid]\n{keys}\n{NEW}"


def test_a_key_of_the_file_is_valid_at_the_new_exchange_too() -> None:
    new = Exchange("perp", "[exchanges.perp]\n", "main", has_key=True)
    one = added('venue = "bybit"\n[keys.main]\n[bots.grid]\n', new)
    assert tomllib.loads(one)["keys"] == {"main": {"exchanges": ["bybit", "perp"]}}
    assert tomllib.loads(one)["bots"] == {"grid": {}}
    more = added(one, Exchange("papi", "[exchanges.papi]\n", "main", has_key=True))
    assert tomllib.loads(more)["keys"] == {"main": {"exchanges": ["bybit", "perp", "papi"]}}


def test_each_change_is_told() -> None:
    text = 'venue = "bybit"\n[limits]\n[keys.main]\n[bots.grid]\n'
    changes = with_exchange(text, "bybit", Exchange("kraken", NEW, "kraken", bots=("grid",))).changes
    assert changes == (
        "venue and limits moved below [exchanges.bybit]: for that exchange alone",
        'keys.main is valid there: exchange = "bybit"',
        'bots.grid may use main and kraken: keys = ["main", "kraken"]',
    )
    assert with_exchange('base_url = "x"\n', "bybit", KRAKEN).changes == (
        "base_url moved below [exchanges.bybit]: for that exchange alone",
    )
    assert with_exchange("", "bybit", KRAKEN).changes == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[keys]\nmain = {}\n", "keys.main does not stand below a header [keys.main]"),
        ("keys.main.api_key = 'x'\n", "keys.main does not stand below a header [keys.main]"),
        (
            "[exchanges.bybit]\n[keys.main]\nexchange = 'bybit'\n[bots.grid]\nkeys = [\n'main',\n]\n",
            "bots.grid.keys is written on several lines",
        ),
    ],
)
def test_what_cannot_be_changed_line_by_line_is_refused(text: str, why: str) -> None:
    with pytest.raises(NotAddedError) as refused:
        added(text, Exchange("kraken", NEW, "kraken", bots=("grid",)))
    assert str(refused.value) == why
