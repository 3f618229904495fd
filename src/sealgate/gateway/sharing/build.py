"""Makes the scheduler of a key that other gateways use, too."""

import hashlib

from sealgate.core.limits.pacer import PacerSettings
from sealgate.core.sharing.member_pacer import MemberPacer
from sealgate.core.sharing.seat import Seat
from sealgate.gateway.keys.key import Secret
from sealgate.gateway.pacing.scheduler import RateScheduler
from sealgate.gateway.platform.system import System
from sealgate.gateway.sharing.sharer import Sharer
from sealgate.gateway.sharing.table import Table


def shared_scheduler(
    alias: str, subject: str, url: Secret, settings: PacerSettings, system: System
) -> RateScheduler:
    """Return a scheduler whose limit is shared; `subject` is the exchange and the API key.

    All gateways with the same subject meet at one table. Its name is a digest: Redis is told no API key.
    """
    pacer = MemberPacer(settings, system.chance, system.request_id())
    scheduler = RateScheduler(pacer, system)
    table = Table(url.reveal(), hashlib.sha256(subject.encode()).hexdigest()[:32], pacer.name)
    scheduler.sharing = Sharer(alias, Seat(pacer, system.chance), table, scheduler, system)
    return scheduler
