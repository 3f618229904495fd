"""Corners of the envelope that no transcript of the pacer reaches."""

from sealgate.core.pacing.claims import Claim
from sealgate.core.pacing.envelope import Envelope
from sealgate.core.pacing.stated import Quota
from sealgate.core.routes import Lane

READ = Claim("1", "a", Lane.READ, 1e9, is_read=True)


def test_what_the_log_has_forgotten_is_not_counted_again() -> None:
    envelope = Envelope()
    envelope.sent(READ, 1.0, 2.0)
    assert envelope.log.all.count(0.0) == 0.0


def test_only_the_limit_that_is_probed_is_lifted() -> None:
    envelope = Envelope((Quota(5, 1.0), Quota(50, 60.0)))
    probed, other = envelope.limits
    probed.step = 0.1
    envelope.took(READ, 1.0, is_paced=False)
    envelope.accepted(READ, 1.0, 1.04, is_scout=False)
    assert (probed.lifted, other.lifted) == (1.0, 0.0)


def test_what_overtook_the_first_refused_on_its_way_is_counted() -> None:
    """Nothing is known of the jitter yet, so all who could not know of the pause may have come first."""
    envelope = Envelope()
    sent = {READ._replace(id=str(number)): 0.004 * number for number in range(25)}
    for claim, at in sent.items():
        envelope.took(claim, at, is_paced=False)
    claims = list(sent)
    for claim in (claims[6], *claims[21:]):
        envelope.refused(claim, sent[claim], 1.0, 1.0 - sent[claim], 0.0)
    scout = READ._replace(id="scout")
    envelope.took(scout, 1.01, is_paced=True)
    envelope.accepted(scout, 1.01, 1.05, is_scout=True)
    [limit] = envelope.limits
    assert (limit.n, limit.window) == (20.0, 1.0)
