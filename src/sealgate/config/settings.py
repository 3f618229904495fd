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
        default=Address("127.0.0.1", 8787), description='Where bots connect, host:port; "" turns it off.'
    )
    unix: values.OptionalSocket = Field(
        default=None, description="A Unix socket for bots.", examples=["/run/sealgate/bots.sock"]
    )
    unix_mode: Literal["0600", "0660"] = Field(
        default="0600", description="0660 also admits listen.unix_group."
    )
    unix_group: values.OptionalGroup = Field(
        default=None, description="A group, by name or number.", examples=["traders"]
    )
    hosts: values.Hosts = Field(
        default=_LOOPBACK_HOSTS, description="Accepted names in the Host header, with any port."
    )
    max_body: values.Size = Field(default=ByteSize(1024**2), description="The largest body of a request.")
    head_timeout: values.Seconds = Field(
        default=10.0, description="Seconds that a bot may take to send a request's head."
    )
    body_timeout: values.Seconds = Field(
        default=10.0, description="Seconds that a bot may take to send its body."
    )
    max_connections: values.Count = Field(default=1000, description="Open connections of bots.")
    max_streams: values.Count = Field(default=200, description="Open streams (WebSocket) of bots.")
    tls_cert: values.PemFile = Field(
        default=None,
        description="PEM file with certificate and chain: HTTPS for bots.",
        examples=["/etc/sealgate/cert.pem"],
    )
    tls_key: values.PemFile = Field(
        default=None,
        description="PEM file with its key, readable by you alone.",
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
    """Where metrics and health are read, and commands are taken. `unix` is "off", or None for the default."""

    tcp: values.OptionalAddress = Field(
        default=Address("127.0.0.1", 8788),
        description='Where the live page, metrics and health are read; "" turns it off.',
    )
    hosts: values.Hosts = Field(
        default=_LOOPBACK_HOSTS, description="Accepted names in the Host header of the admin address."
    )
    unix: values.AdminSocket = Field(
        default=None,
        description='Socket for halt, resume and reload; "" is the default place, "off" is none.',
        examples=["/run/sealgate/admin.sock"],
    )


class Upstream(_Table):
    """How the exchange is reached. `prefix` has no slash at its end; "" is everything."""

    prefix: values.PathPrefix = Field(
        default="", description="The start of every path: forwarded, but not signed."
    )
    connect_timeout: values.Seconds = Field(default=3.0, description="Seconds to make one connection.")
    total_timeout: values.Seconds = Field(default=10.0, description="Seconds for one attempt.")
    max_connections: values.Count = Field(
        default=32, description="Connections to the exchange; with 1, reads wait behind an order that hangs."
    )
    keep_alive: values.Seconds = Field(default=15.0, description="Seconds that an idle connection is kept.")
    warm: bool = Field(default=True, description="Keep one connection open at all times.")
    ca_file: values.CaFile = Field(
        default=None,
        description="PEM file of authorities to trust instead of the system's.",
        examples=["/etc/sealgate/exchange-ca.pem"],
    )
    source: values.SourceAddress = Field(
        default=None,
        description="The address of this machine that connections start from.",
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
        description="Where all streams (WebSocket) are, in the place of the exchange's own hosts.",
        examples=["ws://127.0.0.1:9000"],
    )
    headers: values.HeaderFields = Field(
        default_factory=none,
        description="Header fields to send with every request.",
        examples=[{"x-simulated-trading": "1"}],
    )


class Signing(_Table):
    """What replaces the venue file's settings; None: nothing does. `ExchangeConfig.venue` includes it."""

    header_prefix: values.HeaderPrefix | None = Field(
        default=None, description="The common start of the three signing headers.", examples=["X-EXAMPLE-"]
    )
    encoding: Literal["hex", "HEX", "base64", "base64url"] | None = Field(
        default=None, description="How the signature is written.", examples=["hex"]
    )
    secret_is: Literal["utf8", "hex", "base64", "sha256hex"] | None = Field(
        default=None, description="How the stored secret becomes the HMAC's key.", examples=["utf8"]
    )
    target: Literal["path", "path_and_query"] | None = Field(
        default=None, description="path_and_query also signs what follows the ?.", examples=["path"]
    )


class Clock(_Table):
    """How the exchange's time is followed. `path` is "" where nothing says it."""

    path: values.OptionalPath = Field(
        default="", description='The path of the exchange\'s time; "" if it has none.'
    )
    field: values.JsonPointer = Field(
        default="", description='JSON pointer to the time in the reply; "" searches for it.'
    )
    interval: values.Seconds = Field(default=30.0, description="Seconds between two samples.")
    grace: values.SecondsOrZero = Field(
        default=10.0,
        description="Seconds to wait for the first sample before it is logged that there is none.",
    )
    required: bool = Field(
        default=True, description="false: sign by this machine's clock while the exchange's is not known."
    )


class Pool(_Table):
    """What an exchange counts together; None is what the venue's file says of the pool of that name."""

    known: values.Quotas | None = Field(
        default=None,
        description='Its published limits, such as ["100/10s"]; others are learned.',
        examples=[["100/10s"]],
    )
    scope: Literal["key", "account", "address"] | None = Field(
        default=None, description="Who shares it; a pool that the venue's file has not, needs it."
    )
    lanes: values.Lanes | None = Field(
        default=None, description="The lanes of its requests.", examples=[["order"]]
    )
    routes: Annotated[tuple[str, ...], values.LIST] | None = Field(
        default=None,
        description="Its requests: routes of the venue's file, or all below one, as in * /api/v2/**.",
        examples=[["POST /api/v2/orders"]],
    )
    open: bool | None = Field(
        default=None,
        description="true: only requests that need no key; false: only those that need one.",
        examples=[True],
    )
    per: Literal["", "route"] | None = Field(
        default=None, description='"route" counts each route by itself.', examples=["route"]
    )
    counts: Literal["cost", "requests"] | None = Field(
        default=None, description="requests: each request is 1, whatever the cost of its route."
    )
    aligned: bool | None = Field(
        default=None, description="true: its windows begin at whole multiples of their length."
    )


class Limits(_Table):
    """How the shared rate limit is met. `redis` is a URL, or a reference to one that holds a password."""

    known: values.Quotas = Field(
        default=(),
        description='Published limits of all requests, such as ["1200/60s"]; others are learned.',
        examples=[["1200/60s"]],
    )
    headers: bool = Field(
        default=True, description="false ignores RateLimit and similar header fields of replies."
    )
    replay_429: Literal["all", "reads", "none"] = Field(
        default="all", description="What is sent again after a 429."
    )
    max_wait: values.SecondsOrZero = Field(
        default=30.0, description="The longest a request may wait in the gateway, in seconds."
    )
    queue: values.Count = Field(default=1000, description="How many requests of one key may wait at once.")
    share_open_s: values.SecondsOrZero = Field(
        default=0.0,
        description="How old a shared reply to a GET without API key may be; 0: only waiting reads share.",
    )
    stream_opens: values.OptionalQuota = Field(
        default=None,
        description="How many streams may be opened from this address, such as 300/300s.",
        examples=["300/300s"],
    )
    redis: values.Redis = Field(
        default="", description="Redis that shares limits between gateways: a URL, or a reference to one."
    )
    pools: Annotated[Mapping[values.PoolName, Pool], AfterValidator(MappingProxyType)] = Field(
        default_factory=none, examples=["orders"]
    )


class Log(_Table):
    """What is logged, and how."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="info logs every request; warning logs only problems."
    )
    format: Literal["auto", "console", "json"] = Field(
        default="auto", description="The format of the log; auto is console on a terminal, else json."
    )


class Journal(_Table):
    """What outlives the process; without a file nothing does. `keep` holds for replies in memory too."""

    file: values.JournalFile = Field(
        default=None,
        description="SQLite file that survives a crash: orders in doubt, replies, learned limits.",
        examples=["journal.db"],
    )
    keep: values.Seconds = Field(default=86400.0, description="Seconds that a settled order is kept.")
    max_size: values.Size = Field(
        default=ByteSize(64 * 1024**2),
        description="Beyond this size, replies are deleted first, orders in doubt never.",
    )
    on_failure: Literal["refuse", "continue"] = Field(
        default="refuse", description="What happens to orders while the file cannot be written."
    )


class Key(_Table):
    """An API key: its public parts, and references to its secrets.

    `api_key` and `uid` are "" where the venue has none, `kind` is None where the secret shows it.
    """

    api_key: values.ApiKey = Field(
        default="", description="The public part of the key, if the venue requires one."
    )
    secret: values.Reference = Field(
        description="A reference to its secret (file:, env:, cmd:, systemd: or keyring:), never the secret."
    )
    kind: Literal["hmac", "ed25519", "rsa", "es256"] | None = Field(
        default=None,
        description="What the secret must be; without it, the secret itself shows that.",
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
        description="A reference to its session token, which is used to read the key's expiry.",
        examples=["file:main.session"],
    )
    recv_window_ms: values.Count = Field(
        default=5000, description="How long the exchange accepts this key's timestamps, in milliseconds."
    )
    account: values.Name | None = Field(
        default=None,
        description="A name for its account: keys with the same name share limits counted by account.",
        examples=["main"],
    )
    exchange: values.ExchangeName | None = Field(
        default=None, description="Where it is valid, if there are [exchanges].", examples=["spot"]
    )
    exchanges: values.ExchangeNames = Field(
        default=(), description="The same for several exchanges.", examples=[["spot", "perp"]]
    )


class Policy(_Table):
    """What a bot's orders may be; None: no such rule. `max_size` is one amount, or a table by symbol."""

    symbols: values.Symbols = Field(
        default=(),
        description="The symbols that it may order, as the exchange writes them; others are refused.",
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
        description="How much size x price may pass within any 24 h, as text; what is refused counts as 0.",
        examples=["50000"],
    )
    max_orders_per_minute: values.Count | None = Field(
        default=None, description="How many orders may pass within any 60 s.", examples=[60]
    )
    max_orders_per_day: values.Count | None = Field(
        default=None,
        description="How many may pass within any 24 h; with a journal, a restart does not reset it.",
        examples=[2000],
    )
    reduce_only: bool = Field(
        default=False, description="true allows only orders that are marked as reduce-only."
    )
    observe: bool = Field(
        default=False, description="true counts what would be refused, and refuses nothing."
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
        description="An address of its own on this machine: whoever connects there is this bot.",
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
        description="Add keys only for bots that manage API keys or withdraw.",
    )
    weight: values.Weight = Field(
        default=1.0, description="Its share while bots ask for more than the limit."
    )
    policy: Policy = Policy()
    policies: Annotated[Mapping[values.ExchangeName, Policy], AfterValidator(MappingProxyType)] = Field(
        default_factory=none, examples=["perp"]
    )


class Route(_Table):
    """A row for the route table: how it changes the rule that would otherwise apply."""

    # Other required settings may stand in the environment; a member of a list cannot.
    model_config = ConfigDict(json_schema_extra={"required": ["match"]})

    match: values.RouteMatch = Field(description="METHOD and path, with {placeholders}.")
    needs: values.Permission | None = Field(
        default=None, description="With read, it is also sent again after a lost reply.", examples=["read"]
    )
    lane: Literal["cancel", "order", "read"] | None = Field(
        default=None, description="cancel goes before order, order before read.", examples=["read"]
    )
    cost: values.Count | None = Field(
        default=None, description="More than 1 if the exchange counts it as several requests.", examples=[1]
    )
    share_s: values.SecondsOrZero | None = Field(
        default=None,
        description="How old an identical read's reply may be; 0: only waiting reads share one.",
        examples=[0.0],
    )

    @property
    def method(self) -> str:
        """The method that it is about."""
        return self.match.partition(" ")[0]

    @property
    def path(self) -> str:
        """The whole path, prefix included, with its {placeholders}."""
        return self.match.partition(" ")[2]


class Exchange(_Table):
    """An exchange among several; `ExchangeConfig` has what holds for it."""

    venue: values.VenueName = Field(
        default_factory=default_venue,
        json_schema_extra={"default": DEFAULT_VENUE},
        description="A name that `sealgate venues` lists, or the path of your own venue file.",
    )
    base_url: values.ExchangeUrl = Field(
        description="Its address: https, or http if it is on this machine. Most venue files have it."
    )
    environment: values.EnvironmentName = Field(
        default="",
        description="Its test or demo network, by a name of the venue's file.",
        examples=["test"],
    )
    listen: values.OptionalAddress = Field(
        default=None,
        description="An address of its own, for bots that cannot have its name in the path.",
        examples=["127.0.0.1:8801"],
    )
    upstream: Upstream = Field(default_factory=Upstream)
    signing: Signing = Signing()
    clock: Clock = Clock()
    limits: Limits = Field(default_factory=Limits)
    routes: Annotated[tuple[Route, ...], values.LIST] = ()
