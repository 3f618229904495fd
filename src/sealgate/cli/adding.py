"""What `config init` makes of the answers: a first file, or an old one in which all else means the same."""

import os
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import urlsplit

from sealgate.cli.answers import Answering
from sealgate.config import Config, ConfigError
from sealgate.config.added import Exchange, NotAddedError, with_exchange
from sealgate.config.first_file import Answers, bot_table, first_file, further_tables
from sealgate.config.load import load_text
from sealgate.config.names import LONGEST_NAME, OF_EXCHANGE
from sealgate.machine.terminal import leave_with_error
from sealgate.venues.venue import Venue

_NAMED = ("exchanges", "keys", "bots")


class Written(NamedTuple):
    """A configuration, what was changed in it, the exchange that is new, and a bot for it, or ""."""

    text: str
    changes: tuple[str, ...]
    exchange: str
    bot: str


def first(answering: Answering, venue: Venue) -> Written:
    """Answer for the first exchange of a new file."""
    if alias := answering.given.get("key"):
        leave_with_error(f"--key: {answering.file} is new and has no key {alias}; leave the option out")
    answers = answering.key(venue, answering.of(venue), "main", {})
    bot = answering.new_bot()
    answering.complete()
    return Written(first_file(answers, "main", bot, answering.secrets.token(bot)), (), venue.name, bot)


def one_more(answering: Answering, venue: Venue, before: str) -> Written:
    """Answer for one more exchange of a file; leave if the file's text cannot have it as it is written."""
    try:
        old = load_text(before, answering.file, os.environ)
    except ConfigError as error:
        text = f"{answering.file} was not changed, as it is not valid; correct this first:"
        leave_with_error(f"{text}\n{error}")
    answers = answering.of(venue)
    name = _free_name(answering, venue, answers, old)
    alias = answering.key_of(old, _of_same_site(old, answers.base_url or venue.base_url))
    has_key = bool(alias)
    if not has_key:
        alias = _free(name, old.keys)
        answers = answering.key(venue, answers, alias, {one: key.api_key for one, key in old.keys.items()})
    may_already = has_key and any(alias in old.keys_of(one) for one in old.bots)
    bot = "" if may_already and "bot" not in answering.given else answering.bot_of(old)
    answering.complete()
    return _added(answering, before, old, answers, Exchange(name, "", alias, has_key, (bot,) if bot else ()))


def _of_same_site(old: Config, base_url: str) -> list[str]:
    """Return the keys that are valid at hosts of the same site: one company's key may hold at several."""
    site = _site(urlsplit(base_url).hostname or "")
    return [alias for one in old.served.values() if _site(one.base_url.host) == site for alias in one.keys]


def _site(host: str) -> list[str]:
    return host.rsplit(".", 2)[-2:]


def _added(answering: Answering, before: str, old: Config, answers: Answers, new: Exchange) -> Written:
    """Add an exchange to a file's text; `new` has no tables yet, and the bot that was chosen."""
    bot = next(iter(new.bots), "")
    is_new_bot = bool(bot) and bot not in old.bots
    table = [*bot_table(bot, answering.secrets.token(bot), [new.key])] if is_new_bot else []
    tables = further_tables(answers, new.name, "" if new.has_key else new.key, table)
    whole = Exchange(new.name, tables, new.key, new.has_key, () if is_new_bot else new.bots)
    only = next(iter(old.served))
    try:
        added = with_exchange(before, only, whole)
        config = load_text(added.text, answering.file, os.environ)
        _check_names(old, config, new, bot)
        _check_rest(old, config, bot)
    except (NotAddedError, ConfigError) as error:
        leave_with_error(_by_hand(answering, str(error), old, tables))
    changes = [
        *added.changes,
        f"[exchanges.{new.name}] is new" + ("" if new.has_key else f", and so is [keys.{new.key}]"),
    ]
    if is_new_bot:
        changes.append(f"[bots.{bot}] is new" + ("" if old.bots else ": from now on, each bot needs a token"))
    gained = [name for name in old.bots if new.has_key and new.key in old.keys_of(name)]
    if gained:
        changes.append(f"{', '.join(gained)} may use it as well, with the key {new.key}")
    if not old.exchanges:
        address = f"http://{config.listen.tcp}/{only}"
        changes.append(f"bots now write the exchange's name before its paths: {address}/…")
    may = bot or next((one for one in config.bots if new.key in config.keys_of(one)), "")
    return Written(added.text, tuple(changes), new.name, may)


def _check_names(old: Config, new: Config, added: Exchange, bot: str) -> None:
    """Raise NotAddedError if a new file has other exchanges, keys or bots than the old ones and the added."""
    expected = {
        "exchanges": {*old.served, added.name},
        "keys": {*old.keys, added.key},
        "bots": {*old.bots, *([bot] if bot else ())},
    }
    found = {"exchanges": {*new.served}, "keys": {*new.keys}, "bots": {*new.bots}}
    for table, names in expected.items():
        if names != found[table]:
            raise NotAddedError(f"{table} would have others: {', '.join(sorted(names ^ found[table]))}")


def _check_rest(old: Config, new: Config, bot: str) -> None:
    """Raise NotAddedError if a new file says something else of what was in the old one, but for one bot."""
    for table in Config.model_fields.keys() - {*OF_EXCHANGE, *_NAMED}:
        if getattr(old, table) != getattr(new, table):
            raise NotAddedError(f"{table} would change")
    for name, one in old.served.items():
        for setting in (*OF_EXCHANGE, "listen"):
            if getattr(one, setting) != getattr(new.served[name], setting):
                raise NotAddedError(f"{setting} of {name} would change")
        if [*one.keys] != [*new.served[name].keys]:
            raise NotAddedError(f"the keys of {name} would change")
    for name in old.bots:
        if name != bot and old.keys_of(name) != new.keys_of(name):
            raise NotAddedError(f"the keys of the bot {name} would change")


def _free_name(answering: Answering, venue: Venue, answers: Answers, old: Config) -> str:
    """Return what the exchange is called in the file: as its venue, or with its environment behind."""
    name = venue.name[:LONGEST_NAME]
    other = f"{name}-{answers.environment}"[:LONGEST_NAME]
    if name in old.served and (not answers.environment or other in old.served):
        leave_with_error(
            f"{answering.file} has the exchange {name} already and was not changed; edit it there"
        )
    return other if name in old.served else name


def _free(name: str, taken: Collection[str]) -> str:
    """Return a name that is not taken."""
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return next(one for one in (name, *numbered) if one not in taken)


def _by_hand(answering: Answering, why: str, old: Config, tables: str) -> str:
    """Return why a file was not changed, and how to do it by hand."""
    only = next(iter(old.served))
    tables_of_it = "the tables upstream, signing, clock, limits and routes"
    steps = (
        f"put venue, base_url and environment below [exchanges.{only}]",
        f"begin the names of {tables_of_it} with exchanges.{only}",
        f'write exchange = "{only}" in each key',
        "write key = in each bot that has neither key nor keys",
    )
    lines = (
        f"- {step}"
        for step in (*(() if old.exchanges else steps), "add the lines below, and store the secrets")
    )
    return "\n".join((f"{answering.file} was not changed: {why}", "By hand:", *lines, *tables.splitlines()))
