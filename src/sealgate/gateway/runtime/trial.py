"""Trying what a new configuration brings before it is taken into use: keys, secrets, session tokens.

What the exchange refuses is an error; where it cannot be reached, or its answer says nothing, that is told.
"""

from collections.abc import Awaitable, Callable, Hashable

from sealgate.config.venues import is_scheme_open
from sealgate.core.key_breaker import KeyVerdict, judge_key, key_fault
from sealgate.core.key_records import find_record
from sealgate.core.routes import Lane
from sealgate.core.target import Target
from sealgate.errors import Refusal
from sealgate.gateway.platform.system import System
from sealgate.gateway.request.generation import Generation, LiveKey
from sealgate.gateway.runtime.own_requests import Deliverer, ask
from sealgate.gateway.upstream.answer import Answer

_SAME = Target("/", "/", None)  # what old and new key sign to be compared


class TrialError(Exception):
    """The exchange refuses something. `str()` has cause and fix."""


class Trial:
    """Tries what a pipeline brings that an old generation did not have."""

    def __init__(self, new: Deliverer, old: Generation, system: System) -> None:
        self._new = new
        self._old = old
        self._system = system

    async def run(self) -> list[str]:
        """Return what is not known to be good even so. Raises TrialError."""
        doubts = [await _tried(f"keys.{alias}", self._try_key(alias)) for alias in self._changed(_key_proof)]
        doubts += [
            await _tried(f"keys.{alias}.session", self._try_session(alias))
            for alias in self._changed(_session_proof)
            if self._live_key(alias).key.session is not None
        ]
        return [doubt for doubt in doubts if doubt is not None]

    def _live_key(self, alias: str) -> LiveKey:
        return self._new.generation.live_keys[alias]

    def _changed(self, proof: Callable[[LiveKey], Hashable]) -> list[str]:
        """Return the keys whose proof is not known to be good: a new one, or for another exchange."""
        new = self._new.generation
        if new.config.base_url != self._old.config.base_url:
            return list(new.live_keys)
        known = {proof(live_key) for live_key in self._old.live_keys.values()}
        return [alias for alias, live_key in new.live_keys.items() if proof(live_key) not in known]

    async def _try_key(self, alias: str) -> str | None:
        """Send a signed read; return why it says nothing of the key, None where that is good."""
        venue = self._new.generation.config.venue
        path = venue.signed_read
        if not path:
            return f"keys.{alias} could not be tried: the venue's file names no read in reads.signed"
        answer = await ask(self._new, alias, path, Lane.CANCEL, self._system)
        cause = key_fault(answer.verdict) or "the signature is refused"
        rest = ", its secret or [signing]" if is_scheme_open(venue) else " or its secret"
        fix = f"correct keys.{alias}.api_key{rest}"
        return _heard(answer, f"keys.{alias}: a signed read", f"{cause}; {fix}")

    async def _try_session(self, alias: str) -> str | None:
        """Read the list of keys, likewise; the key must be in it."""
        name = f"keys.{alias}.session"
        path = self._new.generation.config.venue.key_list
        if not path:
            return None
        answer = await ask(self._new, alias, path, Lane.CANCEL, self._system)
        fix = "store the token of a session that has not ended"
        doubt = _heard(answer, f"{name}: the list of keys", f"the token is refused; {fix}")
        if doubt is None and find_record(answer.body, self._live_key(alias).key.api_key) is None:
            return (
                f"{name}: the exchange's list does not have the key; use a token of the user whose key it is"
            )
        return doubt


async def _tried(name: str, trial: Awaitable[str | None]) -> str | None:
    """Return what a trial returns, or why there was none."""
    try:
        return await trial
    except Refusal as refusal:
        return f"{name} could not be tried: {refusal.detail}"


def _heard(answer: Answer, what: str, refused: str) -> str | None:
    """Return why an answer says nothing, None where that is good. Raises TrialError."""
    told = f"{what} was answered {answer.status}"
    verdict = judge_key(answer.status, answer.verdict)
    if verdict is KeyVerdict.REFUSED:
        raise TrialError(f"{told}: {refused}")
    return told if verdict is KeyVerdict.UNSURE else None


def _key_proof(live_key: LiveKey) -> Hashable:
    """Return what is the same for the same key and secret: no secret is kept that could be compared."""
    return live_key.key.sign_read(0, b"", "GET", _SAME)


def _session_proof(live_key: LiveKey) -> Hashable:
    return live_key.key.api_key, live_key.key.session
