"""The starter file of `sealgate config init`: what must be set, and every other setting as a comment.

What is commented out is the default, so that the file says what holds without being a second place for it.
"""

import textwrap
from collections.abc import Iterator
from itertools import groupby

from sealgate.config.listing import ANY, Setting, all_settings, plain_value, toml_text
from sealgate.config.tree import Config
from sealgate.config.venues import DEFAULT_VENUE, default_venue, settings_of, venue_text
from sealgate.venues.routes import Auth
from sealgate.venues.venue import Venue

WIDTH = 100

_HEAD = """\
# Sealgate's configuration. Settings behind a "#" show the default, or an example where there is none.
# After each change: sealgate check --offline, then sealgate reload if the gateway runs already.
"""
# What the user must put in, and how the example names it.
_PASTED: dict[str, object] = {
    "base_url": "https://api.example.com",
    "keys.*.api_key": "PASTE_THE_API_KEY",
    "keys.*.secret": "file:main.secret",
}
_PASTED_WHERE_WANTED = {"passphrase": "file:main.passphrase", "uid": "PASTE_THE_UID"}


def starter_text(venue: Venue | None = None, venue_name: str = "") -> str:
    """Return the whole file. It is valid as it stands, but for what must be pasted.

    `venue_name` is how the file is to name the venue, if not by its own name.
    """
    return _Starter(venue or default_venue(), venue_name).text()


def leftovers(config: Config) -> Iterator[tuple[str, str]]:
    """Yield cause and fix for what still stands as the starter file has it."""
    if str(config.base_url).rstrip("/") == _PASTED["base_url"]:
        yield f"base_url is still the example, {config.base_url}", "write the address of your exchange"
    for alias, key in config.keys.items():
        if key.api_key == _PASTED["keys.*.api_key"]:
            yield f"keys.{alias}.api_key is still the placeholder", "paste your API key"
        if key.uid == _PASTED_WHERE_WANTED["uid"]:
            yield f"keys.{alias}.uid is still the placeholder", "paste the id that the exchange gave you"


class _Starter:
    """The file for one venue."""

    def __init__(self, venue: Venue, venue_name: str) -> None:
        self._venue = venue
        self._is_default = venue.name == DEFAULT_VENUE
        self._set_by_venue = settings_of(venue)
        self._pasted = {**_PASTED, **({} if self._is_default else {"venue": venue_name or venue_text(venue)})}
        if venue.base_url:
            del self._pasted["base_url"]
        for name, example in _PASTED_WHERE_WANTED.items():
            if venue.signing.needs(name):
                self._pasted[f"keys.*.{name}"] = example

    def text(self) -> str:
        ordered = sorted(filter(self._is_of_use, all_settings()), key=_order)
        tables = groupby(ordered, key=lambda setting: ".".join(map(str, setting.path[:-1])))
        return self._head() + "".join(self._table(table, list(group)) for table, group in tables)

    def _head(self) -> str:
        if self._is_default:
            return _HEAD
        texts = (
            f"The exchange: {self._venue.title}.",
            self._venue.note,
            f"Its documentation: {self._venue.docs}",
        )
        return _HEAD + "".join(
            f"{line}\n" for text in texts[: 3 if self._venue.docs else 2] for line in _wrapped(text)
        )

    def _is_of_use(self, setting: Setting) -> bool:
        """Ask whether one exchange has it, and the venue wants it, where it is one that only some do."""
        table, name = setting.path[0], setting.path[-1]
        if table == "exchanges" or not {"exchange", "exchanges", "policies"}.isdisjoint(setting.path):
            return False  # the file is about one exchange
        if table == "signing":
            return self._is_default  # another file says all of it
        if table == "keys" and name == "session":
            return any(route.auth is Auth.SESSION for route in self._venue.routes)
        return table != "keys" or name not in _PASTED_WHERE_WANTED or setting.name in self._pasted

    def _table(self, name: str, settings: list[Setting]) -> str:
        lines = list(self._lines(settings))
        if not name:
            return "\n" + "\n".join(lines) + "\n"
        is_needed = ANY not in name or any(setting.name in self._pasted for setting in settings)
        header = _header(name)
        return "\n" + "\n".join([header if is_needed else f"#{header}", *lines]) + "\n"

    def _lines(self, settings: list[Setting]) -> Iterator[str]:
        for setting in settings:
            line = f"{setting.path[-1]} = {toml_text(self._value(setting))}"
            yield from _wrapped(_comment(setting))
            yield line if setting.name in self._pasted else f"#{line}"

    def _value(self, setting: Setting) -> object:
        if setting.name == "routes.*.match":
            return f"POST {self._venue.prefix}/orders/query"
        if setting.name == "signing.header_prefix":
            return self._venue.header_prefix
        if setting.name in self._pasted:
            return self._pasted[setting.name]
        by_venue = self._set_by_venue.get(setting.path)
        if by_venue or (by_venue is not None and setting.example is None):
            return by_venue
        return plain_value(setting.default) if setting.example is None else setting.example


def _header(table: str) -> str:
    """Return the header of a table; where users choose the name, with the example of the model."""
    top, _, below = table.partition(".")
    if not below:
        return f"[{table}]"
    examples = Config.model_fields[top].examples
    return f"[{table.replace(ANY, examples[0])}]" if examples else f"[[{top}]]"


def _order(setting: Setting) -> int:
    """Put first what must be set."""
    return 0 if len(setting.path) == 1 else 1 if setting.path[0] == "keys" else 2


def _comment(setting: Setting) -> str:
    choices = f" One of {', '.join(setting.choices)}." if setting.choices else ""
    return f"{setting.description}{choices}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
