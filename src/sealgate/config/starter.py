"""The starter file of `sealgate config init`: what must be set, and every other setting as a comment.

What is commented out is the default, so that the file says what holds without being a second place for it.
"""

import textwrap
from collections.abc import Iterator
from itertools import groupby

from sealgate.config.manual import MANUAL
from sealgate.config.settings import ANY, Setting, all_settings
from sealgate.config.toml_text import plain_value, toml_text
from sealgate.config.venues import default_venue, settings_of

WIDTH = 100

_HEAD = """\
# Sealgate's configuration. Settings behind a "#" show the default, or an example where there is none.
# After each change: sealgate check --offline, then sealgate reload if the gateway runs already.
"""
# What the user must put in, and how the example names it.
_PASTED = {
    "base_url": "https://api.example.com",
    "keys.*.api_key": "PASTE_THE_API_KEY",
    "keys.*.secret": "file:main.secret",
}
# Examples of what has no default.
_EXAMPLES: dict[str, object] = {
    "listen.unix": "/run/sealgate/bots.sock",
    "listen.unix_group": "traders",
    "listen.tls_cert": "/etc/sealgate/cert.pem",
    "listen.tls_key": "/etc/sealgate/key.pem",
    "listen.client_ca": "/etc/sealgate/clients.pem",
    "admin.unix": "/run/sealgate/admin.sock",
    "signing.header_prefix": default_venue().header_prefix,
    "signing.encoding": "hex",
    "signing.secret_is": "utf8",
    "signing.target": "path",
    "upstream.ca_file": "/etc/sealgate/exchange-ca.pem",
    "limits.known": ["1200/60s"],
    "journal.file": "journal.db",
    "keys.*.session": "file:main.session",
    "keys.*.passphrase": "file:main.passphrase",
    "bots.*.token": "file:grid.token",
    "bots.*.uid": 1001,
    "bots.*.key": "main",
    "bots.*.keys": ["main", "alt"],
    "routes.*.match": "POST /v1/trade/orders/query",
    "routes.*.needs": "read",
    "routes.*.lane": "read",
    "routes.*.cost": 1,
}
_ONLY_SOME_WANT = ("passphrase", "uid")
_HEADERS = {"keys.*": "[keys.main]", "bots.*": "[bots.grid]", "routes.*": "[[routes]]"}


def starter_text() -> str:
    """Return the whole file. It is valid as it stands, but for what must be pasted."""
    ordered = sorted(filter(_is_of_use, all_settings()), key=_order)
    return _HEAD + "".join(_table(table, list(group)) for table, group in groupby(ordered, key=_table_name))


def _is_of_use(setting: Setting) -> bool:
    """Ask whether the venue wants it, where it is one that only some do."""
    name = str(setting.path[-1])
    return name not in _ONLY_SOME_WANT or default_venue().signing.needs(name) or setting.path[0] != "keys"


def _order(setting: Setting) -> int:
    """Put first what must be set."""
    return 0 if len(setting.path) == 1 else 1 if setting.path[0] == "keys" else 2


def _table_name(setting: Setting) -> str:
    return ".".join(map(str, setting.path[:-1]))


def _table(name: str, settings: list[Setting]) -> str:
    lines = list(_lines(settings))
    if not name:
        return "\n" + "\n".join(lines) + "\n"
    is_needed = ANY not in name or any(setting.name in _PASTED for setting in settings)
    header = _HEADERS.get(name, f"[{name}]")
    return "\n" + "\n".join([header if is_needed else f"#{header}", *lines]) + "\n"


def _lines(settings: list[Setting]) -> Iterator[str]:
    for setting in settings:
        line = f"{setting.path[-1]} = {toml_text(_value(setting))}"
        comment = _comment(setting)
        yield from textwrap.wrap(comment, WIDTH, initial_indent="# ", subsequent_indent="# ")
        yield line if setting.name in _PASTED else f"#{line}"


def _comment(setting: Setting) -> str:
    choices = f" One of {', '.join(setting.choices)}." if setting.choices else ""
    return f"{MANUAL[setting.name]}{choices}"


def _value(setting: Setting) -> object:
    if setting.name in _PASTED:
        return _PASTED[setting.name]
    if setting.name in _EXAMPLES:
        return _EXAMPLES[setting.name]
    set_by_venue = settings_of(default_venue())
    return set_by_venue.get(setting.path, plain_value(setting, setting.default))
