"""The log: one structured line per request, on the console or as JSON."""

import json
import logging
import os
import sys
from collections.abc import Callable, MutableMapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO, cast

import structlog

from sealgate.machine.terminal import JOURNAL_LEVELS, is_journal
from sealgate.observe.log_stream import LogStream
from sealgate.observe.redaction import redact
from sealgate.observe.request_line import level_of, request_line
from sealgate.orders.outcome import Outcome

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC, as all that is added to it
_QUIET = timedelta(seconds=59)  # so that what comes once a minute passes
_NEVER = datetime.min.replace(tzinfo=UTC)
_MOST = 256  # different ones that are remembered
_LOUD = frozenset({"warning", "error", "critical"})
# What ends a trouble: if that comes back within the minute, it is news again.
_ENDS = {
    "journal_recovered": ("journal_failed",),
    "clock_synced": ("clock_trouble",),
    "key_enabled": ("key_disabled", "key_still_disabled"),
}
_EACH = frozenset({"reload_failed"})  # the answer to what somebody just did
_UNLIKE = frozenset({"timestamp", "exc_info", "exception", "request_id"})  # differ, and say nothing new
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_FIRST = ("timestamp", "level", "event")
_JSON = structlog.processors.JSONRenderer()

Event = MutableMapping[str, Any]


class Repeats:
    """A structlog processor; it goes by the line's own `timestamp`, which must be there already.

    A warning that says the same again within a minute is counted, not written; the next one says how many
    were left out. One whose trouble was over in between is written, so that the last line is how things are.
    """

    def __init__(self) -> None:
        self._said: dict[tuple[str, ...], tuple[datetime, int]] = {}  # when written, and left out since

    def __call__(self, _logger: object, _method: str, event: Event) -> Event:
        """Let a line pass, or raise DropEvent."""
        # 1. What ends a trouble makes its next warning news.
        if ended := _ENDS.get(event["event"]):
            self._said = {line: said for line, said in self._said.items() if line[0] not in ended}
        if event["level"] not in _LOUD or event["event"] in _EACH:
            return event
        # 2. A warning that was written within the minute is counted.
        now = datetime.fromisoformat(event["timestamp"])
        others = (f"{name}={value!r}" for name, value in event.items() if name not in _UNLIKE)
        line = (event["event"], *others)
        at, left_out = self._said.pop(line, (_NEVER, 0))
        if timedelta(0) <= now - at < _QUIET:
            self._said[line] = at, left_out + 1
            raise structlog.DropEvent
        # 3. Any other is written, and remembered as the latest.
        self._said[line] = now, 0
        if len(self._said) > _MOST:
            del self._said[next(iter(self._said))]
        if left_out:
            event["repeated"] = left_out
        return event


class _Stamper:
    """A structlog processor that adds the time. `wall` returns epoch seconds."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall

    def __call__(self, _logger: object, _method: str, event: Event) -> Event:
        event["timestamp"] = self.time()
        return event

    def time(self) -> str:
        """Return the time of day in UTC, as ISO 8601."""
        utc = _EPOCH + timedelta(seconds=self._wall())
        return f"{utc.isoformat(timespec='microseconds')}Z"


def configure_log(
    level: str, style: str, wall: Callable[[], float], stream: LogStream | TextIO | None = None
) -> None:
    """Set up structlog. `level` is a name, `style` is console, json or auto (console on a terminal).

    `wall` gives the time of a line, in epoch seconds. Lines go to `stream`, by default to stderr.
    """
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            _Stamper(wall),
            Repeats(),
            structlog.processors.format_exc_info,
            lambda _logger, _method, event: redact(event),
            _in_order,
            _console() if is_console(style) else _JSON,
            *([_for_journal] if is_journal(sys.stderr, os.environ) else []),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", stream or sys.stderr)),
        cache_logger_on_first_use=True,
    )
    # aiohttp and asyncio speak through the standard library, in sentences that may quote what a peer sent.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)


def is_console(style: str) -> bool:
    """Whether the log is for people: `style` is console, json or auto (console on a terminal)."""
    return style == "console" or (style == "auto" and sys.stderr.isatty())


def _for_journal(_logger: object, level: str, text: Any) -> str:
    """Put the level before each line, as the journal reads it (sd-daemon(3))."""
    prefix = JOURNAL_LEVELS[level]
    return prefix + str(text).replace("\n", f"\n{prefix}")


def buffered_stderr() -> LogStream:
    """Return stderr as a stream that blocks nobody."""
    return LogStream(sys.stderr, lambda count: _rendered("log_lines_lost", {"count": count}))


def _rendered(event: str, values: dict[str, Any]) -> str:
    line: Any = {"event": event, **values}
    for processor in structlog.get_config()["processors"]:
        if not isinstance(processor, Repeats):  # a line that must not be lost as well
            line = processor(None, "warning", line)
    return str(line)


def _console() -> Callable[..., Any]:
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(),
        sort_keys=False,
        exception_formatter=structlog.dev.plain_traceback,  # the rich one prints locals, tokens included
    )


def _in_order(_logger: object, _method: str, event: Event) -> Event:
    """Put time, level and event first, and leave out fields that are None."""
    first = {name: event[name] for name in _FIRST if name in event}
    return first | {name: value for name, value in event.items() if value is not None}


class RequestLog:
    """A reader of outcomes that writes a line for each, all lines of a moment at once.

    The lines look as structlog's, but do not go through its loggers, which write and flush each one.
    """

    def __init__(self, stream: LogStream | TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        processors = structlog.get_config()["processors"]
        self._stamper = next(one for one in processors if isinstance(one, _Stamper))
        self._console = None if _JSON in processors else processors[processors.index(_in_order) + 1]
        self._is_for_journal = _for_journal in processors
        logger = structlog.get_logger()
        self._is_shown = {level: logger.is_enabled_for(_LEVELS[level]) for level in ("info", "warning")}

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        """Write the lines."""
        timestamp = self._stamper.time()
        lines = []
        for outcome in outcomes:
            level = level_of(outcome)
            if not self._is_shown[level]:
                continue
            line = request_line(outcome, level, timestamp)
            if self._console is not None:
                line = self._console(None, level, json.loads(line))
            lines.append(_for_journal(None, level, line) if self._is_for_journal else line)
        if lines:
            self._stream.write("\n".join((*lines, "")))
            self._stream.flush()


def log_requests(outcomes: Sequence[Outcome]) -> None:
    """Log requests through structlog's loggers: a reader of outcomes for programs that set up the log."""
    log = structlog.get_logger("sealgate.request")
    for outcome in outcomes:
        level = level_of(outcome)
        fields = json.loads(request_line(outcome, level, ""))
        values = {name: value for name, value in fields.items() if name not in _FIRST}
        (log.warning if level == "warning" else log.info)("request", **values)
