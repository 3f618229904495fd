"""What the exchange says: its time, its list of keys, and whether it accepts a signed read of each key.

Only reads are sent, one after the other: three for the time, one without a signature (two where the exchange
has no time), one for each session token and each key. A 429 ends it, as the limit belongs to the bots.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from sealgate.cli.checking.local import Known
from sealgate.cli.key_reading import bots_may
from sealgate.config import Config
from sealgate.core.advice import REACH
from sealgate.core.attempts import Failure
from sealgate.core.error_words import error_words
from sealgate.core.findings import Finding, Level, fail, warn
from sealgate.core.key_records import KeyRecord, find_key
from sealgate.core.limit_reply import limit_reply
from sealgate.core.refusals import Facts, WholeReply
from sealgate.core.server_time import UnreadableTimeError
from sealgate.core.signed_reads import Read, judge_reads, limited
from sealgate.core.target import Target
from sealgate.core.venues.replies import Means
from sealgate.core.venues.scheme import Nonces
from sealgate.core.vetting import nothing_there, vet_clock, vet_keep_alive, vet_listed
from sealgate.gateway.direct.clock import CommandClock
from sealgate.gateway.direct.read import read
from sealgate.gateway.host.host import Host
from sealgate.gateway.keys.key import Secret, by_session
from sealgate.gateway.keys.sealing import bearer_line
from sealgate.gateway.upstream.answer import Answer
from sealgate.gateway.upstream.pool import Upstream

_SAMPLES = 3


class LimitedError(Exception):
    """A 429: nothing more is sent."""

    def __init__(self, retry_after_s: float | None) -> None:
        super().__init__()
        self.retry_after_s = retry_after_s


class UnreachableError(Exception):
    """No connection could be made: the exchange cannot be asked at all. `str()` is the cause."""


@dataclass(frozen=True)
class Listed:
    """What the exchange's list says of a key; `is_listed` None where there is no session to ask with."""

    record: KeyRecord | None = None
    is_listed: bool | None = None


class Exchange:
    """Asks one exchange. `target` is what the signed read asks for.

    `accepted` are the keys for which the exchange has accepted it.
    """

    def __init__(self, config: Config, upstream: Upstream, target: Target, host: Host) -> None:
        self._config = config
        self._upstream = upstream
        self._target = target
        self._host = host
        self._clock = CommandClock(config.clock.field, host)
        self._listed: dict[str, Listed] = {}
        self._is_time_missing = False
        self._keep_alive_s: float | None = None  # the shortest that is announced
        self.accepted: set[str] = set()

    async def examine(self, known: Mapping[str, Known]) -> AsyncIterator[Finding]:
        """Yield all lines; a 429, or no connection, ends it with one, behind those of what came before."""
        reads: list[Read] = []
        is_public, end = False, None
        try:
            clock = await self._read_time()
            if self._is_time_missing and await self._is_missing():
                yield nothing_there(str(self._config.base_url), self._config.clock.path, self._target.path)
            yield clock
            async for finding in self._read_lists(known):
                yield finding
            is_public = bool(known) and await self._is_public()
            for one in known.values():
                reads.append(await self._read(one))  # noqa: PERF401 - what came before an end is kept
        except LimitedError as error:
            end = limited("exchange", error.retry_after_s)
        except UnreachableError as error:
            end = fail("exchange", f"it cannot be reached: {error}", REACH)
        for made, finding in zip(reads, judge_reads(reads, is_public=is_public), strict=True):
            if finding.level is Level.OK:
                self.accepted.add(made.facts.alias)
            yield finding
        if (idle := vet_keep_alive(self._keep_alive_s, self._config.upstream.keep_alive)) is not None:
            yield idle
        if end is not None:
            yield end

    async def _ask(self, target: str, lines: bytes = b"") -> Answer | Failure:
        """Send a read and return the whole reply. Raises LimitedError and UnreachableError."""
        answer = await read(self._upstream, target, lines)
        if isinstance(answer, Failure):
            if answer.is_unsent:
                raise UnreachableError(answer.detail)
            return answer
        if (stated := answer.head.keep_alive_s) is not None:
            self._keep_alive_s = stated if self._keep_alive_s is None else min(stated, self._keep_alive_s)
        if answer.verdict.is_limited:
            limit = limit_reply(answer.verdict, answer.head.limit_fields, self._clock.server_now)
            raise LimitedError(limit.retry_after_s)
        return answer

    async def _read_time(self) -> Finding:
        trouble: str | None = None
        for _ in range(_SAMPLES):
            trouble = trouble or await self._take_sample()
        if trouble is not None and not self._clock.is_synced:
            report = fail if self._config.clock.required else warn
            fix = "correct clock.path and clock.field"
            return report("clock", f"{self._config.clock.path}: {trouble}", fix)
        window_ms = min(key.recv_window_ms for key in self._config.keys.values())
        return vet_clock(self._clock.offset_s(), self._clock.error_s(), window_ms)

    async def _take_sample(self) -> str | None:
        """Take in one reply of `/time`; return what is wrong with it, None if nothing is."""
        sent = self._host.now()
        answer = await self._ask(self._config.clock.path)
        if isinstance(answer, Failure):
            return answer.detail
        self._is_time_missing = answer.status == HTTPStatus.NOT_FOUND
        try:
            self._clock.take(answer, sent)
        except UnreadableTimeError as error:
            return str(error)
        return None

    async def _read_lists(self, known: Mapping[str, Known]) -> AsyncIterator[Finding]:
        """Ask for the list of keys with each session token, and yield a line for each key that has it."""
        tokens = {alias: one.key.session for alias, one in known.items() if one.key.session is not None}
        for session, aliases in by_session(tokens if self._config.venue.key_list else {}).items():
            answer = await self._ask(self._config.venue.key_list, bearer_line(session))
            for alias in aliases:
                yield self._listed_as(alias, answer, session)

    def _listed_as(self, alias: str, answer: Answer | Failure, session: Secret) -> Finding:
        """Note what the list says of a key, and return the line of its session."""
        area = f"keys.{alias}.session"
        if isinstance(answer, Failure):
            return fail(area, f"no answer: {answer.detail}", "run it again")
        if answer.status != HTTPStatus.OK:
            said = error_words(answer.status, answer.verdict.words, (session.reveal(),))
            fix = answer.verdict.advice or "correct base_url"
            return fail(area, f"the list of keys was refused, {said}", fix)
        key = find_key(answer.body, self._config.keys[alias].api_key)
        self._listed[alias] = Listed(None if key is None else key.record, key is not None)
        if key is None:
            fix = "store the session token of the user whose key it is"
            return warn(area, "the token is good, but its user has no such key", fix)
        return vet_listed(area, key, bots_may(self._config, alias), self._clock.server_now())

    async def _is_public(self) -> bool:
        """Whether the read is answered without a signature, too, so that it says nothing of a key."""
        answer = await self._ask(self._target.raw)
        return isinstance(answer, Answer) and answer.verdict.means is Means.DONE

    async def _is_missing(self) -> bool:
        answer = await self._ask(self._target.raw)
        return isinstance(answer, Answer) and answer.status == HTTPStatus.NOT_FOUND

    async def _read(self, known: Known) -> Read:
        key, sent = known.key, self._host.now()
        timestamp_ms = self._clock.timestamp_ms(sent)
        nonce = Nonces(key.sealer.scheme.nonce, self._host.unique).take(timestamp_ms)
        answer = await self._ask(*key.sign_read(timestamp_ms, nonce, self._target))
        facts = self._facts(known, timestamp_ms, round((self._host.now() - sent) * 1000))
        if isinstance(answer, Failure):
            return Read(key.api_key, facts, None, answer.detail)
        return Read(key.api_key, facts, WholeReply(answer.status, answer.body, answer.verdict))

    def _facts(self, known: Known, timestamp_ms: int, round_trip_ms: int) -> Facts:
        key, config = known.key, self._config
        listed = self._listed.get(key.alias, Listed())
        return Facts(
            alias=key.alias,
            timestamp_ms=timestamp_ms,
            round_trip_ms=round_trip_ms,
            clock_error_ms=round(self._clock.error_s() * 1000) if self._clock.is_synced else None,
            recv_window_ms=key.recv_window_ms,
            shape=known.shape,
            record=listed.record,
            is_listed=listed.is_listed,
            server_now_s=self._clock.server_now(),
            is_to_trade="trade" in bots_may(config, key.alias),
            scheme_is_default=config.signing == type(config.signing)(),
            header_prefix=config.venue.header_prefix,
            path=self._target.path,
        )
