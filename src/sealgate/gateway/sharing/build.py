"""Makes the scheduler of a key that other gateways use, too."""

import hashlib

from sealgate.core.limits.pacer import PacerSettings
from sealgate.core.sharing.member_pacer import MemberPacer
from sealgate.core.sharing.seat import Seat
from sealgate.gateway.host.host import Host
from sealgate.gateway.keys.key import Secret
from sealgate.gateway.pacing.scheduler import RateScheduler
from sealgate.gateway.sharing.sharer import Sharer
from sealgate.gateway.sharing.table import Table


def shared_scheduler(
    alias: str, subject: str, url: Secret, settings: PacerSettings, host: Host
) -> RateScheduler:
    """Return a scheduler whose limit is shared; `subject` is the exchange and the API key.

    All gateways with the same subject meet at one table. Its name is a digest: Redis is told no API key.
    """
    pacer = MemberPacer(settings, host.chance, host.request_id())
    scheduler = RateScheduler(pacer, host)
    table = Table(url.reveal(), hashlib.sha256(subject.encode()).hexdigest()[:32], pacer.name)
    scheduler.sharing = Sharer(alias, Seat(pacer, host.chance), table, scheduler, host)
    return scheduler
