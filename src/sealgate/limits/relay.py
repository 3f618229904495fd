"""What a pacer reports where several gateways share the limit, and what it is told."""

from typing import NamedTuple, Protocol

from sealgate.limits.claims import Claim, LimitReply, Rejection


class Decisions(NamedTuple):
    """Claims that the leader grants and rejects. Ask again at `ask_again_at`, None: at the next event."""

    granted: list[Claim]
    rejected: list[Rejection]
    ask_again_at: float | None = None


class Relay(Protocol):
    """Relays a pacer's claims to the leader that decides for several gateways, and its decisions back.

    A pacer that has a relay keeps its queue, its deadlines and its gate, but asks the relay which claims go.
    """

    def goes_at_once(self, claim: Claim, now: float) -> bool:
        """Return whether a claim may go without asking the leader; if so, it counts as gone."""

    def enter(self, claim: Claim, now: float) -> None:
        """Report a claim that waits."""

    def leave(self, claim: Claim) -> None:
        """Report a claim that will not be sent, though it waited or was let go."""

    def decisions(self, now: float) -> Decisions:
        """Return the leader's decisions. A grant holds until its claim goes or leaves."""

    def go(self, claim: Claim) -> None:
        """Report that a granted claim goes."""

    def sent(self, claim: Claim, now: float, late_s: float) -> None:
        """Report that the first byte of a claim leaves now, `late_s` after the claim was let go."""

    def answered(self, claim: Claim, sent_at: float, now: float, reply: LimitReply) -> None:
        """Report how a claim ended: only the leader learns from it."""

    def hold(self, place: str, until: float, now: float) -> None:
        """Report a pool's pause that was met elsewhere, and that the pacer goes by now."""
