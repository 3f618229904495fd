"""The starter file of `sealgate config init`: what must be set, and every other setting as a comment.

What is commented out is the default, so that the file says what holds without being a second place for it.
"""

import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby

from sealgate.config.listing import ANY, Setting, all_settings, plain_value, toml_text
from sealgate.config.names import SettingPath, dotted
from sealgate.config.tree import Config, ExchangeConfig
from sealgate.config.venues import DEFAULT_VENUE, default_venue, settings_of, venue_text
from sealgate.venues.key_kinds import Kind
from sealgate.venues.routes import Auth
from sealgate.venues.venue import Venue

WIDTH = 100

_HEAD = """\
# Sealgate's configuration. Commented-out settings show their default, or an example if they have none.
# After each change: sealgate check --offline, then sealgate reload if the gateway runs already.
"""
_PATHS = (
    "Bots write the exchange's name in front of its path: http://127.0.0.1:8787/{name}/… is for {name}. "
    "Tables such as [{table}] hold for one exchange; those without a name, further below, for all."
)
_EXAMPLE_HOST = "example.com"  # RFC 2606: nobody has it
# What the user must put in, and how the example names it. NAME is the key's.
_PASTED = {
    "base_url": f"https://api.{_EXAMPLE_HOST}",
    "keys.*.secret": "file:NAME.secret",
}
_PASTED_WHERE_WANTED = {
    "api_key": "PASTE_THE_API_KEY",
    "passphrase": "file:NAME.passphrase",
    "uid": "PASTE_THE_UID",
}
_ONE_KEY = "main"
_OF_SEVERAL = frozenset({"exchange", "exchanges", "policies"})
_BY_VENUE = "pools"  # each venue has others, and a user names them


def starter_text(venue: Venue | None = None, venue_name: str = "") -> str:
    """Return the whole file. It is valid as it stands, but for what must be pasted.

    `venue_name` is how the file is to name the venue, if not by its own name.
    """
    one = _Exchange(venue or default_venue(), venue_name)
    settings = sorted(filter(one.has, all_settings()), key=_order)
    tables, told = groupby(settings, key=lambda setting: setting.path[:-1]), set[str]()
    about = "" if one.is_default else "".join(f"{line}\n" for line in one.about())
    texts = (one.table(_header(table), list(group), told) for table, group in tables)
    return _HEAD + about + "".join((*texts, one.pools()))


def starter_of_several(venues: Mapping[str, tuple[Venue, str]]) -> str:
    """Return the file for several exchanges by name, each with its venue and how the file is to name that."""
    exchanges = [_Exchange(venue, venue_name, name) for name, (venue, venue_name) in venues.items()]
    first, settings = exchanges[0], all_settings()
    paths = _wrapped(_PATHS.format(name=first.name, table=f"exchanges.{first.name}.limits"))
    parts = [_HEAD, *(f"{line}\n" for line in paths)]
    told: set[str] = set()
    parts.append(first.table("", [one for one in settings if one.path == ("cmd_env",)], told))
    # 1. What must be set: the exchanges, a key for each, a bot that has them all. What it means is told once.
    for exchange in exchanges:
        own = [one for one in settings if one.path[:-1] == ("exchanges", ANY)]
        shown = own if exchange is first else [one for one in own if one.name in exchange.pasted]
        parts.append(exchange.table(f"[exchanges.{exchange.name}]", shown, told, exchange.about()))
    for exchange in exchanges:
        own = [one for one in settings if one.path[0] == "keys" and exchange.has(one)]
        shown = own if exchange is first else [one for one in own if one.name in exchange.pasted]
        parts.append(exchange.table(f"[keys.{exchange.name}]", shown, told))
    first.pasted |= {"bots.*.token": "file:grid.token", "bots.*.keys": list(venues)}
    # 2. All else, once. What the venues' files say is not the same for all.
    by_venues = {path for exchange in exchanges for path in settings_of(exchange.venue)}
    rest = [
        one
        for one in settings
        if len(one.path) > 1
        and one.path[0] not in {"exchanges", "keys", "signing"}
        and one.path not in by_venues
        and one.name != "bots.*.key"
        and "policies" not in one.path
        and _BY_VENUE not in one.path
    ]
    rest.sort(key=lambda setting: setting.path[0] != "bots")
    for table, group in groupby(rest, key=lambda setting: setting.path[:-1]):
        header = f"[[exchanges.{first.name}.routes]]" if table[0] == "routes" else _header(table)
        parts.append(first.table(header, list(group), told))
    return "".join((*parts, *(exchange.pools() for exchange in exchanges)))


def leftovers(exchanges: Collection[ExchangeConfig]) -> Iterator[tuple[str, str]]:
    """Yield cause and fix for what still stands as the starter file has it."""
    for exchange in exchanges:
        if exchange.base_url.host.endswith(f".{_EXAMPLE_HOST}"):
            name = dotted((*exchange.at, "base_url"))
            yield f"{name} is still the example, {exchange.base_url}", "write the address of your exchange"
    for alias, key in {alias: key for exchange in exchanges for alias, key in exchange.keys.items()}.items():
        if key.api_key == _PASTED_WHERE_WANTED["api_key"]:
            yield f"keys.{alias}.api_key is still the placeholder", "paste your API key"
        if key.uid == _PASTED_WHERE_WANTED["uid"]:
            yield f"keys.{alias}.uid is still the placeholder", "paste the id that the exchange gave you"


class _Exchange:
    """What the file says of an exchange. Without a name, the file is about it alone.

    `pasted` are the settings that are no comment, by name.
    """

    def __init__(self, venue: Venue, venue_name: str, name: str = "") -> None:
        self.name = name
        self.venue = venue
        self.is_default = venue.name == DEFAULT_VENUE
        self._set_by_venue = settings_of(venue)
        table, key = "exchanges.*." if name else "", name or _ONE_KEY
        wanted = {f"keys.*.{one}": _PASTED_WHERE_WANTED[one] for one in self._wanted()}
        examples = {**_PASTED, **wanted}
        self.pasted: dict[str, object] = {one: text.replace("NAME", key) for one, text in examples.items()}
        if name:
            url = f"https://{name}.{_EXAMPLE_HOST}"
            self.pasted |= {"exchanges.*.base_url": url, "keys.*.exchange": name}
        if venue.base_url:
            del self.pasted[f"{table}base_url"]
        if not self.is_default:
            self.pasted[f"{table}venue"] = venue_name or venue_text(venue)

    def _wanted(self) -> Iterator[str]:
        return (one for one in _PASTED_WHERE_WANTED if self.venue.signing.needs(one))

    def _private_kinds(self) -> list[Kind]:
        return [kind for kind in self.venue.schemes if kind is not Kind.HMAC]

    def about(self) -> list[str]:
        """Return what the venue's file says to people, as comments."""
        venue = self.venue
        texts = [f"The exchange: {venue.title}.", venue.note]
        if venue.signing.is_static:
            texts.append("Each request carries the secret itself.")
        if venue.docs:
            texts.append(f"Its documentation: {venue.docs}")
        return [line for text in texts for line in _wrapped(text)]

    def has(self, setting: Setting) -> bool:
        """Ask whether one exchange has it, and the venue wants it, where it is one that only some do."""
        table, name = setting.path[0], setting.path[-1]
        if setting.name in self.pasted:
            return True
        if not _OF_SEVERAL.isdisjoint(setting.path) or _BY_VENUE in setting.path:
            return False
        wants = {
            "environment": bool(self.venue.environments),
            "limits.known": bool(self.venue.limits.whole),
            "keys.*.kind": bool(self._private_kinds()),
            "keys.*.secret_passphrase": bool(self._private_kinds()),
        }
        if setting.name in wants:
            return wants[setting.name]
        if table == "signing":
            return self.is_default  # another file says all of it
        if table == "keys" and name == "session":
            return any(route.auth is Auth.SESSION for route in self.venue.routes)
        return table != "keys" or name not in _PASTED_WHERE_WANTED

    def table(self, header: str, settings: list[Setting], told: set[str], about: Iterable[str] = ()) -> str:
        """Return a table: a comment as a whole if the user chooses its name and nothing in it must be set.

        `told` are the settings that the file has explained already, by name; these are added.
        """
        lines = [*about, *self._lines(settings, told)]
        is_needed = "." not in header or any(setting.name in self.pasted for setting in settings)
        top = [header if is_needed and "[[" not in header else f"#{header}"] if header else []
        return "\n" + "\n".join([*top, *lines]) + "\n"

    def pools(self) -> str:
        """Return the published limits of its pools, as comments; but for one that `limits.known` is about."""
        whole = self.venue.limits.whole
        pools = [one for one in self.venue.limits.pools if one.known and (one is not whole or self.name)]
        if not pools:
            return ""
        table = f"exchanges.{self.name}.limits.pools" if self.name else "limits.pools"
        lines = _wrapped(f"What {self.venue.title} counts together, and the published limits of each.")
        for one in pools:
            lines += [f"#[{table}.{one.name}]", f"#known = {toml_text(list(one.known))}"]
        return "\n" + "\n".join(lines) + "\n"

    def _lines(self, settings: list[Setting], told: set[str]) -> Iterator[str]:
        for setting in settings:
            line = f"{setting.path[-1]} = {toml_text(self._value(setting))}"
            if setting.name not in told:
                yield from _wrapped(_comment(setting, self.venue))
            told.add(setting.name)
            yield line if setting.name in self.pasted else f"#{line}"

    def _value(self, setting: Setting) -> object:
        of_venue = {
            "routes.*.match": f"POST {self.venue.prefix}/orders/query",
            "keys.*.kind": next(iter(self._private_kinds()), setting.example),
            "signing.header_prefix": self.venue.header_prefix,
        }
        if setting.name in of_venue:
            return of_venue[setting.name]
        if setting.path[-1] == "environment":
            return next(iter(self.venue.environments), setting.example)
        if setting.name in self.pasted:
            return self.pasted[setting.name]
        path = setting.path[2:] if setting.path[0] == "exchanges" else setting.path
        by_venue = self._set_by_venue.get(path)
        if by_venue or (by_venue is not None and setting.example is None):
            return by_venue
        example = setting.example
        if self.name and setting.path[0] == "keys" and isinstance(example, str):
            example = example.replace(_ONE_KEY, self.name)
        return plain_value(setting.default) if example is None else example


def _header(table: SettingPath) -> str:
    """Return the header of a table; where users choose the name, with the example of the model."""
    name = ".".join(map(str, table))
    if ANY not in table:
        return f"[{name}]" if table else ""
    examples = Config.model_fields[str(table[0])].examples
    return f"[{name.replace(ANY, examples[0])}]" if examples else f"[[{table[0]}]]"


def _order(setting: Setting) -> int:
    """Put first what must be set."""
    return 0 if len(setting.path) == 1 else 1 if setting.path[0] == "keys" else 2


def _comment(setting: Setting, venue: Venue) -> str:
    choices = [kind.value for kind in venue.schemes] if setting.name == "keys.*.kind" else setting.choices
    told = f" One of {', '.join(choices)}." if choices else ""
    return f"{setting.description}{told}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
