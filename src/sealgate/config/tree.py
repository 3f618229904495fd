"""The tree: the whole configuration, and the settings in effect for each exchange."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Protocol, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from sealgate.config import values
from sealgate.config.addresses import Address, BaseUrl, OwnAddress
from sealgate.config.names import SettingPath
from sealgate.config.pools import limit_rules
from sealgate.config.settings import (
    Admin,
    Bot,
    Clock,
    Exchange,
    Journal,
    Key,
    Limits,
    Listen,
    Log,
    Route,
    Signing,
    Upstream,
    none,
)
from sealgate.config.venues import DEFAULT_VENUE, default_venue, filled
from sealgate.venues.limit_rules import LimitRules, PoolRule
from sealgate.venues.venue import Venue


class Tables(Protocol):
    """The settings that concern one exchange."""

    @property
    def venue(self) -> Venue: ...  # noqa: D102
    @property
    def environment(self) -> str: ...  # noqa: D102
    @property
    def base_url(self) -> BaseUrl | None: ...  # noqa: D102
    @property
    def upstream(self) -> Upstream: ...  # noqa: D102
    @property
    def signing(self) -> Signing: ...  # noqa: D102
    @property
    def clock(self) -> Clock: ...  # noqa: D102
    @property
    def limits(self) -> Limits: ...  # noqa: D102
    @property
    def routes(self) -> tuple[Route, ...]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class ExchangeConfig:
    """The settings of one exchange. `at` is the path of its table, () in a file without [exchanges].

    `listen` is an address of its own, None for most. `keys` are those that are valid there. `limit_rules` are
    what the venue's file and the configuration say together.
    """

    name: str
    at: SettingPath
    listen: Address | None
    venue: Venue
    environment: str
    base_url: BaseUrl
    upstream: Upstream
    signing: Signing
    clock: Clock
    limits: Limits
    routes: tuple[Route, ...]
    keys: Mapping[str, Key]
    limit_rules: LimitRules

    @property
    def pools(self) -> tuple[PoolRule, ...]:
        """The pools of its rate limits, by the venue's file and the configuration."""
        return self.limit_rules.pools

    @property
    def title(self) -> str:
        """Its name for people, with its environment if it has one."""
        return f"{self.venue.title} ({self.environment})" if self.environment else self.venue.title

    @classmethod
    def of(
        cls,
        name: str,
        at: SettingPath,
        tables: Tables,
        keys: Mapping[str, Key],
        listen: Address | None = None,
    ) -> Self:
        """Assemble the settings of an exchange. Its venue includes the settings that override the file."""
        if tables.base_url is None:
            raise ValueError(f"the exchange {name} has no base URL")
        signing = tables.signing
        venue = tables.venue.overridden(
            prefix=tables.upstream.prefix,
            header_prefix=signing.header_prefix,
            encoding=signing.encoding,
            secret=signing.secret_is,
            signs_query=None if signing.target is None else signing.target == "path_and_query",
        )
        return cls(
            name,
            at,
            listen,
            venue,
            tables.environment,
            tables.base_url,
            tables.upstream,
            tables.signing,
            tables.clock,
            tables.limits,
            tables.routes,
            MappingProxyType({alias: _with_window(key, venue) for alias, key in keys.items()}),
            limit_rules(venue, tables.limits, tables.routes),
        )


def _with_window(key: Key, venue: Venue) -> Key:
    """Return a key with the receive window of its venue, unless the key sets its own."""
    if "recv_window_ms" in key.model_fields_set:
        return key
    return key.model_copy(update={"recv_window_ms": venue.recv_window_ms})


class Config(BaseSettings):
    """The whole configuration. Made by `load_config`, which also checks it across tables.

    `served` are the exchanges by name, each with its settings in effect. Without [exchanges], there is one,
    of the top-level tables; with them, each exchange inherits the top-level tables.
    """

    # Names in the environment are matched by sources.py, hence case_sensitive here.
    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, case_sensitive=True
    )

    venue: values.VenueName = Field(
        default_factory=default_venue,
        json_schema_extra={"default": DEFAULT_VENUE},
        description="The exchange: a name that `sealgate venues` lists, or the path of your own venue file.",
    )
    base_url: values.ExchangeUrl | None = Field(
        description="The exchange's base URL: https, or http if it is on this machine."
    )
    environment: values.EnvironmentName = Field(
        default="",
        description="The exchange's test or demo network, by a name of the venue's file.",
        examples=["test"],
    )
    cmd_env: values.Variables = Field(
        default=(),
        description="Environment variables to pass to cmd: programs, besides PATH, HOME and the like.",
        examples=["VAULT_*"],
    )
    listen: Listen = Listen()
    admin: Admin = Admin()
    upstream: Upstream = Field(default_factory=Upstream)
    signing: Signing = Signing()
    clock: Clock = Clock()
    limits: Limits = Field(default_factory=Limits)
    log: Log = Log()
    journal: Journal = Journal()
    exchanges: Annotated[Mapping[values.ExchangeName, Exchange], AfterValidator(MappingProxyType)] = Field(
        default_factory=none, examples=["spot"]
    )
    keys: Annotated[Mapping[values.Name, Key], AfterValidator(MappingProxyType)] = Field(
        default_factory=none, examples=["main"]
    )
    bots: Annotated[Mapping[values.Name, Bot], AfterValidator(MappingProxyType)] = Field(
        default_factory=none, examples=["grid"]
    )
    routes: Annotated[tuple[Route, ...], values.LIST] = ()

    @model_validator(mode="before")
    @classmethod
    def _fill_by_venue(cls, tree: object) -> object:
        """Fill settings that are not set from the venues' files."""
        return filled(tree) if isinstance(tree, Mapping) else tree

    @cached_property
    def served(self) -> Mapping[str, ExchangeConfig]:
        """The exchanges by name, with their settings in effect. Without [exchanges], the venue's name."""
        if not self.exchanges:
            one = ExchangeConfig.of(self.venue.name, (), self, self.keys)
            return MappingProxyType({one.name: one})
        return MappingProxyType(
            {
                name: ExchangeConfig.of(
                    name,
                    ("exchanges", name),
                    exchange,
                    {alias: key for alias, key in self.keys.items() if name in self.exchanges_of(alias)},
                    exchange.listen,
                )
                for name, exchange in self.exchanges.items()
            }
        )

    @property
    def exchange_urls(self) -> str:
        """The base URLs of all exchanges in one text, by which commands recognize a gateway."""
        return " ".join(str(exchange.base_url) for exchange in self.served.values())

    @property
    def own_addresses(self) -> tuple[OwnAddress, ...]:
        """The listen addresses of single exchanges, then those of single bots."""
        exchanges = (OwnAddress(one.listen, exchange=at) for at, one in self.exchanges.items() if one.listen)
        bots = (OwnAddress(one.listen, bot=name) for name, one in self.bots.items() if one.listen)
        return *exchanges, *bots

    def secret_references(self) -> Iterator[str]:
        """Yield the reference of each secret, as written."""
        for key in self.keys.values():
            yield from filter(None, (key.secret, key.secret_passphrase, key.passphrase, key.session))
        yield from filter(None, (bot.token for bot in self.bots.values()))
        yield from filter(None, (exchange.upstream.proxy_password for exchange in self.served.values()))

    def with_tables(self, **tables: object) -> Self:
        """Return a copy with other tables."""
        copied = self.model_copy(update=tables)
        copied.__dict__.pop("served", None)  # derived from the tables
        return copied

    def exchanges_of(self, alias: str) -> tuple[str, ...]:
        """Return the names of the exchanges where an API key is valid."""
        key = self.keys[alias]
        named = (key.exchange,) if key.exchange else key.exchanges
        return named if self.exchanges else (self.venue.name,)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic-settings' interface
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic-settings' interface
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic-settings' interface
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use the sources read by sources.py, or only the arguments; ignore the environment."""
        if isinstance(init_settings, InitSettingsSource) and "trees" in init_settings.init_kwargs:
            trees = init_settings.init_kwargs["trees"]
            return tuple(InitSettingsSource(settings_cls, tree) for tree in trees)
        return (init_settings,)

    @classmethod
    def of_trees(cls, trees: Sequence[Mapping[str, object]]) -> "Config":
        """Validate the settings of several sources, the strongest first. Raises ValidationError."""
        return cls(trees=trees)  # type: ignore[call-arg]  # for `settings_customise_sources`

    def keys_of(self, bot: str) -> tuple[str, ...]:
        """Return the aliases of the API keys that a bot may use, its default first."""
        chosen = self.bots[bot]
        named = (chosen.key,) if chosen.key else chosen.keys
        return named or tuple(self.keys)
