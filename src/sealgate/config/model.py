"""The tree: one frozen model per table of the configuration file, with the defaults of docs/configuration.md.

Every value is parsed here, once, into the type that its reader needs: an address, seconds, bytes. The checks
that need more than one value are in consistency.py.
"""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, Never

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from sealgate.config.addresses import Address, BaseUrl, parse_base_url, parse_optional_address, parse_redis
from sealgate.config.files import (
    parse_admin_socket,
    parse_ca_file,
    parse_group,
    parse_journal_file,
    parse_pem_file,
    parse_socket,
)
from sealgate.config.names import (
    parse_api_key,
    parse_header_prefix,
    parse_key_uid,
    parse_match,
    parse_name,
    parse_optional_path,
    parse_pointer,
    parse_prefix,
    split_match,
)
from sealgate.config.quantities import (
    KnownLimit,
    parse_aliases,
    parse_amount,
    parse_amounts,
    parse_count,
    parse_hosts,
    parse_known_limits,
    parse_list,
    parse_permissions,
    parse_seconds,
    parse_seconds_or_zero,
    parse_size,
    parse_symbols,
    parse_uid,
    parse_weight,
)
from sealgate.config.references import parse_reference
from sealgate.config.venues import default_venue, filled, parse_venue
from sealgate.core.venues.venue import Venue

OptionalAddress = Annotated[Address | None, PlainValidator(parse_optional_address)]
Hosts = Annotated[tuple[str, ...], PlainValidator(parse_hosts)]
Seconds = Annotated[float, PlainValidator(parse_seconds)]
SecondsOrZero = Annotated[float, PlainValidator(parse_seconds_or_zero)]
Count = Annotated[int, PlainValidator(parse_count)]
Weight = Annotated[float, PlainValidator(parse_weight)]
Size = Annotated[int, PlainValidator(parse_size)]
Uid = Annotated[int, PlainValidator(parse_uid)]
PemFile = Annotated[Path | None, PlainValidator(parse_pem_file)]
CaFile = Annotated[Path | None, PlainValidator(parse_ca_file)]
Reference = Annotated[str, PlainValidator(parse_reference)]
Name = Annotated[str, AfterValidator(parse_name)]
Permissions = Annotated[frozenset[str], PlainValidator(parse_permissions)]
Permission = Literal["read", "trade", "keys"]

_LOOPBACK_HOSTS = ("127.0.0.1", "localhost")


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Listen(_Table):
    """Where bots connect. `unix_group` is the group's number; without a `client_ca` no client certificate."""

    tcp: OptionalAddress = Address("127.0.0.1", 8787)
    unix: Annotated[Path | None, PlainValidator(parse_socket)] = None
    unix_mode: Literal["0600", "0660"] = "0600"
    unix_group: Annotated[int | None, PlainValidator(parse_group)] = None
    hosts: Hosts = _LOOPBACK_HOSTS
    max_body: Size = 1024**2
    head_timeout: Seconds = 10.0
    body_timeout: Seconds = 10.0
    max_connections: Count = 1000
    tls_cert: PemFile = None
    tls_key: PemFile = None
    client_ca: CaFile = None
    drain: SecondsOrZero = 3.0


class Admin(_Table):
    """Where metrics and health are read, and commands are taken. `unix` is "off", or None for the default."""

    tcp: OptionalAddress = Address("127.0.0.1", 8788)
    hosts: Hosts = _LOOPBACK_HOSTS
    unix: Annotated[Path | str | None, PlainValidator(parse_admin_socket)] = None


class Upstream(_Table):
    """How the exchange is reached. `prefix` has no slash at its end; "" is everything."""

    prefix: Annotated[str, PlainValidator(parse_prefix)] = ""
    connect_timeout: Seconds = 3.0
    total_timeout: Seconds = 10.0
    max_connections: Count = 32
    keep_alive: Seconds = 15.0
    warm: bool = True
    ca_file: CaFile = None


class Signing(_Table):
    """What of the venue's file is another way here; None: nothing. `Config.venue` has it in."""

    header_prefix: Annotated[str | None, PlainValidator(parse_header_prefix)] = None
    encoding: Literal["hex", "HEX", "base64", "base64url"] | None = None
    secret_is: Literal["utf8", "hex", "base64", "sha256hex"] | None = None
    target: Literal["path", "path_and_query"] | None = None


class Clock(_Table):
    """How the exchange's time is followed. `path` is "" where nothing says it."""

    path: Annotated[str, PlainValidator(parse_optional_path)] = ""
    field: Annotated[str, PlainValidator(parse_pointer)] = ""
    interval: Seconds = 30.0
    grace: SecondsOrZero = 10.0
    required: bool = True


class Limits(_Table):
    """How the shared rate limit is met. `redis` is a URL, or a reference to one that holds a password."""

    known: Annotated[tuple[KnownLimit, ...], PlainValidator(parse_known_limits)] = ()
    replay_429: Literal["all", "reads", "none"] = "all"
    max_wait: SecondsOrZero = 30.0
    queue: Count = 1000
    redis: Annotated[str, PlainValidator(parse_redis)] = ""


class Log(_Table):
    """What is logged, and how."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "console", "json"] = "auto"


class Journal(_Table):
    """What outlives the process; without a file nothing does. `keep` holds for replies in memory too."""

    file: Annotated[Path | None, PlainValidator(parse_journal_file)] = None
    keep: Seconds = 86400.0
    max_size: Size = 64 * 1024**2
    on_failure: Literal["refuse", "continue"] = "refuse"


class Key(_Table):
    """An API key: its public parts, and references to its secrets. `uid` is "" where the venue has none."""

    api_key: Annotated[str, PlainValidator(parse_api_key)]
    secret: Reference
    passphrase: Reference | None = None
    uid: Annotated[str, PlainValidator(parse_key_uid)] = ""
    session: Reference | None = None
    recv_window_ms: Count = 5000
    account: Name | None = None


class Policy(_Table):
    """What a bot's orders may be; None: no such rule. `max_size` is one amount, or a table by symbol."""

    symbols: Annotated[tuple[str, ...], PlainValidator(parse_symbols)] = ()
    max_size: Annotated[Decimal | Mapping[str, Decimal] | None, PlainValidator(parse_amounts)] = None
    max_notional: Annotated[Decimal | None, PlainValidator(parse_amount)] = None
    max_orders_per_minute: Count | None = None
    max_orders_per_day: Count | None = None
    reduce_only: bool = False
    observe: bool = False

    @property
    def is_set(self) -> bool:
        """Whether there is any rule."""
        return any(getattr(self, name) for name in type(self).model_fields if name != "observe")


class Bot(_Table):
    """A client: what it proves itself by, its keys as written (see `Config.keys_of`), its permissions."""

    token: Reference | None = None
    uid: Uid | None = None
    key: Name | None = None
    keys: Annotated[tuple[str, ...], PlainValidator(parse_aliases)] = ()
    may: Permissions = frozenset({"read", "trade"})
    weight: Weight = 1.0
    policy: Policy = Policy()


class Route(_Table):
    """A row for the route table: what it changes of the rule that would hold without it."""

    match: Annotated[str, PlainValidator(parse_match)]
    needs: Permission | None = None
    lane: Literal["cancel", "order", "read"] | None = None
    cost: Count | None = None
    share_s: SecondsOrZero | None = None

    @property
    def method(self) -> str:
        """The method that it is about."""
        return split_match(self.match)[0]

    @property
    def path(self) -> str:
        """The whole path, prefix included, with its {placeholders}."""
        return split_match(self.match)[1]


def _none() -> Mapping[str, Never]:
    return MappingProxyType({})


class Config(BaseSettings):
    """The whole configuration. Made by `load_config`, which also checks it across tables.

    `venue` has the overrides of `signing` and `upstream.prefix` in it; what its file says of other settings
    stands in those.
    """

    # Names in the environment are matched by sources.py, hence case_sensitive here.
    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, case_sensitive=True
    )

    venue: Annotated[Venue, PlainValidator(parse_venue)] = Field(default_factory=default_venue)
    base_url: Annotated[BaseUrl, PlainValidator(parse_base_url)]
    listen: Listen = Listen()
    admin: Admin = Admin()
    upstream: Upstream = Upstream()
    signing: Signing = Signing()
    clock: Clock = Clock()
    limits: Limits = Limits()
    log: Log = Log()
    journal: Journal = Journal()
    keys: Annotated[Mapping[Name, Key], AfterValidator(MappingProxyType)] = Field(default_factory=_none)
    bots: Annotated[Mapping[Name, Bot], AfterValidator(MappingProxyType)] = Field(default_factory=_none)
    routes: Annotated[tuple[Route, ...], BeforeValidator(parse_list)] = ()

    @model_validator(mode="before")
    @classmethod
    def _fill_by_venue(cls, tree: object) -> object:
        """Let the venue's file say what nobody set."""
        return filled(tree) if isinstance(tree, Mapping) else tree

    def model_post_init(self, _context: object, /) -> None:
        """Put the settings that override the venue's file into the venue."""
        signing = self.signing
        venue = self.venue.overridden(
            prefix=self.upstream.prefix,
            header_prefix=signing.header_prefix,
            encoding=signing.encoding,
            secret=signing.secret_is,
            signs_query=None if signing.target is None else signing.target == "path_and_query",
        )
        object.__setattr__(self, "venue", venue)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic-settings' interface
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic-settings' interface
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic-settings' interface
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic-settings' interface
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take the arguments alone: sources.py reads the rest, and names it in errors."""
        return (init_settings,)

    def keys_of(self, bot: str) -> tuple[str, ...]:
        """Return the aliases that a bot of `bots` may use, its default first."""
        chosen = self.bots[bot]
        named = (chosen.key,) if chosen.key else chosen.keys
        return named or tuple(self.keys)
