"""What the gateway knows about the cause of an error that the exchange answered, in words.

It stands beside the advice of the venue's file, in the log and on the live page.
"""

from collections.abc import Callable
from typing import NamedTuple

from sealgate.machine.findings import in_one_line
from sealgate.venues.replies import Means, Verdict, Whose

_PASSPHRASE = "passphrase"  # noqa: S105 - in the exchange's own words
LARGER_NONCES = "an earlier program used larger nonces with this key"
_RAISE_NONCES = (
    f"Most likely {LARGER_NONCES}, such as microseconds: make a new key, or set a larger unit (`nonce`) in a "
    "copy of the venue's file."
)
FOREIGN_USE = "something else seems to use this limit too"
_NEVER_ACCEPTED = "the key has not been accepted since the start"
_FINE_MS = 1000  # well within any recv_window


class Circumstances(NamedTuple):
    """What the gateway knows when an error comes.

    `clock_error_s` is None without a synced clock. `has_worked`: the key was accepted since the start.
    `limit` is what was learned of its limit, in words; `is_foreign_use`: others seem to use it, too.
    `step_s` is by how much the exchange's clock moved since the request was sent, None where it did not.
    """

    clock_error_s: float | None
    has_worked: bool
    limit: str = ""
    is_foreign_use: bool = False
    step_s: float | None = None


def evidence(verdict: Verdict, known: Circumstances) -> str:
    """Return what is known about the cause, as a sentence without its full stop; "" if nothing is known."""
    if verdict.others:
        return "; ".join(filter(None, (_one_of_several(verdict, known), _address(verdict, known))))
    explain = _EVIDENCE.get(verdict.means)
    return explain(verdict, known) if explain else ""


def advice(verdict: Verdict, known: Circumstances) -> str:
    """Return what to do about an error."""
    if verdict.means is Means.TIMESTAMP and known.step_s is not None:
        return "Nothing to do: the gateway follows the exchange's clock."
    if verdict.means is Means.NONCE and not known.has_worked:
        return _RAISE_NONCES
    return verdict.advice


def _one_of_several(verdict: Verdict, known: Circumstances) -> str:
    """Return what tells the meanings of a reply apart: a key that is accepted elsewhere is a good one."""
    if not known.has_worked:
        return _NEVER_ACCEPTED
    accepted = "the key was accepted for other requests since the start"
    meanings = {verdict.means, *verdict.others}
    # The rules of a country may forbid some requests and allow others.
    is_permission = Means.PERMISSION in meanings and Means.COUNTRY not in meanings
    return f"{accepted}: most likely it lacks a permission for this one" if is_permission else accepted


def _address(verdict: Verdict, _: Circumstances) -> str:
    address = verdict.found.get("address")
    return f"the exchange saw the address {address}" if address else ""


def _exclusion(verdict: Verdict, _: Circumstances) -> str:
    return f'the exchange says: "{in_one_line(verdict.words)}"' if verdict.words else ""


def _limit(verdict: Verdict, known: Circumstances) -> str:
    if verdict.whose is Whose.BOT:  # another limit than the key's, such as of handshakes
        return ""
    return f"{known.limit}; {FOREIGN_USE}" if known.is_foreign_use else known.limit


def _nonce(_: Verdict, known: Circumstances) -> str:
    return "" if known.has_worked else _NEVER_ACCEPTED


def _key(_: Verdict, known: Circumstances) -> str:
    if known.has_worked:
        return "it was accepted before: most likely it was revoked or has expired"
    return "it has not been accepted since the start: most likely `api_key` is mistyped or revoked"


def _signature(verdict: Verdict, known: Circumstances) -> str:
    if _PASSPHRASE in verdict.words.lower():
        cause = "the exchange names the passphrase: most likely that is wrong"
    elif known.has_worked:
        cause = "its signatures were accepted before: most likely its secret was replaced"
    else:
        cause = "the key is known: most likely the secret belongs to another key"
    return f"{_clock(known)}, {cause}"


def _timestamp(_: Verdict, known: Circumstances) -> str:
    if known.step_s is None:
        return _clock(known)
    return f"the exchange's clock stepped by {known.step_s:+.1f} s; before that, {_clock(known, 'was')}"


def _clock(known: Circumstances, verb: str = "is") -> str:
    if known.clock_error_s is None:
        return f"clock {verb} not synced"
    bound_ms = max(1, round(known.clock_error_s * 1000))
    is_fine = bound_ms <= _FINE_MS
    return f"clock {verb} fine (±{bound_ms} ms)" if is_fine else f"clock {verb} uncertain (±{bound_ms} ms)"


_EVIDENCE: dict[Means, Callable[[Verdict, Circumstances], str]] = {
    Means.ADDRESS: _address,
    Means.BANNED: _exclusion,
    Means.COUNTRY: _exclusion,
    Means.LIMITED: _limit,
    Means.NONCE: _nonce,
    Means.KEY: _key,
    Means.SIGNATURE: _signature,
    Means.TIMESTAMP: _timestamp,
}
