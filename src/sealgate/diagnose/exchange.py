"""What the exchange says: its time, its list of keys, and whether it accepts a signed read of each key.

Only reads are sent, one after the other: three for the time, one without a signature (two where the exchange
has no time), one for each session token and each key. A 429 ends it, as the limit belongs to the bots.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus

from sealgate.config import Config
from sealgate.config.venues import is_scheme_open, venue_text
from sealgate.diagnose.diagnosis import Facts, WholeReply
from sealgate.diagnose.key_reading import bots_may
from sealgate.diagnose.local import Known
from sealgate.diagnose.probe import CommandClock, read
from sealgate.diagnose.vetting import (
    Asked,
    Read,
    judge_reads,
    limited,
    vet_clock,
    vet_keep_alive,
    vet_listed,
    vet_paths,
)
from sealgate.exchange.answer import Answer
from sealgate.exchange.failure import Failure
from sealgate.exchange.pool import Upstream
from sealgate.exchange.refused_reads import refused_unsigned
from sealgate.http.target import Target, parse_target
from sealgate.keys.key import Secret, bearer_line, by_session
from sealgate.keys.key_records import KeyRecord, find_key
from sealgate.limits.limit_reply import limit_reply
from sealgate.machine.findings import REACH, Finding, Level, error_words, fail, ok, warn
from sealgate.machine.system import System
from sealgate.orders.journal.nonces import nonce_of_command
from sealgate.orders.validity import Nonces
from sealgate.request.rules import method_of_read
from sealgate.server.memory import nonces_place
from sealgate.venues.replies import Means
from sealgate.venues.server_time import UnreadableTimeError

_SAMPLES = 3
_ITS_FAULT = "run it again; if it persists, look at the network and the exchange's status page"
_NO_PATH = "the venue's file names no path for the time"
_NO_READ = "not tried at the exchange: the venue's file names no signed read"


class EndOfAskingError(Exception):
    """A 429, a ban or a country that is not served: nothing more is sent. `finding` is its line."""

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding


class UnreachableError(Exception):
    """No connection could be made: the exchange cannot be asked at all. `str()` is the cause."""


@dataclass(frozen=True)
class Listed:
    """What the exchange's list says of a key; `is_listed` None where there is no session to ask with."""

    record: KeyRecord | None = None
    is_listed: bool | None = None


class Exchange:
    """Asks one exchange. `target` is what the signed read asks for, None where nothing says it.

    `accepted` are the keys for which the exchange has accepted it.
    """

    def __init__(self, config: Config, upstream: Upstream, target: Target | None, system: System) -> None:
        self._config = config
        self._upstream = upstream
        self._target = target
        self._method = "GET" if target is None else method_of_read(config, target)
        self._system = system
        self._clock = CommandClock(config.clock.field, system)
        self._listed: dict[str, Listed] = {}
        self._time_missing: Asked | None = None
        self._is_served = False
        self._keep_alive_s: float | None = None  # the shortest that is announced
        self._nonce_words: dict[str, None] = {}
        self.accepted: set[str] = set()

    async def examine(self, known: Mapping[str, Known]) -> AsyncIterator[Finding]:
        """Yield all lines; a 429, or no connection, ends it with one, behind those of what came before."""
        reads: list[Read] = []
        is_public, end = False, None
        try:
            clock = await self._read_time()
            for line in await self._look_for_paths(clock):
                yield line
            async for finding in self._read_lists(known):
                yield finding
            is_public = await self._read_keys(known, reads)
        except EndOfAskingError as error:
            end = error.finding
        except UnreachableError as error:
            end = fail("exchange", f"cannot be reached: {error}", REACH)
        for made, finding in zip(reads, judge_reads(reads, is_public=is_public), strict=True):
            if finding.level is Level.OK:
                self.accepted.add(made.facts.alias)
            yield finding
        for finding in self._notes(known):
            yield finding
        if (idle := vet_keep_alive(self._keep_alive_s, self._config.upstream.keep_alive)) is not None:
            yield idle
        if end is not None:
            yield end

    def _notes(self, known: Mapping[str, Known]) -> Iterator[Finding]:
        for words in self._nonce_words:
            yield ok("nonces", words)
        for alias in known if self._target is None else ():
            yield warn(f"keys.{alias}", _NO_READ, "name a GET that needs a key: --path /…")

    async def _ask(
        self, target: str, lines: bytes = b"", body: bytes = b"", method: str = "GET"
    ) -> Answer | Failure:
        """Send a read and return the whole reply. Raises EndOfAskingError and UnreachableError."""
        answer = await read(self._upstream, target, lines, body, method)
        if isinstance(answer, Failure):
            if answer.is_unsent:
                raise UnreachableError(answer.detail)
            return answer
        if (stated := answer.head.keep_alive_s) is not None:
            self._keep_alive_s = stated if self._keep_alive_s is None else min(stated, self._keep_alive_s)
        # A reply that has other meanings, too, is about one key, and is diagnosed.
        is_country = answer.verdict.means is Means.COUNTRY and not answer.verdict.others
        if answer.verdict.is_limited or is_country:
            limit = limit_reply(answer.verdict, answer.head.limit_fields, self._clock.server_now)
            raise EndOfAskingError(limited("exchange", answer.status, answer.verdict, limit.retry_after_s))
        self._is_served = self._is_served or (not lines and answer.verdict.means is Means.DONE)
        return answer

    async def _read_time(self) -> Finding:
        if not self._config.clock.path:
            return await self._read_date()
        trouble: tuple[str, str] | None = None
        for _ in range(_SAMPLES):
            trouble = trouble or await self._take_sample()
        if trouble is not None and not self._clock.is_synced:
            report = fail if self._config.clock.required else warn
            cause, fix = trouble
            return report("clock", f"{self._config.clock.path}: {cause}", fix)
        return vet_clock(self._clock.offset_s(), self._clock.error_s(), self._window_ms())

    async def _read_date(self) -> Finding:
        """Go by the Date of any reply, as the gateway does where the exchange has no path for its time."""
        sent = self._system.now()
        answer = await self._ask("/")
        if isinstance(answer, Failure) or not self._clock.take_date(answer, sent):
            trouble = answer.detail if isinstance(answer, Failure) else "the reply has no Date"
            return fail("clock", f"{_NO_PATH}; {trouble}", "set clock.path, if the exchange has one")
        finding = vet_clock(self._clock.offset_s(), self._clock.error_s(), self._window_ms())
        return replace(finding, text=f"{finding.text}, by the Date header: {_NO_PATH}")

    def _window_ms(self) -> int:
        return min(key.recv_window_ms for key in self._config.keys.values())

    async def _take_sample(self) -> tuple[str, str] | None:
        """Take in one reply of `/time`; return what is wrong with it and the fix, None if nothing is."""
        sent = self._system.now()
        answer = await self._ask(self._config.clock.path)
        if isinstance(answer, Failure):
            return answer.detail, _ITS_FAULT
        if answer.status == HTTPStatus.NOT_FOUND:
            self._time_missing = Asked(f"GET {self._config.clock.path}", answer.status, answer.verdict)
        try:
            self._clock.take(answer, sent)
        except UnreadableTimeError as error:
            _, fix = refused_unsigned(answer.status, answer.verdict)
            is_its_fault = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR
            return str(error), fix or (_ITS_FAULT if is_its_fault else self._fix_of_time())
        return None

    def _fix_of_time(self) -> str:
        """Return what to correct where something else than the time is answered."""
        if not self._home() or self._config.clock.path != self._config.venue.clock_path:
            return "correct clock.path and clock.field, or base_url"
        return f"compare venue and base_url with the exchange's documents{self._home()}"

    def _home(self) -> str:
        """Return where the venue's file says that the exchange is, "" if it does not."""
        venue = self._config.venue
        return f" ({venue.title} is at {venue.base_url})" if venue.base_url else ""

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
            return warn(area, "the token is valid, but its user has no such key", fix)
        return vet_listed(area, key, bots_may(self._config, alias), self._clock.server_now())

    async def _read_keys(self, known: Mapping[str, Known], reads: list[Read]) -> bool:
        """Read with each key, and put what came into `reads`; return whether anybody may read this."""
        target = self._target
        if target is None or not known:
            return False
        is_public = await self._is_public(target)
        for one in known.values():
            reads.append(await self._read(one, target))  # noqa: PERF401 - what came before an end is kept
        return is_public

    async def _is_public(self, target: Target) -> bool:
        """Whether the read is answered without a signature, too, so that it says nothing of a key."""
        answer = await self._ask(target.raw, method=self._method)
        return isinstance(answer, Answer) and answer.verdict.means is Means.DONE

    async def _look_for_paths(self, clock: Finding) -> list[Finding]:
        """Return the line of the clock; if the path of the time is missing, with the answer of another."""
        target, time = self._target, self._time_missing
        if target is None or time is None:
            return [clock]
        answer = await self._ask(target.raw, method=self._method)
        if not isinstance(answer, Answer):
            return [clock]
        read = Asked(f"{self._method} {target.path}", answer.status, answer.verdict)
        return list(vet_paths(clock, time, read, str(self._config.base_url), self._home()))

    async def _read(self, known: Known, target: Target) -> Read:
        key = known.key
        answer, facts = await self._ask_signed(known, target)
        if isinstance(answer, Failure):
            return Read(key.api_key, facts, None, answer.detail)
        if answer.verdict.others:
            facts = replace(facts, accepted_read=await self._accepted_read(known, target))
        return Read(key.api_key, facts, WholeReply(answer.status, answer.body, answer.verdict))

    async def _accepted_read(self, known: Known, refused: Target) -> str:
        """Return the venue's usual read if that is another one and is accepted, "" if not."""
        usual = self._config.venue.signed_read
        if not usual or usual == refused.raw:
            return ""
        target = parse_target(usual, self._config.upstream.prefix)
        answer, facts = await self._ask_signed(known, target)
        is_accepted = isinstance(answer, Answer) and answer.verdict.means is Means.DONE
        return f"{facts.method} {facts.path}" if is_accepted else ""

    async def _ask_signed(self, known: Known, target: Target) -> tuple[Answer | Failure, Facts]:
        """Send a signed read; return its reply, and what is known beside it."""
        key, sent, method = known.key, self._system.now(), method_of_read(self._config, target)
        timestamp_ms = self._clock.timestamp_ms(sent)
        nonces = Nonces(key.sealer.scheme.nonce, self._system.unique, nonces_place(self._config, key.alias))
        nonce, words = nonce_of_command(self._config.journal.file, nonces, timestamp_ms)
        if words:
            self._nonce_words[words] = None
        answer = await self._ask(*key.sign_read(timestamp_ms, nonce, method, target), method)
        return answer, self._facts(known, target, timestamp_ms, round((self._system.now() - sent) * 1000))

    def _facts(self, known: Known, target: Target, timestamp_ms: int, round_trip_ms: int) -> Facts:
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
            method=method_of_read(config, target),
            path=target.path,
            venue="" if is_scheme_open(config.venue) else venue_text(config.venue),
            is_served=self._is_served,
            nonce=key.sealer.scheme.nonce,
            wants=tuple(name for name in ("passphrase", "uid") if config.venue.signing.needs(name)),
        )
