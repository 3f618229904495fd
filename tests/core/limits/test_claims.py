from sealgate.core.limits.claims import Claim, Fate, LimitReply
from sealgate.core.routes import Lane


def test_a_claim_is_one_order_that_was_not_refused_unless_it_says_so() -> None:
    claim = Claim("1", "grid", Lane.ORDER, 5.0)
    assert (claim.weight, claim.cost, claim.is_read, claim.is_again) == (1.0, 1.0, False, False)


def test_a_stated_wait_is_of_whole_seconds_unless_it_says_so() -> None:
    assert LimitReply(Fate.LIMITED, 3.0).resolution_s == 1.0


def test_the_words_of_how_a_claim_ends() -> None:
    assert [*Fate] == ["accepted", "limited", "lost"]
