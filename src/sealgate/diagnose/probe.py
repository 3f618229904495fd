"""Send the reads of commands, without the gateway's queue."""

import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from sealgate.config import Config, ExchangeConfig
from sealgate.diagnose.schemes import (
    End,
    Lesson,
    Probe,
    ProbeResult,
    SearchEnd,
    lesson_of,
    make_plan,
    next_step,
    pause_s,
    tells_encoding,
)
from sealgate.exchange.answer import Answer
from sealgate.exchange.clock import Sample, ServerClock
from sealgate.exchange.clock_keeper import date_in, time_in
from sealgate.exchange.destination import destination_of
from sealgate.exchange.failure import Failure
from sealgate.exchange.pool import Upstream
from sealgate.http.headers import content_length
from sealgate.http.target import parse_target
from sealgate.keys.key import NO_SECRET, STATES_LENGTH, Secret, headers_in
from sealgate.keys.parts import build_candidates
from sealgate.keys.signing_choices import Encoding, SecretIs, SignedTarget, Way
from sealgate.limits.limit_reply import limit_reply
from sealgate.machine.findings import error_words
from sealgate.machine.system import System
from sealgate.venues.replies import Verdict
from sealgate.venues.routes import Lane
from sealgate.venues.server_time import UnreadableTimeError, stated_time

_FALSE_BODY = b"x"  # signed but not sent, to make a false signature


class CommandClock:
    """A command's knowledge of the exchange's time. `field` locates it in a reply, as in `TimeSource`."""

    def __init__(self, field: str, system: System) -> None:
        self._field = field
        self._system = system
        self._clock = ServerClock()

    def take(self, answer: Answer, sent: float) -> str:
        """Take the time from a reply of `/time` received now; return why that failed, or ""."""
        received = self._system.now()
        try:
            found = time_in(answer, self._field)
        except UnreadableTimeError as error:
            return str(error)
        self._clock = self._clock.observe(Sample(sent, received, found.seconds, found.resolution))
        return ""

    def take_date(self, answer: Answer, sent: float) -> bool:
        """Take the `Date` of a reply received now, accurate to half a second; return whether it has one."""
        seconds = date_in(answer)
        if seconds is not None:
            self._clock = self._clock.observe(Sample(sent, self._system.now(), seconds, 1.0))
        return seconds is not None

    def refused(self, verdict: Verdict, sent: float) -> None:
        """Take the time stated in a refusal of the timestamp received now, if it states one."""
        stated = stated_time(verdict.found.get("server_time", ""))
        if stated is not None:
            self._clock = self._clock.observe(Sample(sent, self._system.now(), stated))

    @property
    def is_synced(self) -> bool:
        """Whether the exchange's time is known."""
        return self._clock.is_synced

    def error_s(self) -> float:
        """Return the clock error, infinite while the exchange's time is unknown."""
        return self._clock.error(self._system.now())

    def offset_s(self) -> float:
        """Return the exchange's time minus this machine's."""
        return self.server_now() - self._system.wall()

    def timestamp_ms(self, now: float) -> int:
        """Return the timestamp to sign with at `now`, a reading of this machine's clock."""
        return self._clock.timestamp_ms(now) if self.is_synced else int(self._system.wall() * 1000)

    def server_now(self) -> float:
        """Return the exchange's time in epoch seconds."""
        now = self._system.now()
        return now + self._clock.bounds(now).middle if self.is_synced else self._system.wall()


@contextlib.asynccontextmanager
async def direct_upstream(
    config: ExchangeConfig, proxy_password: Secret = NO_SECRET
) -> AsyncIterator[Upstream]:
    """Keep a connection to the exchange for the duration of the block."""
    upstream = Upstream(destination_of(config, proxy_password=proxy_password))
    try:
        yield upstream
    finally:
        await upstream.close()


async def read(
    upstream: Upstream, target: str, fields: bytes = b"", body: bytes = b"", method: str = "GET"
) -> Answer | Failure:
    """Send one read once, and return its reply. `target` has the prefix, `fields` are complete header lines.

    If the reply is too large, only its first part is returned.
    """
    timeout_s = upstream.destination.total_timeout_s
    connection = await upstream.connect(Lane.READ, timeout_s)
    if isinstance(connection, Failure):
        return connection
    length = content_length(len(body)) if body or method in STATES_LENGTH else b""
    request = b"".join((upstream.head(method, target), length, fields, b"\r\n", body))
    answer = await connection.exchange(request, timeout_s, is_head=False)
    if isinstance(answer, Answer) and answer.remainder is not None:
        answer.remainder.abandon()
    return answer


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """The read to send, and the pace. `path` has the prefix and no query; `spacing_s` separates requests."""

    alias: str
    path: str
    query: str
    spacing_s: float
    method: str = "GET"

    def target(self, *, has_query: bool) -> str:
        """Return the request target."""
        return f"{self.path}?{self.query}" if has_query else self.path


class Discovery:
    """One search for the scheme at one exchange. Raises SecretError.

    It sends only reads: one for the exchange's time, then signed ones, with a pause before each. `heard` has
    their results. `clock_trouble` says why the exchange's time is unknown, "" if it is known.
    """

    def __init__(
        self,
        config: Config,
        exchange: ExchangeConfig,
        spec: ProbeSpec,
        environ: Mapping[str, str],
        system: System,
    ) -> None:
        self._exchange = exchange
        self._spec = spec
        self._system = system
        self._keys = build_candidates(config, exchange, spec.alias, environ)
        venue = exchange.venue
        self.plan = make_plan(
            {way.secret_is for way, _ in self._keys},
            Way(Encoding(venue.signing.encoding), SecretIs(venue.signing.secret)),
            SignedTarget(venue.signed_target),
        )
        self._clock = CommandClock(exchange.clock.field, system)
        self.heard: list[ProbeResult] = []
        self.clock_trouble = ""

    async def run(self, upstream: Upstream, tell: Callable[[ProbeResult], None]) -> SearchEnd:
        """Send one read after the other, and return the end of the search."""
        # 1. The exchange's time; without it, this machine's is used.
        sent = self._system.now()
        answer = await read(upstream, self._exchange.clock.path)
        if isinstance(answer, Failure):
            return SearchEnd(End.UNREACHABLE, answer.detail)
        if lesson_of(answer.status, answer.verdict, upstream.judge) is Lesson.LIMITED:
            return SearchEnd(End.LIMITED, self._words(answer))
        if trouble := self._clock.take(answer, sent):
            self.clock_trouble = f"{self._exchange.clock.path}: {trouble}"
        # 2. Signed reads, until the search ends.
        while not isinstance(step := next_step(self.plan, self.heard), SearchEnd):
            await self._system.sleep(pause_s(self.heard, self._spec.spacing_s))
            self.heard.append(await self._ask(upstream, step))
            tell(self.heard[-1])
        return step

    def offset_s(self) -> float | None:
        """Return how far the exchange's clock is ahead of this machine's, None if its time is unknown."""
        return self._clock.offset_s() if self._clock.is_synced else None

    async def _ask(self, upstream: Upstream, probe: Probe) -> ProbeResult:
        target = parse_target(self._spec.target(has_query=probe.has_query), self._exchange.upstream.prefix)
        body = _FALSE_BODY if probe.is_false else b""
        sealer = self._keys[probe.way, probe.target].sealer
        sent = self._system.now()
        # Go back some milliseconds if the present signature (the last header) is valid in several encodings.
        stamps = itertools.count(self._clock.timestamp_ms(sent), -1)
        tries = (sealer.sign(stamp, b"", self._spec.method, target, body) for stamp in stamps)
        signed = next(
            one for one in tries if tells_encoding(probe.way.encoding, list(headers_in(one).values())[-1])
        )
        answer = await read(upstream, signed[1], signed[0], method=self._spec.method)
        if isinstance(answer, Failure):
            lesson = Lesson.UNREACHABLE if answer.is_unsent else Lesson.TROUBLE
            return ProbeResult(probe, lesson, answer.detail)
        lesson = lesson_of(answer.status, answer.verdict, upstream.judge)
        if lesson is Lesson.CLOCK:
            self._clock.refused(answer.verdict, sent)
        head, now = answer.head, self._clock.server_now
        limit = limit_reply(answer.verdict, head.limit_fields, now, fields=head.passed)
        return ProbeResult(probe, lesson, self._words(answer), limit.retry_after_s)

    def _words(self, answer: Answer) -> str:
        api_key = self._exchange.keys[self._spec.alias].api_key
        return error_words(answer.status, answer.verdict.words, (api_key,))
