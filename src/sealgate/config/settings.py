"""The settings: one frozen model per table of the file. A new setting is a field here, with its default.

Every value is parsed here, once, into the type that its reader needs: an address, seconds, bytes. The checks
that need more than one value are in consistency.py.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, Never

from pydantic import AfterValidator, BaseModel, ByteSize, ConfigDict, Field

from sealgate.config import values
from sealgate.config.addresses import Address
from sealgate.config.venues import DEFAULT_VENUE, default_venue

_LOOPBACK_HOSTS = ("127.0.0.1", "localhost")


def none() -> Mapping[str, Never]:
    """Return a table without members."""
    return MappingProxyType({})


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Listen(_Table):
    """Where bots connect. `unix_group` is the group's number; without a `client_ca` no client certificate."""

    tcp: values.OptionalAddress = Field(
        default=Address("127.0.0.1", 8787), description='The address for bots, host:port; "" turns it off.'
    )
    unix: values.OptionalSocket = Field(
        default=None, description="The path of a Unix socket for bots.", examples=["/run/sealgate/bots.sock"]
    )
    unix_mode: Literal["0600", "0660"] = Field(
        default="0600", description="0660 also admits listen.unix_group."
    )
    unix_group: values.OptionalGroup = Field(
        default=None, description="A group, by name or number.", examples=["traders"]
    )
    hosts: values.Hosts = Field(
        default=_LOOPBACK_HOSTS, description="Names accepted in the Host header, with any port."
    )
    max_body: values.Size = Field(default=ByteSize(1024**2), description="The largest body of a request.")
    head_timeout: values.Seconds = Field(
        default=10.0, description="Seconds that a bot may take to send a request's head."
    )
    body_timeout: values.Seconds = Field(
        default=10.0, description="Seconds that a bot may take to send its body."
    )
    max_connections: values.Count = Field(default=1000, description="The most connections of bots at once.")
    max_streams: values.Count = Field(
        default=200, description="The most streams (WebSocket) of bots at once."
    )
    tls_cert: values.PemFile = Field(
        default=None,
        description="PEM file with certificate and chain, for HTTPS to bots.",
        examples=["/etc/sealgate/cert.pem"],
    )
    tls_key: values.PemFile = Field(
        default=None,
        description="PEM file with the certificate's private key, readable only by you.",
        examples=["/etc/sealgate/key.pem"],
    )
    client_ca: values.CaFile = Field(
        default=None,
        description="PEM file of authorities: bots must have a certificate from one of them.",
        examples=["/etc/sealgate/clients.pem"],
    )
    drain: values.SecondsOrZero = Field(
        default=3.0, description="Seconds after SIGTERM in which reads and cancels still pass."
    )


class Admin(_Table):
    """The addresses of metrics, health and commands. `unix` is "off", or None for the default."""

    tcp: values.OptionalAddress = Field(
        default=Address("127.0.0.1", 8788),
        description='The address of the live page, metrics and health; "" turns it off.',
    )
    hosts: values.Hosts = Field(
        default=_LOOPBACK_HOSTS, description="Names accepted in the Host header at the admin address."
    )
    unix: values.AdminSocket = Field(
        default=None,
        description='The Unix socket for halt, resume and reload; "" is the default path, "off" is none.',
        examples=["/run/sealgate/admin.sock"],
    )


class Upstream(_Table):
    """How to reach the exchange. `prefix` has no slash at its end; "" is everything."""

    prefix: values.PathPrefix = Field(
        default="", description="The start of every path: forwarded, but not signed."
    )
    connect_timeout: values.Seconds = Field(default=3.0, description="Seconds to make one connection.")
    total_timeout: values.Seconds = Field(default=10.0, description="Seconds for one attempt.")
    max_connections: values.Count = Field(
        default=32,
        description="The most connections to the exchange; with 1, reads wait behind an order that hangs.",
    )
    keep_alive: values.Seconds = Field(default=15.0, description="Seconds to keep an idle connection open.")
    warm: bool = Field(default=True, description="Keep one connection open at all times.")
    ca_file: values.CaFile = Field(
        default=None,
        description="PEM file of authorities to trust instead of the system's.",
        examples=["/etc/sealgate/exchange-ca.pem"],
    )
    source: values.SourceAddress = Field(
        default=None,
        description="The IP address of this machine from which connections start.",
        examples=["203.0.113.7"],
    )
    proxy: values.OptionalProxy = Field(
        default=None,
        description="A proxy on the way to the exchange: http or socks5, with a user but no password.",
        examples=["http://proxy.example.com:3128"],
    )
    proxy_password: values.Reference | None = Field(
        default=None,
        description="A reference to the password of the proxy's user.",
        examples=["file:proxy.password"],
    )
    streams: values.OptionalStreams = Field(
        default=None,
        description="The address of all streams (WebSocket), instead of the exchange's own hosts.",
        examples=["ws://127.0.0.1:9000"],
    )
    headers: values.HeaderFields = Field(
        default_factory=none,
        description="Header fields to send with every request.",
        examples=[{"x-simulated-trading": "1"}],
    )


class Signing(_Table):
    """Overrides of the venue file; None keeps the file's value. `ExchangeConfig.venue` has them applied."""

    header_prefix: values.HeaderPrefix | None = Field(
        default=None, description="The common prefix of the three signing headers.", examples=["X-EXAMPLE-"]
    )
    encoding: Literal["hex", "HEX", "base64", "base64url"] | None = Field(
        default=None, description="The encoding of the signature.", examples=["hex"]
    )
    secret_is: Literal["utf8", "hex", "base64", "sha256hex"] | None = Field(
        default=None, description="How the stored secret becomes the HMAC's key.", examples=["utf8"]
    )
    target: Literal["path", "path_and_query"] | None = Field(
        default=None, description="path_and_query also signs the query.", examples=["path"]
    )


class Clock(_Table):
    """How the gateway follows the exchange's time. `path` is "" if unknown."""

    path: values.OptionalPath = Field(
        default="", description='The path of the exchange\'s time; "" if it has none.'
    )
    field: values.JsonPointer = Field(
        default="", description='JSON pointer to the time in the reply; "" searches for it.'
    )
    interval: values.Seconds = Field(default=30.0, description="Seconds between two samples.")
    grace: values.SecondsOrZero = Field(
        default=10.0,
        description="Seconds to wait for the first sample before the log says that there is none.",
    )
    required: bool = Field(
        default=True,
        description="false: sign with this machine's clock while the exchange's time is unknown.",
    )


class Pool(_Table):
    """Requests that an exchange counts together; None keeps what the venue's file says of this pool."""

    known: values.Quotas | None = Field(
        default=None,
        description='Its published limits, such as ["100/10s"]; the gateway learns others.',
        examples=[["100/10s"]],
    )
    scope: Literal["key", "account", "address"] | None = Field(
        default=None, description="Who shares it; required for a pool that is not in the venue's file."
    )
    lanes: values.Lanes | None = Field(
        default=None, description="The lanes of its requests.", examples=[["order"]]
    )
    routes: Annotated[tuple[str, ...], values.LIST] | None = Field(
        default=None,
        description="Its requests: routes of the venue's file, or all below a path, as in * /api/v2/**.",
        examples=[["POST /api/v2/orders"]],
    )
    open: bool | None = Field(
        default=None,
        description="true: only requests that need no API key; false: only those that need one.",
        examples=[True],
    )
    per: Literal["", "route"] | None = Field(
        default=None, description='"route" counts each route separately.', examples=["route"]
    )
    counts: Literal["cost", "requests"] | None = Field(
        default=None, description="requests: each request counts as 1, regardless of the cost of its route."
    )
    aligned: bool | None = Field(
        default=None, description="true: its windows begin at whole multiples of their length."
    )


class Limits(_Table):
    """How to keep to the rate limits. `redis` is a URL, or a reference to one that contains a password."""

    known: values.Quotas = Field(
        default=(),
        description='Published limits of all requests, such as ["1200/60s"]; the gateway learns others.',
        examples=[["1200/60s"]],
    )
    headers: bool = Field(default=True, description="false ignores RateLimit and similar headers of replies.")
    replay_429: Literal["all", "reads", "none"] = Field(
        default="all", description="Requests that the gateway resends after a 429."
    )
    max_wait: values.SecondsOrZero = Field(
        default=30.0, description="The longest a request may wait in the gateway, in seconds."
    )
    queue: values.Count = Field(
        default=1000, description="The most requests of one API key that may wait at once."
    )
    share_open_s: values.SecondsOrZero = Field(
        default=0.0,
        description="The greatest age of a shared reply to a GET that needs no API key; 0: share only among "
        "waiting reads.",
    )
    stream_opens: values.OptionalQuota = Field(
        default=None,
        description="The most streams that may be opened from this IP address, such as 300/300s.",
        examples=["300/300s"],
    )
    redis: values.Redis = Field(
        default="",
        description="The Redis through which gateways share rate limits: a URL, or a reference to one.",
    )
    pools: Annotated[Mapping[values.PoolName, Pool], AfterValidator(MappingProxyType)] = Field(
        default_factory=none, examples=["orders"]
    )


class Log(_Table):
    """The level and the format of the log."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="info logs every request; warning logs only problems."
    )
    format: Literal["auto", "console", "json"] = Field(
        default="auto", description="The format of the log; auto is console on a terminal, else json."
    )


class Journal(_Table):
    """The journal, which survives a restart; without a file nothing does. `keep` also applies in memory."""

    file: values.JournalFile = Field(
        default=None,
        description="SQLite file for orders in doubt, replies and learned limits; it survives a crash.",
        examples=["journal.db"],
    )
    keep: values.Seconds = Field(default=86400.0, description="Seconds that a settled order is kept.")
    max_size: values.Size = Field(
        default=ByteSize(64 * 1024**2),
        description="Beyond this size the gateway deletes replies first, and orders in doubt never.",
    )
    on_failure: Literal["refuse", "continue"] = Field(
        default="refuse", description="What happens to orders while the file cannot be written."
    )


class Key(_Table):
    """An API key: its public parts, and references to its secrets.

    `api_key` and `uid` are "" if the venue has none; `kind` is None if the secret shows it.
    """

    api_key: values.ApiKey = Field(
        default="", description="The API key itself (the public part), if the venue requires one."
    )
    secret: values.Reference = Field(
        description="A reference to its secret (file:, env:, cmd:, systemd: or keyring:), never the secret."
    )
    kind: Literal["hmac", "ed25519", "rsa", "es256"] | None = Field(
        default=None,
        description="The kind of the secret; without it, the secret itself shows its kind.",
        examples=["ed25519"],
    )
    secret_passphrase: values.Reference | None = Field(
        default=None,
        description="A reference to the passphrase of an encrypted private key.",
        examples=["file:main.secret-passphrase"],
    )
    passphrase: values.Reference | None = Field(
        default=None, description="A reference to its passphrase, if the venue requires one."
    )
    uid: values.KeyUid = Field(default="", description="The account's id or memo, if the venue requires one.")
    session: values.Reference | None = Field(
        default=None,
        description="A reference to its session token, with which the gateway reads the API key's expiry.",
        examples=["file:main.session"],
    )
    recv_window_ms: values.Count = Field(
        default=5000, description="How long the exchange accepts this key's timestamps, in milliseconds."
    )
    account: values.Name | None = Field(
        default=None,
        description="A name for its account: keys with the same name share limits that count per account.",
        examples=["main"],
    )
    exchange: values.ExchangeName | None = Field(
        default=None,
        description="The exchange where it is valid, if there are [exchanges].",
        examples=["spot"],
    )
    exchanges: values.ExchangeNames = Field(
        default=(),
        description="The exchanges where it is valid, if there are several.",
        examples=[["spot", "perp"]],
    )


class Policy(_Table):
    """Rules for a bot's orders; None: no such rule. `max_size` is one amount, or a table by symbol."""

    symbols: values.Symbols = Field(
        default=(),
        description="The symbols that it may trade, as the exchange writes them; others are refused.",
        examples=[["BTC", "ETH"]],
    )
    max_size: values.Amounts | None = Field(
        default=None,
        description="The largest size of an order, as text, or a table by symbol.",
        examples=["0.5"],
    )
    max_notional: values.Amount | None = Field(
        default=None, description="The largest size x price of an order, as text.", examples=["10000"]
    )
    max_notional_per_day: values.Amount | None = Field(
        default=None,
        description="The most size x price that may pass within any 24 h, as text; refused orders "
        "count as 0.",
        examples=["50000"],
    )
    max_orders_per_minute: values.Count | None = Field(
        default=None, description="The most orders that may pass within any 60 s.", examples=[60]
    )
    max_orders_per_day: values.Count | None = Field(
        default=None,
        description="The most orders that may pass within any 24 h; with a journal, a restart does not "
        "reset it.",
        examples=[2000],
    )
    reduce_only: bool = Field(default=False, description="true allows only orders marked as reduce-only.")
    observe: bool = Field(
        default=False, description="true only counts the orders that the rules would refuse (a dry run)."
    )

    @property
    def is_set(self) -> bool:
        """Whether there is any rule."""
        return any(getattr(self, name) for name in type(self).model_fields if name != "observe")


class Bot(_Table):
    """A client: its credentials, its keys as written (see `Config.keys_of`), its permissions."""

    token: values.Reference | None = Field(
        default=None,
        description="A reference to its token; `sealgate token new` makes one.",
        examples=["file:grid.token"],
    )
    uid: values.Uid | None = Field(
        default=None, description="Its user on the Unix socket, instead of a token.", examples=[1001]
    )
    listen: values.OptionalLoopbackAddress = Field(
        default=None,
        description="Its own address on this machine: every client that connects there counts as this bot.",
        examples=["127.0.0.1:8802"],
    )
    key: values.Name | None = Field(
        default=None,
        description="The alias of its key under [keys], if there are several.",
        examples=["main"],
    )
    keys: values.Aliases = Field(
        default=(),
        description="The keys that it may choose from; the first is the default.",
        examples=[["main", "alt"]],
    )
    may: values.Permissions = Field(
        default=frozenset({"read", "trade"}),
        description='Add "keys" only for bots that manage API keys or withdraw.',
    )
    weight: values.Weight = Field(
        default=1.0, description="Its relative share while bots together want more than the limit allows."
    )
    policy: Policy = Policy()
    policies: Annotated[Mapping[values.ExchangeName, Policy], AfterValidator(MappingProxyType)] = Field(
        default_factory=none, examples=["perp"]
    )


class Route(_Table):
    """A row for the route table: how it changes the rule that would otherwise apply."""

    # Other required settings may come from the environment; a member of a list cannot.
    model_config = ConfigDict(json_schema_extra={"required": ["match"]})

    match: values.RouteMatch = Field(description="METHOD and path, with {placeholders}.")
    needs: values.Permission | None = Field(
        default=None,
        description="With read, the gateway also resends it after a lost reply.",
        examples=["read"],
    )
    lane: Literal["cancel", "order", "read"] | None = Field(
        default=None, description="cancel goes before order, order before read.", examples=["read"]
    )
    cost: values.Count | None = Field(
        default=None, description="The number of requests that the exchange counts it as.", examples=[1]
    )
    share_s: values.SecondsOrZero | None = Field(
        default=None,
        description="The greatest age of a reply that identical reads may share; 0: only waiting "
        "reads share.",
        examples=[0.0],
    )

    @property
    def method(self) -> str:
        """The method of `match`."""
        return self.match.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path of `match`, prefix included, with its {placeholders}."""
        return self.match.partition(" ")[2]


class Exchange(_Table):
    """An exchange among several; `ExchangeConfig` has its settings in effect."""

    venue: values.VenueName = Field(
        default_factory=default_venue,
        json_schema_extra={"default": DEFAULT_VENUE},
        description="A name that `sealgate venues` lists, or the path of your own venue file.",
    )
    base_url: values.ExchangeUrl = Field(
        description="Its base URL: https, or http if it is on this machine. Most venue files have it."
    )
    environment: values.EnvironmentName = Field(
        default="",
        description="Its test or demo network, by a name of the venue's file.",
        examples=["test"],
    )
    listen: values.OptionalAddress = Field(
        default=None,
        description="Its own listen address, for bots that cannot put its name into the path.",
        examples=["127.0.0.1:8801"],
    )
    upstream: Upstream = Field(default_factory=Upstream)
    signing: Signing = Signing()
    clock: Clock = Clock()
    limits: Limits = Field(default_factory=Limits)
    routes: Annotated[tuple[Route, ...], values.LIST] = ()
