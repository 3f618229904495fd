"""A bot that sent while nobody else wanted to owes nothing to those who come later."""

from collections import Counter

from sealgate.core.limits.claims import Claim
from sealgate.core.limits.wait_queue import WaitQueue
from sealgate.core.routes import Lane


def claim(bot: str, number: int) -> Claim:
    return Claim(f"{bot}{number}", bot, Lane.ORDER, give_up_at=1e9)


def test_use_without_contention_is_no_debt() -> None:
    line = WaitQueue()
    for number in range(1000):
        line.add(claim("early", number))
        head = next(line.heads())
        line.take(head, 0.0, is_probing=False)
    for number in range(100):
        line.add(claim("late", number))
        line.add(claim("early", 1000 + number))
    served: Counter[str] = Counter()
    for _ in range(100):
        head = next(line.heads())
        line.take(head, 0.0, is_probing=False)
        served[head.bot] += 1
    assert 40 <= served["early"] <= 60, served
