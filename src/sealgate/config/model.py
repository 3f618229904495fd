"""The tree: one frozen model per table of the configuration file, with the defaults of docs/configuration.md.

Every value is parsed here, once, into the type that its reader needs: an address, seconds, bytes. The checks
that need more than one value are in consistency.py.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, Never

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from sealgate.config.address import Address, parse_optional_address
from sealgate.config.base_url import BaseUrl, parse_base_url
from sealgate.config.files import (
    parse_admin_socket,
    parse_ca_file,
    parse_group,
    parse_journal_file,
    parse_pem_file,
    parse_socket,
)
from sealgate.config.known_limits import KnownLimit, parse_known_limits
from sealgate.config.lists import parse_aliases, parse_hosts, parse_list, parse_permissions
from sealgate.config.names import (
    parse_api_key,
    parse_header_prefix,
    parse_match,
    parse_name,
    parse_path,
    parse_pointer,
    parse_prefix,
    split_match,
)
from sealgate.config.quantities import (
    parse_count,
    parse_seconds,
    parse_seconds_or_zero,
    parse_size,
    parse_uid,
    parse_weight,
)
from sealgate.config.redis_url import parse_redis
from sealgate.config.references import parse_reference

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

    prefix: Annotated[str, PlainValidator(parse_prefix)] = "/v1/trade"
    connect_timeout: Seconds = 3.0
    total_timeout: Seconds = 10.0
    max_connections: Count = 32
    keep_alive: Seconds = 15.0
    warm: bool = True
    ca_file: CaFile = None


class Signing(_Table):
    """What spec.md leaves open about signatures."""

    header_prefix: Annotated[str, PlainValidator(parse_header_prefix)] = "X-SERVICE-"
    encoding: Literal["hex", "HEX", "base64", "base64url"] = "hex"
    secret_is: Literal["utf8", "hex", "base64", "sha256hex"] = "utf8"  # noqa: S105 - a name of a format
    target: Literal["path", "path_and_query"] = "path"


class Clock(_Table):
    """How the exchange's time is followed."""

    path: Annotated[str, PlainValidator(parse_path)] = "/v1/trade/time"
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
    """An API key: its public part, and references to its secret and session token."""

    api_key: Annotated[str, PlainValidator(parse_api_key)]
    secret: Reference
    session: Reference | None = None
    recv_window_ms: Count = 5000


class Bot(_Table):
    """A client: what it proves itself by, its keys as written (see `Config.keys_of`), its permissions."""

    token: Reference | None = None
    uid: Uid | None = None
    key: Name | None = None
    keys: Annotated[tuple[str, ...], PlainValidator(parse_aliases)] = ()
    may: Permissions = frozenset({"read", "trade"})
    weight: Weight = 1.0


class Route(_Table):
    """A row for the route table: what it changes of the rule that would hold without it."""

    match: Annotated[str, PlainValidator(parse_match)]
    needs: Permission | None = None
    lane: Literal["cancel", "order", "read"] | None = None
    cost: Count | None = None

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
    """The whole configuration. Made by `load_config`, which also checks it across tables."""

    # Names in the environment are matched by sources.py, hence case_sensitive here.
    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, case_sensitive=True
    )

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
