"""What is in flight, and how much was at a time: a cap on concurrent requests is learned from it."""

import math


class InFlight:
    """The requests in flight, in the order in which they were let go."""

    def __init__(self) -> None:
        self._flights: dict[str, tuple[float, int]] = {}  # when it was sent, with how many others in flight
        self.peak = 0  # the most in flight at an acceptance since the last event

    def __len__(self) -> int:
        return len(self._flights)

    @property
    def since(self) -> float:
        """When the first of them was sent, infinity if there is none."""
        return next((at for at, _ in self._flights.values()), math.inf)

    def send(self, claim_id: str, now: float) -> None:
        """Add a request that is sent now."""
        self._flights[claim_id] = (now, len(self._flights))

    def end(self, claim_id: str) -> None:
        """Remove a request that got no reply, or was not sent."""
        self._flights.pop(claim_id, None)

    def accepted(self, claim_id: str) -> int:
        """Remove a request that was accepted; return how many were in flight with it, itself included."""
        _, others = self._flights.pop(claim_id)
        at_a_time = others + 1
        self.peak = max(self.peak, at_a_time)
        return at_a_time

    def refused(self, claim_id: str, jitter_s: float) -> int:
        """Remove a request that was refused; return how many others were in flight with it.

        A request that was sent up to a jitter later may have arrived before it.
        """
        names = list(self._flights)
        later = names[names.index(claim_id) + 1 :]
        sent_at, beside = self._flights.pop(claim_id)
        for name in later:
            at, others = self._flights[name]
            beside += at <= sent_at + jitter_s
            self._flights[name] = (at, others - 1)
        return beside
