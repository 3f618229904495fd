"""Makes the turnstile of a key that other gateways use, too."""

import hashlib

from sealgate.core.pacing.pacer import PacerSettings
from sealgate.core.sharing.member_pacer import MemberPacer
from sealgate.core.sharing.seat import Seat
from sealgate.gateway.host.host import Host
from sealgate.gateway.keys.key import Secret
from sealgate.gateway.pacing.turnstile import Turnstile
from sealgate.gateway.sharing.sharer import Sharer
from sealgate.gateway.sharing.table import Table


def shared_turnstile(alias: str, subject: str, url: Secret, settings: PacerSettings, host: Host) -> Turnstile:
    """Return a turnstile whose limit is shared; `subject` is the exchange and the API key.

    All gateways with the same subject meet at one table. Its name is a digest: Redis is told no API key.
    """
    pacer = MemberPacer(settings, host.chance, host.request_id())
    turnstile = Turnstile(pacer, host)
    table = Table(url.reveal(), hashlib.sha256(subject.encode()).hexdigest()[:32], pacer.name)
    turnstile.sharing = Sharer(alias, Seat(pacer, host.chance), table, turnstile, host)
    return turnstile
