"""The short files of `config init`: what was answered, a bot and the journal; or one more exchange."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sealgate.config.listing import toml_text

_HEAD = """\
# Sealgate's configuration.
# After each change: sealgate check --offline, then sealgate reload if the gateway runs.
# Every setting, explained: sealgate config init --all{venue} --config all.toml
"""
_JOURNAL = """
[journal]
file = "journal.db"            # keeps orders in doubt over a crash
"""


@dataclass(frozen=True, slots=True)
class Answers:
    """What is known of an exchange and its key; "" for what it does not have.

    `title` is for people, `venue` is how the file names the exchange. The last four are references.
    """

    title: str
    venue: str
    environment: str = ""
    base_url: str = ""
    api_key: str = ""
    uid: str = ""
    secret: str = ""
    secret_passphrase: str = ""
    passphrase: str = ""


def first_file(answers: Answers, alias: str, bot: str, token: str) -> str:
    """Return a file about one exchange, with one bot. `token` is a reference."""
    venue = f" --venue {answers.venue}" if answers.venue else ""
    lines = (*_settings(answers, ("venue", "environment", "base_url")), "", *key_table(answers, alias))
    head = _HEAD.format(venue=venue)
    return f"{head}\n{_joined(lines)}\n{_joined(bot_table(bot, token))}{_JOURNAL}"


def further_tables(answers: Answers, exchange: str, alias: str, bot: Sequence[str] = ()) -> str:
    """Return the tables of one more exchange: of its key if that has an alias, and of a bot that is new."""
    lines = [f"# {answers.title}", f"[exchanges.{exchange}]"]
    lines += _settings(answers, ("venue", "environment", "base_url"))
    if alias:
        lines += ["", *key_table(answers, alias, exchange)]
    return _joined((*lines, *(["", *bot] if bot else [])))


def key_table(answers: Answers, alias: str, exchange: str = "") -> Iterator[str]:
    """Yield the lines of a key. It is valid at `exchange`, if the file has several."""
    yield f"[keys.{alias}]"
    if exchange:
        yield f"exchange = {toml_text(exchange)}"
    yield from _settings(answers, ("api_key", "uid", "secret", "secret_passphrase", "passphrase"))


def bot_table(bot: str, token: str, keys: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of a bot that may read and trade. `keys` are needed if the file has several."""
    yield f"[bots.{bot}]"
    yield f"token = {toml_text(token)}"
    if keys:
        yield f"keys = {toml_text([*keys])}"
    yield 'may = ["read", "trade"]        # ["read"]: it can place no order, whatever the key may'


def _settings(answers: Answers, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if value := getattr(answers, name):
            yield f"{name} = {toml_text(value)}"


def _joined(lines: Iterator[str] | Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
