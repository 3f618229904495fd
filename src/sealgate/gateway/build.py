"""From the configuration to the tree: secrets are read here, once, and leave as HMAC states and digests."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from sealgate.config import Config
from sealgate.core.admission import Bot, Rules
from sealgate.core.attempts import Replay
from sealgate.core.headers import HeaderRules
from sealgate.core.pacing.pacer import Pacer, PacerSettings
from sealgate.core.pacing.stated import Quota
from sealgate.core.replays import Bounds, Replays
from sealgate.core.routes import CustomRoute, Lane, Permission, RouteTable
from sealgate.core.signing import Encoding, Scheme, SecretIs, SignedTarget, Signer
from sealgate.core.stamps import Stamps
from sealgate.gateway.bookkeeping import Bookkeeping
from sealgate.gateway.clock_keeper import ClockKeeper, TimeSource
from sealgate.gateway.host import Host
from sealgate.gateway.journal import Journal, Keeper, Keeping, OrderBook
from sealgate.gateway.kept_clock import ClockNeeds, KeptClock
from sealgate.gateway.keys import Secret, SigningKey
from sealgate.gateway.secret_sources import SecretError, read_secret, wipe
from sealgate.gateway.tree import Desk, Limits, Tree
from sealgate.gateway.turnstile import Turnstile
from sealgate.gateway.upstream import Destination, Upstream

_MOST_REPLAYS = 10_000
_MOST_REPLAY_BYTES = 64 * 1024**2
_LOCAL_MAY = frozenset({Permission.READ, Permission.TRADE})


def build_tree(config: Config, environ: Mapping[str, str], host: Host) -> Tree:
    """Make all parts inside a running loop. Raises SecretError; blocks while secrets are read."""
    clock = KeptClock(_clock_needs(config), host)
    return Tree(
        rules=build_rules(config, environ),
        limits=Limits(
            max_wait_s=config.limits.max_wait,
            total_timeout_s=config.upstream.total_timeout,
            body_timeout_s=config.listen.body_timeout,
            replay=Replay(config.limits.replay_429),
        ),
        desks={
            alias: Desk(build_key(config, alias, environ), _turnstile(config, host), Stamps())
            for alias in config.keys
        },
        # `/time` has a limit of its own, if any: its 429s must not pause the orders.
        open_turnstile=_turnstile(config, host),
        upstream=Upstream(_destination(config)),
        clock=clock,
        clock_keeper=_clock_keeper(config, clock, host),
    )


def _turnstile(config: Config, host: Host) -> Turnstile:
    known = tuple(Quota(limit.requests, limit.window_s) for limit in config.limits.known)
    return Turnstile(Pacer(PacerSettings(config.limits.queue, known), host.chance), host)


def build_books(config: Config, host: Host) -> Bookkeeping:
    """Open the journal, if there is one, and take up what it kept. Raises JournalError."""
    journal = config.journal
    replays = Replays(Bounds(_MOST_REPLAYS, _MOST_REPLAY_BYTES, journal.keep))
    if journal.file is None:
        return Bookkeeping(replays, None, host)
    keeping = Keeping(journal.keep, journal.max_size, journal.on_failure == "refuse")
    book = OrderBook(journal.file, keeping, host)
    replays.restore(book.kept, host.now())
    return Bookkeeping(replays, book, host)


def build_keeper(config: Config, tree: Tree, host: Host) -> Keeper | None:
    """Open the journal and let each key's limit start from what was learned. Raises JournalError."""
    if config.journal.file is None:
        return None
    subjects = {
        f"{config.base_url} {key.api_key}": tree.desks[alias].turnstile for alias, key in config.keys.items()
    }
    return Keeper(Journal(config.journal.file), subjects, host)


def build_scheme(config: Config) -> Scheme:
    """Return the signing settings as the signer takes them."""
    signing = config.signing
    return Scheme(
        prefix=config.upstream.prefix,
        encoding=Encoding(signing.encoding),
        secret_is=SecretIs(signing.secret_is),
        target=SignedTarget(signing.target),
    )


def build_key(config: Config, alias: str, environ: Mapping[str, str]) -> SigningKey:
    """Read a key's secrets. Raises SecretError."""
    key = config.keys[alias]
    secret = read_secret(key.secret, environ)
    try:
        signer = Signer(build_scheme(config), secret)
    except ValueError as error:
        raise SecretError(key.secret, str(error), "correct the secret or signing.secret_is") from None
    finally:
        wipe(secret)
    session = _read_session(key.session, environ) if key.session else None
    return SigningKey(alias, key.api_key, config.signing.header_prefix, key.recv_window_ms, signer, session)


def _read_session(reference: str, environ: Mapping[str, str]) -> Secret:
    buffer = read_secret(reference, environ)
    try:
        token = buffer.decode("ascii")
    except UnicodeDecodeError:
        token = ""
    if not token.isprintable() or not token or " " in token:
        raise SecretError(reference, "a session token is printable ASCII without spaces", "store it again")
    return Secret(token)


def build_rules(config: Config, environ: Mapping[str, str]) -> Rules:
    """Return what admission goes by. Raises SecretError where a bot's token cannot be had."""
    return Rules(
        prefix=config.upstream.prefix,
        hosts=frozenset(config.listen.hosts),
        bots=_read_bots(config, environ),
        local=None if config.bots else Bot("local", tuple(config.keys), _LOCAL_MAY),
        routes=RouteTable(_custom_routes(config)),
        headers=HeaderRules(config.signing.header_prefix),
        max_body=config.listen.max_body,
    )


def _read_bots(config: Config, environ: Mapping[str, str]) -> dict[bytes, Bot]:
    bots: dict[bytes, Bot] = {}
    for name, settings in config.bots.items():
        token = read_secret(settings.token, environ)
        digest = hashlib.sha256(token).digest()
        wipe(token)
        if digest in bots:
            raise SecretError(
                settings.token,
                f"the bots {bots[digest].name} and {name} have the same token",
                "give each its own",
            )
        bots[digest] = Bot(
            name, config.keys_of(name), frozenset(map(Permission, settings.may)), settings.weight
        )
    return bots


def _custom_routes(config: Config) -> list[CustomRoute]:
    return [
        CustomRoute(
            route.method,
            route.path.removeprefix(config.upstream.prefix),
            Permission(route.needs) if route.needs else None,
            Lane(route.lane) if route.lane else None,
            route.cost,
        )
        for route in config.routes
    ]


def _destination(config: Config) -> Destination:
    upstream = config.upstream
    return Destination(
        base_url=str(config.base_url),
        connect_timeout_s=upstream.connect_timeout,
        total_timeout_s=upstream.total_timeout,
        max_connections=upstream.max_connections,
        ca_file=upstream.ca_file,
        keep_alive_s=upstream.keep_alive,
    )


def _clock_needs(config: Config) -> ClockNeeds:
    recv_window_ms = min(key.recv_window_ms for key in config.keys.values())
    return ClockNeeds(config.clock.required, config.clock.grace, recv_window_ms)


def _clock_keeper(config: Config, clock: KeptClock, host: Host) -> ClockKeeper:
    source = TimeSource(config.clock.path, config.clock.field, config.clock.interval)
    destination = replace(_destination(config), max_connections=1, keep_alive_s=2 * source.interval_s)
    return ClockKeeper(source, clock, Upstream(destination), host)
