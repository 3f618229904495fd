"""What holds for one exchange: its own settings, else the common ones, else those of its venue's file."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, Self

from sealgate.config.names import SettingPath
from sealgate.venues.venue import Venue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sealgate.config.addresses import Address, BaseUrl
    from sealgate.config.settings import Clock, Key, Limits, Route, Signing, Upstream


class Tables(Protocol):
    """The settings that are about one exchange."""

    @property
    def venue(self) -> Venue: ...  # noqa: D102
    @property
    def base_url(self) -> "BaseUrl | None": ...  # noqa: D102
    @property
    def upstream(self) -> "Upstream": ...  # noqa: D102
    @property
    def signing(self) -> "Signing": ...  # noqa: D102
    @property
    def clock(self) -> "Clock": ...  # noqa: D102
    @property
    def limits(self) -> "Limits": ...  # noqa: D102
    @property
    def routes(self) -> "tuple[Route, ...]": ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class ExchangeConfig:
    """One exchange of a configuration. `at` is where its settings stand: () where the file is about it alone.

    `listen` is an address of its own, None for most. `keys` are those that are valid there.
    """

    name: str
    at: SettingPath
    listen: "Address | None"
    venue: Venue
    base_url: "BaseUrl"
    upstream: "Upstream"
    signing: "Signing"
    clock: "Clock"
    limits: "Limits"
    routes: "tuple[Route, ...]"
    keys: "Mapping[str, Key]"

    @classmethod
    def of(
        cls,
        name: str,
        at: SettingPath,
        tables: "Tables",
        keys: "Mapping[str, Key]",
        listen: "Address | None" = None,
    ) -> Self:
        """Put together what holds for an exchange. Its venue includes what overrides the file."""
        if tables.base_url is None:
            raise ValueError(f"no address is known of the exchange {name}")
        venue = overridden(tables.venue, tables.upstream.prefix, tables.signing)
        return cls(
            name,
            at,
            listen,
            venue,
            tables.base_url,
            tables.upstream,
            tables.signing,
            tables.clock,
            tables.limits,
            tables.routes,
            MappingProxyType({alias: _with_window(key, venue) for alias, key in keys.items()}),
        )


def overridden(venue: Venue, prefix: str, signing: "Signing") -> Venue:
    """Return a venue with the settings that stand in for what its file says."""
    return venue.overridden(
        prefix=prefix,
        header_prefix=signing.header_prefix,
        encoding=signing.encoding,
        secret=signing.secret_is,
        signs_query=None if signing.target is None else signing.target == "path_and_query",
    )


def _with_window(key: "Key", venue: Venue) -> "Key":
    """Return a key with the window of its venue, if nobody sets another one."""
    if "recv_window_ms" in key.model_fields_set:
        return key
    return key.model_copy(update={"recv_window_ms": venue.recv_window_ms})
