"""What must hold for everything that an upstream received: a history check.

`check_history` needs the requests alone. `violations` holds what bots were told against what an exchange did.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rig import oracle
from rig.bot import Reply
from rig.faults import is_refusal_for_now
from rig.mischief import Deed
from rig.upstream import Received

WINDOW_MS = 5000

Tries = Sequence[Reply | None]  # the replies to one id in their order, None where the bot hung up


def check_seal(request: Received, secret: bytes, api_key: bytes) -> None:
    """Check the three signing headers of one request against the bytes received."""
    stamp = request.head.value(b"X-SERVICE-TIMESTAMP")
    assert stamp is not None
    assert len(stamp) == 13
    assert request.at_ms - WINDOW_MS < int(stamp) <= request.at_ms
    assert request.head.value(b"X-SERVICE-APIKEY") == api_key
    expected = oracle.signature(secret, stamp, request.method, request.target, request.body)
    assert request.head.value(b"X-SERVICE-SIGNATURE") == expected.encode()


def check_history(received: Iterable[Received], secret: bytes, api_key: bytes) -> None:
    """Check that each request is sealed, and each with a seal of its own."""
    signatures: set[bytes | None] = set()
    for request in received:
        check_seal(request, secret, api_key)
        signature = request.head.value(b"X-SERVICE-SIGNATURE")
        assert signature not in signatures, "one signature was received twice"
        signatures.add(signature)


def violations(deeds: Mapping[str, Deed], told: Mapping[str, Tries], reads: frozenset[str]) -> list[str]:
    """Say what is wrong; an empty list is a good history. `reads` are the ids that may be received again."""
    found = [f"{name}: nobody asked for it" for name in deeds.keys() - told.keys()]
    for name, tries in told.items():
        deed = deeds.get(name, Deed())
        found += [f"{name}: {wrong} ({deed})" for wrong in _wrongs(deed, tries, is_read=name in reads)]
    return found


def _wrongs(deed: Deed, tries: Tries, *, is_read: bool) -> Iterator[str]:
    if not is_read and deed.receipts > 1:
        yield f"received {deed.receipts} times"
    if not is_read and deed.executed > 1:
        yield f"executed {deed.executed} times"
    answers = [answer for answer in tries if answer is not None]
    for answer in answers:
        if answer.is_whole or answer.outcome not in ("done", "unknown"):
            yield from _told_wrongly(deed, answer, is_read=is_read)
    if answers and len(answers) == len(tries) and {answer.outcome for answer in answers} == {"not_sent"}:
        yield from _must(deed.begun == 0, "not_sent, but a byte of it arrived")


def _told_wrongly(deed: Deed, answer: Reply, *, is_read: bool) -> Iterator[str]:
    """Check one reply. What a whole one of the upstream's says must be what the upstream wrote."""
    judge = (_OF_A_READ if is_read else _OF_AN_ORDER).get(answer.outcome or "")
    if judge is None:
        yield f"outcome {answer.outcome}"
        return
    yield from judge(deed, answer)
    is_passed_on = answer.reason is None and not is_refusal_for_now(answer.status, answer.body)
    yield from _must(not is_passed_on or answer.body in deed.bodies, "a reply that was not written")


def _done(deed: Deed, _: Reply) -> Iterator[str]:
    yield from _must((deed.receipts, deed.executed) == (1, 1), "done, but it is not")


def _refused(deed: Deed, answer: Reply) -> Iterator[str]:
    yield from _must(deed.executed == 0, "refused, but it is done")
    is_for_now = answer.reason is not None or is_refusal_for_now(answer.status, answer.body)
    yield from _must(bool(deed.refusals if is_for_now else deed.receipts), "refused, but nobody did")


def _not_sent(deed: Deed, _: Reply) -> Iterator[str]:
    yield from _must(deed.executed == 0, "not_sent, but it is done")


def _unknown(_: Deed, answer: Reply) -> Iterator[str]:
    fence = answer.text("X-Gateway-Fence-Ms")
    yield from _must(answer.reason == "in_flight" or fence is not None, "unknown without a fence")


def _anything(_: Deed, __: Reply) -> Iterator[str]:
    yield from ()


_Judge = Callable[[Deed, Reply], Iterator[str]]
_OF_AN_ORDER: Mapping[str, _Judge] = {
    "done": _done,
    "refused": _refused,
    "not_sent": _not_sent,
    "unknown": _unknown,
}
_OF_A_READ: Mapping[str, _Judge] = dict.fromkeys(_OF_AN_ORDER, _anything)


def _must(is_so: bool, otherwise: str) -> Iterator[str]:
    if not is_so:
        yield otherwise
