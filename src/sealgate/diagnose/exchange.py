"""Check an exchange: its time, its list of keys, and whether it accepts a signed read with each key.

It sends only reads, one after the other: three for the time, one without a signature, one for each session
token and each key; on request, also a login on a stream with each key. A 429 ends the check, because the rate
limit is for the bots.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus

from sealgate.config import Config, ExchangeConfig
from sealgate.config.venues import is_scheme_open, venue_text
from sealgate.diagnose.causes import Facts, WholeReply, fix_of_own_read
from sealgate.diagnose.key_reading import bots_may
from sealgate.diagnose.local import Known, found_wrong
from sealgate.diagnose.logins import judge_login
from sealgate.diagnose.probe import CommandClock, read
from sealgate.diagnose.reads import Asked, Read, judge_limited, judge_paths, judge_reads
from sealgate.diagnose.streams import StreamLogins
from sealgate.diagnose.vetting import vet_clock, vet_keep_alive, vet_listed
from sealgate.exchange.answer import Answer
from sealgate.exchange.failure import Failure
from sealgate.exchange.pool import Upstream
from sealgate.exchange.refused_reads import refused_unsigned
from sealgate.exchange.stamps import Nonces
from sealgate.http.target import Target, parse_target
from sealgate.keys.key import Secret, bearer_line, by_session
from sealgate.keys.key_records import ListedKey, find_key
from sealgate.limits.limit_reply import limit_reply
from sealgate.machine.findings import REACH, Finding, Level, error_words, fail, ok, warn
from sealgate.machine.system import System
from sealgate.orders.journal.nonces import nonce_of_command
from sealgate.request.rules import method_of_read
from sealgate.server.memory import nonces_place
from sealgate.streams.openings import Openings
from sealgate.venues.replies import Means
from sealgate.venues.stream_logins import NO_LOGIN, find_login, has_login
from sealgate.venues.stream_sealer import Moment
from sealgate.venues.unsignable import UnsignableError

_SAMPLES = 3
_ITS_FAULT = "run the check again; if it persists, look at the network and the exchange's status page"
_NO_PATH = "the venue's file names no path for the time"
_ASK_FOR_STREAMS = "--streams logs in once with each key"
_NO_READ = "not tried at the exchange: the venue's file names no signed read"


class EndOfAskingError(Exception):
    """The check of this exchange ends, for example after a 429. `finding` is the line that says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding


class Exchange:
    """Checks one exchange. `target` is the target of the signed read, None if unknown.

    `accepted` are the keys whose signed read was accepted.
    """

    def __init__(
        self,
        config: Config,
        exchange: ExchangeConfig,
        upstream: Upstream,
        target: Target | None,
        system: System,
    ) -> None:
        self._config = config
        self._exchange = exchange
        self._upstream = upstream
        self._target = target
        self._system = system
        self._clock = CommandClock(exchange.clock.field, system)
        # By alias; None: the list read with the key's session lacks the key.
        self._listed: dict[str, ListedKey | None] = {}
        self._is_served = False
        self._keep_alive_s: float | None = None  # the shortest announced
        self._nonce_words: dict[str, None] = {}
        self._unsigned: Answer | Failure | None = None
        self._is_over = False  # nothing more may be sent
        self._refused: set[str] = set()  # the keys whose signed read was not accepted
        self.accepted: set[str] = set()

    async def examine(self, known: Mapping[str, Known]) -> AsyncIterator[Finding]:
        """Yield all lines. If the check ends early, the last line says why."""
        reads: list[Read] = []
        is_public, end = False, None
        try:
            for finding in await self._read_time():
                yield finding
            async for finding in self._read_lists(known):
                yield finding
            is_public = await self._read_keys(known, reads)
        except EndOfAskingError as error:
            end = error.finding
        for finding in (*self._judged(reads, is_public=is_public), *self._tell_of_nonces()):
            yield finding
        for alias in known if self._target is None else ():
            yield warn(f"keys.{alias}", _NO_READ, "name a GET that needs a key: --path /…")
        if (idle := vet_keep_alive(self._keep_alive_s, self._exchange.upstream.keep_alive)) is not None:
            yield idle
        if end is not None:
            self._is_over = True
            yield end

    def _judged(self, reads: list[Read], *, is_public: bool) -> Iterator[Finding]:
        """Yield a line for each read, and note which keys are accepted."""
        for made, finding in zip(reads, judge_reads(reads, is_public=is_public), strict=True):
            if finding.level is Level.OK:
                self.accepted.add(made.facts.alias)
            elif not made.is_accepted:
                self._refused.add(made.facts.alias)
            yield finding

    async def look_at_streams(self, known: Mapping[str, Known], *, is_asked: bool) -> AsyncIterator[Finding]:
        """Log in on a stream with each key, and yield a line for each; only one line if not requested."""
        has_logins = any(map(has_login, self._exchange.venue.streams))
        if not is_asked or not has_logins:
            if is_asked or (known and has_logins):
                yield ok("streams", f"not tried: {NO_LOGIN if is_asked else _ASK_FOR_STREAMS}")
            return
        logins = StreamLogins(self._exchange, self._upstream.destination, self._system)
        opens = self._exchange.limits.stream_opens
        openings = Openings() if opens is None else Openings(opens.n, opens.window_s)
        for one in known.values() if not self._is_over else ():
            await self._system.sleep(openings.wait_s(self._system.now()))
            openings.opened(self._system.now())
            finding, is_limited = await self._log_in(one, logins)
            yield finding
            if is_limited:
                break
        for finding in self._tell_of_nonces():
            yield finding

    async def _log_in(self, known: Known, logins: StreamLogins) -> tuple[Finding, bool]:
        """Log in with a key; return the line, and whether the exchange refused because of its rate limit."""
        area, venue = f"keys.{known.key.alias}", self._exchange.venue
        login = find_login(venue, self._exchange.environment, known.key.sealer.signer.kind)
        if isinstance(login, str):
            return ok(area, f"not tried on a stream: {login}"), False
        moment = self._moment(known)
        try:
            attempt = await logins.attempt(login, known.key, moment)
        except UnsignableError as error:
            return found_wrong(area, f"a login on {login.stream.label} cannot be made: {error}"), False
        facts = self._facts(known, "WS", attempt.address, moment.timestamp_ms, attempt.took_ms)
        return judge_login(attempt, facts), attempt.is_limited

    def _tell_of_nonces(self) -> Iterator[Finding]:
        while self._nonce_words:
            yield ok("nonces", self._nonce_words.popitem()[0])

    async def _ask(
        self, target: str, lines: bytes = b"", body: bytes = b"", method: str = "GET"
    ) -> Answer | Failure:
        """Send a read and return the complete reply. Raises EndOfAskingError."""
        answer = await read(self._upstream, target, lines, body, method)
        if isinstance(answer, Failure):
            if answer.is_unsent:
                raise EndOfAskingError(fail("exchange", f"cannot be reached: {answer.detail}", REACH))
            return answer
        if (stated := answer.head.keep_alive_s) is not None:
            self._keep_alive_s = stated if self._keep_alive_s is None else min(stated, self._keep_alive_s)
        # A reply with several possible meanings concerns one key, and is diagnosed.
        is_country = answer.verdict.means is Means.COUNTRY and not answer.verdict.others
        if answer.verdict.is_limited or is_country:
            head, now = answer.head, self._clock.server_now
            limit = limit_reply(answer.verdict, head.limit_fields, now, fields=head.passed)
            raise EndOfAskingError(
                judge_limited("exchange", answer.status, answer.verdict, limit.retry_after_s)
            )
        self._is_served = self._is_served or (not lines and answer.verdict.means is Means.DONE)
        return answer

    @property
    def _named_read(self) -> str:
        """The signed read's method and target."""
        target = self._target
        return "" if target is None else f"{method_of_read(self._exchange, target)} {target.path}"

    async def _ask_unsigned(self, target: Target) -> Answer | Failure:
        """Send the signed read once without a signature, and return the reply."""
        if self._unsigned is None:
            self._unsigned = await self._ask(target.raw, method=method_of_read(self._exchange, target))
        return self._unsigned

    async def _read_time(self) -> list[Finding]:
        """Read the exchange's time, and return the line on the clock. Raises EndOfAskingError."""
        window_ms = min(key.recv_window_ms for key in self._exchange.keys.values())
        path = self._exchange.clock.path
        # 1. Without a path for the time, use the Date of any reply, as the gateway does.
        if not path:
            sent = self._system.now()
            answer = await self._ask("/")
            if isinstance(answer, Failure) or not self._clock.take_date(answer, sent):
                trouble = answer.detail if isinstance(answer, Failure) else "the reply has no Date header"
                return [fail("clock", f"{_NO_PATH}; {trouble}", "set clock.path, if the exchange has one")]
            finding = vet_clock(self._clock.offset_s(), self._clock.error_s(), window_ms)
            return [replace(finding, text=f"{finding.text}, by the Date header: {_NO_PATH}")]
        # 2. One sample of several is enough. Stop after the first that cannot be read.
        for _ in range(_SAMPLES):
            sent = self._system.now()
            answer = await self._ask(path)
            trouble = answer.detail if isinstance(answer, Failure) else self._clock.take(answer, sent)
            if trouble:
                break
        if self._clock.is_synced:
            return [vet_clock(self._clock.offset_s(), self._clock.error_s(), window_ms)]
        # 3. If the path does not exist, a second path shows whether base_url is the exchange at all.
        report = fail if self._exchange.clock.required else warn
        line = report("clock", f"{path}: {trouble}", self._fix_of_time(answer))
        if self._target is None or isinstance(answer, Failure) or answer.status != HTTPStatus.NOT_FOUND:
            return [line]
        other = await self._ask_unsigned(self._target)
        if isinstance(other, Failure):
            return [line]
        method = method_of_read(self._exchange, self._target)
        asked = Asked(f"{method} {self._target.path}", other.status, other.verdict)
        missing = Asked(f"GET {path}", answer.status, answer.verdict)
        return list(judge_paths(line, missing, asked, str(self._exchange.base_url), self._home))

    def _fix_of_time(self, answer: Answer | Failure) -> str:
        """Return the fix for a reply that contains no readable time."""
        if isinstance(answer, Failure):
            return _ITS_FAULT
        _, fix = refused_unsigned(answer.status, answer.verdict)
        if fix:
            return fix
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return _ITS_FAULT
        if self._home and self._exchange.clock.path == self._exchange.venue.clock_path:
            return f"compare venue and base_url with the exchange's documents{self._home}"
        return "correct clock.path and clock.field, or base_url"

    @property
    def _home(self) -> str:
        """The exchange's base URL in the venue's file, in words; "" if it has none."""
        venue = self._exchange.venue
        return f" ({venue.title} is at {venue.base_url})" if venue.base_url else ""

    async def _read_lists(self, known: Mapping[str, Known]) -> AsyncIterator[Finding]:
        """Read the list of keys once with each session token; yield a line for each key that has one."""
        venue = self._exchange.venue
        tokens = {alias: one.key.session for alias, one in known.items() if one.key.session is not None}
        for session, aliases in by_session(tokens if venue.key_list else {}).items():
            answer = await self._ask(venue.key_list, bearer_line(session))
            for finding in self._listed_as(aliases, answer, session):
                yield finding

    def _listed_as(self, aliases: list[str], answer: Answer | Failure, session: Secret) -> Iterator[Finding]:
        """Store the list's record of each key of a session, and yield its line."""
        for alias in aliases:
            area = f"keys.{alias}.session"
            if isinstance(answer, Failure):
                yield fail(area, f"no answer: {answer.detail}", "run it again")
            elif answer.status != HTTPStatus.OK:
                said = error_words(answer.status, answer.verdict.words, (session.reveal(),))
                fix = fix_of_own_read(answer.verdict, alias) or "correct base_url"
                yield fail(area, f"the list of keys was refused, {said}", fix)
            else:
                key = self._listed[alias] = find_key(answer.body, self._exchange.keys[alias].api_key)
                if key is None:
                    fix = "store the session token of the user whose key it is"
                    yield warn(area, "the token is valid, but its user has no such key", fix)
                else:
                    yield vet_listed(area, key, bots_may(self._config, alias), self._clock.server_now())

    async def _read_keys(self, known: Mapping[str, Known], reads: list[Read]) -> bool:
        """Read with each key, and append the results to `reads`; return whether the read needs no key."""
        if self._target is None or not known:
            return False
        answer = await self._ask_unsigned(self._target)
        for one in known.values():
            reads.append(await self._read(one, self._target))  # noqa: PERF401 - what came before an end is kept
        return isinstance(answer, Answer) and answer.verdict.means is Means.DONE

    async def _read(self, known: Known, target: Target) -> Read:
        """Read with a key. If the refusal has several possible meanings, also try the venue's usual read."""
        answer, facts = await self._ask_signed(known, target)
        if isinstance(answer, Failure):
            return Read(known.key.api_key, facts, None, answer.detail)
        usual = self._exchange.venue.signed_read
        if answer.verdict.others and usual and usual != target.raw:
            other, of_other = await self._ask_signed(
                known, parse_target(usual, self._exchange.upstream.prefix)
            )
            if isinstance(other, Answer) and other.verdict.means is Means.DONE:
                facts = replace(facts, accepted_read=f"{of_other.method} {of_other.path}")
        return Read(known.key.api_key, facts, WholeReply(answer.status, answer.body, answer.verdict))

    async def _ask_signed(self, known: Known, target: Target) -> tuple[Answer | Failure, Facts]:
        """Send a signed read; return its reply, and the facts known about it."""
        key, sent, method = known.key, self._system.now(), method_of_read(self._exchange, target)
        timestamp_ms, nonce, _ = self._moment(known)
        answer = await self._ask(*key.sign_read(timestamp_ms, nonce, method, target), method)
        took_ms = round((self._system.now() - sent) * 1000)
        return answer, self._facts(known, method, target.path, timestamp_ms, took_ms)

    def _moment(self, known: Known) -> Moment:
        """Return the time and nonce for a signature made now."""
        timestamp_ms = self._clock.timestamp_ms(self._system.now())
        place = nonces_place(self._exchange, known.key.alias)
        nonces = Nonces(known.key.sealer.scheme.nonce, self._system.unique, place)
        nonce, words = nonce_of_command(self._config.journal.file, nonces, timestamp_ms)
        if words:
            self._nonce_words[words] = None
        return Moment(timestamp_ms, nonce)

    def _facts(self, known: Known, method: str, path: str, timestamp_ms: int, round_trip_ms: int) -> Facts:
        key, exchange, venue = known.key, self._exchange, self._exchange.venue
        listed = self._listed.get(key.alias)
        is_scheme_of_file = not is_scheme_open(venue)
        return Facts(
            alias=key.alias,
            timestamp_ms=timestamp_ms,
            round_trip_ms=round_trip_ms,
            clock_error_ms=round(self._clock.error_s() * 1000) if self._clock.is_synced else None,
            recv_window_ms=key.recv_window_ms,
            shape=known.shape,
            record=listed.record if listed else None,
            is_listed=listed is not None if key.alias in self._listed else None,
            server_now_s=self._clock.server_now(),
            is_to_trade="trade" in bots_may(self._config, key.alias),
            scheme_is_default=exchange.signing == type(exchange.signing)(),
            header_prefix=venue.header_prefix,
            method=method,
            path=path,
            venue=venue_text(venue) if is_scheme_of_file else "",
            is_served=self._is_served,
            accepted_read=self._named_read if key.alias in self.accepted else "",
            is_read_refused=key.alias in self._refused,
            nonce=key.sealer.scheme.nonce,
            wants=venue.further_settings,
            is_own_clock=not (is_scheme_of_file and exchange.clock.path == venue.clock_path),
            exchange=exchange.name if exchange.at else "",
        )
