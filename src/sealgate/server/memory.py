"""What outlives every generation and, with a journal, the process.

That is orders, keyed replies, halts, learned limits, prices, and which nonces may be used up.
"""

from collections.abc import Mapping

from sealgate.config import Config, ExchangeConfig
from sealgate.limits.scheduler import RateScheduler
from sealgate.limits.snapshots import Snapshot
from sealgate.machine.system import System
from sealgate.orders.idempotency import IdempotencyKeys, ReplayBounds
from sealgate.orders.journal import Journal, Keeping, LearnedKeeper, NoncesKeeper
from sealgate.orders.journal.journal import MOST_REPLAYS
from sealgate.orders.journal.marks import Marks, places
from sealgate.orders.policy import PolicyMemory
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.generation import Generation
from sealgate.venues.venue import Scope

_MOST_REPLAY_BYTES = 16 * 1024**2  # of one bot


def build_books(
    config: Config, environ: Mapping[str, str], system: System, policies: PolicyMemory | None = None
) -> Bookkeeping:
    """Open the journal, if there is one, and take up what it kept. Raises JournalError.

    `policies` take up what each bot sent, which counts once the time of its exchange is known.
    """
    settings = config.journal
    replays = IdempotencyKeys(ReplayBounds(MOST_REPLAYS, _MOST_REPLAY_BYTES, settings.keep))
    if settings.file is None:
        return Bookkeeping(replays, None, system)
    keeping = Keeping(settings.keep, settings.max_size, settings.on_failure == "refuse")
    marks = Marks(settings.file, places(config, environ))
    lost = marks.note()
    journal = Journal(settings.file, keeping, system)
    marks.leave()
    replays.restore(journal.recall(), system.now())
    if policies is not None:
        policies.remember(journal.recall_passed())
    return Bookkeeping(replays, journal, system, NoncesKeeper(journal, system), lost)


def build_keeper(journal: Journal | None, generation: Generation, system: System) -> LearnedKeeper | None:
    """Let limits and prices start from what the journal has of them."""
    if journal is None:
        return None
    keeper = LearnedKeeper(journal, generation.policies.prices, system)
    followed = subjects(generation)
    restore(followed, keeper.recall(followed))
    keeper.follow(followed)
    keeper.recall_prices()
    return keeper


def restore(schedulers: Mapping[str, RateScheduler], kept: Mapping[str, Snapshot]) -> None:
    """Let the schedulers of these subjects start from what was kept."""
    for subject, snapshot in kept.items():
        schedulers[subject].restore(snapshot)


def subjects(generation: Generation) -> dict[str, RateScheduler]:
    """Return where what is to be remembered is learned."""
    found: dict[str, RateScheduler] = {}
    for backend in generation.backends.values():
        gates = backend.exchange.gates
        for alias, live_key in backend.exchange.live_keys.items():
            found[subject(backend.config, alias)] = live_key.scheduler
        if gates.of_open not in gates.of_keys:
            found[f"{address_of(backend.config)} without a key"] = gates.of_open
    return found


def subject(config: ExchangeConfig, alias: str) -> str:
    """Return what a limit is remembered by: the exchange, and whom it counts together."""
    scope, key = config.venue.limits.scope, config.keys[alias]
    if scope is Scope.ADDRESS:
        return address_of(config)
    if scope is Scope.ACCOUNT and key.account is not None:
        return f"{config.base_url} account {key.account}"
    return f"{config.base_url} {key.api_key}"


def address_of(config: ExchangeConfig) -> str:
    """Return what a limit by address is remembered by: the exchange, and the address that it sees, if set."""
    start = config.upstream.proxy or config.upstream.source
    return f"{config.base_url} from {start}" if start else str(config.base_url)


def nonces_place(config: ExchangeConfig, alias: str) -> str:
    """Return what a key's nonces are remembered by: the address, the API key, and what they count."""
    return f"{config.base_url} {config.keys[alias].api_key} {config.venue.signing.nonce}"
