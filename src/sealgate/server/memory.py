"""What outlives every generation and, with a journal, the process.

That is orders, keyed replies, halts, learned limits, prices, and which nonces may be used up.
"""

import hashlib
from collections.abc import Mapping

from sealgate.config import Config, ExchangeConfig
from sealgate.limits.membership import Subjects
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
    followed = schedulers(generation)
    restore(followed, keeper.recall(followed))
    keeper.follow(followed)
    keeper.recall_prices()
    return keeper


def restore(schedulers: Mapping[str, RateScheduler], kept: Mapping[str, Mapping[str, Snapshot]]) -> None:
    """Let the schedulers of these exchanges start from what was kept."""
    for place, snapshots in kept.items():
        schedulers[place].restore(snapshots)


def schedulers(generation: Generation) -> dict[str, RateScheduler]:
    """Return where what is to be remembered is learned, by the address of the exchange."""
    return {
        str(backend.config.base_url): backend.exchange.gates.scheduler
        for backend in generation.backends.values()
    }


def subjects(config: ExchangeConfig, alias: str | None) -> Subjects:
    """Return whom an exchange counts together: a key, its account and the address, or the address alone."""
    address = address_of(config)
    if alias is None:
        return Subjects(address, address, address)
    key = config.keys[alias]
    own = subject_of(str(config.base_url), key.api_key or alias)
    account = own if key.account is None else f"{config.base_url} account {key.account}"
    return Subjects(own, account, address)


def subject_of(base_url: str, api_key: str) -> str:
    """Return what the limits of a key are remembered by; of the key it has a digest, as it goes to Redis."""
    return f"{base_url} key {hashlib.sha256(api_key.encode()).hexdigest()[:16]}"


def address_of(config: ExchangeConfig) -> str:
    """Return what a limit by address is remembered by: the exchange, and the address that it sees, if set."""
    start = config.upstream.proxy or config.upstream.source
    return f"{config.base_url} from {start}" if start else str(config.base_url)


def nonces_place(config: ExchangeConfig, alias: str) -> str:
    """Return what a key's nonces are remembered by: the address, the API key, and what they count."""
    return f"{config.base_url} {config.keys[alias].api_key or alias} {config.venue.signing.nonce}"
