"""The log: one structured line per request, on the console or as JSON."""

import json
import logging
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, TextIO, cast

import structlog

from sealgate.config.names import STRANGER
from sealgate.errors import REASONS, Fault
from sealgate.machine.terminal import JOURNAL_LEVELS, is_journal
from sealgate.observe.log_stream import LogStream
from sealgate.orders.outcome import Batch, Conclusion, Outcome
from sealgate.venues.routes import Lane

BLANK = "***"
_NAMES = frozenset(
    ("api_secret", "authorization", "cookie", "passkey_token", "password", "session_token", "signature")
)
_SUSPECT = re.compile(
    r"(?i)(?P<kept>\b(?:bearer|basic)\s+"
    r"|\b(?:authorization|cookie|x-[\w-]*(?:signature|apikey|token))\b['\"]?\s*[:=,]\s*['\"]?"
    r"|(?<![./])\b(?:api_?secret|secret|token|signature|password)\b['\"]?\s*[:=]\s*['\"]?(?!(?:file|env|cmd|systemd|keyring):)"
    r"|://[^/\s:@]*:(?=[^/\s@]*@))(?P<blanked>(?:(?:bearer|basic)\s+)?[^\s'\",;@&]+)"
)
_QUIET = timedelta(seconds=59)  # so that what comes once a minute passes
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
_UNKNOWN, _READ = Conclusion.UNKNOWN, Lane.READ
_FIRST = ("timestamp", "level", "event")
_ENCODER = json.JSONEncoder(default=repr)  # `json.dumps` makes a new one for each line
_JSON = structlog.processors.JSONRenderer(serializer=lambda event, **_: _ENCODER.encode(event))
_BEGIN = '{"timestamp": "%s", "level": "info", "event": "request", "id": '
_REST = '%s, %s, "attempts": %d, "queue_ms": %.3f, "upstream_ms": %.3f, "added_ms": %.3f%s}'
_LABELS = ("bot", "key", "method", "route", "status", "outcome")


def redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Blank what looks like a secret, by its name or by what stands before it. A structlog processor.

    Nothing secret should come this far, as secrets are held in values that hide themselves; this is for the
    day when somebody logs what a peer sent.
    """
    for name, value in event.items():
        if name in _NAMES:
            event[name] = BLANK
        elif isinstance(value, str):
            event[name] = redacted(value)
    return event


def redacted(text: str) -> str:
    """Return a text without what looks like a secret."""
    return _SUSPECT.sub(lambda found: found["kept"] + BLANK, text)


@dataclass(slots=True)
class _Said:
    """When it was written last, and how often not since."""

    at: datetime
    count: int = 0


class Repeats:
    """A structlog processor; it goes by the line's own `timestamp`, which must be there already.

    A warning that says the same again within a minute is counted, not written; the next one says how many
    were left out. One whose trouble was over in between is written, so that the last line is how things are.
    """

    def __init__(self) -> None:
        self._said: OrderedDict[tuple[str, ...], _Said] = OrderedDict()

    def __call__(
        self, _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Let a line pass, or raise DropEvent."""
        for name in _ENDS.get(event["event"], ()):
            self._forget(name)
        if event["level"] not in _LOUD or event["event"] in _EACH:
            return event
        now = datetime.fromisoformat(event["timestamp"])
        key = tuple(f"{name}={value!r}" for name, value in event.items() if name not in _UNLIKE)
        said = self._said.get(key)
        if said is not None and timedelta(0) <= now - said.at < _QUIET:
            said.count += 1
            raise structlog.DropEvent
        self._note(key, now)
        if said is not None and said.count:
            event["repeated"] = said.count
        return event

    def _forget(self, name: str) -> None:
        for key in [key for key in self._said if f"event={name!r}" in key]:
            del self._said[key]

    def _note(self, key: tuple[str, ...], now: datetime) -> None:
        self._said[key] = _Said(now)
        self._said.move_to_end(key)
        if len(self._said) > _MOST:
            self._said.popitem(last=False)


Event = MutableMapping[str, Any]


class _Stamper:
    """A structlog processor: the time of the line. `wall` gives epoch seconds."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall

    def __call__(self, _logger: object, _method: str, event: Event) -> Event:
        event["timestamp"] = self.time()
        return event

    def time(self) -> str:
        """Return what time it is, in UTC."""
        utc = datetime.fromtimestamp(self._wall(), UTC).replace(tzinfo=None)
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
            redact,
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
    """Return stderr as a stream that nobody waits for."""
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
    """Put first what is read first, and leave out what says nothing."""
    first = {name: event[name] for name in _FIRST if name in event}
    return first | {name: value for name, value in event.items() if value is not None}


class RequestLog:
    """Writes one line for each Outcome, and a batch of them at once.

    The lines go through structlog's renderers, but not through its loggers, which write and flush each one.
    """

    def __init__(self, stream: LogStream | TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        processors = structlog.get_config()["processors"]
        self._renderers = processors[processors.index(_in_order) + 1 :]
        self._stamper = next(one for one in processors if isinstance(one, _Stamper))
        logger = structlog.get_logger()
        self._is_shown = {level: logger.is_enabled_for(_LEVELS[level]) for level in ("info", "warning")}
        self._is_plain = self._renderers[0] is _JSON and self._is_shown["info"]
        self._before_plain = JOURNAL_LEVELS["info"] if _for_journal in self._renderers else ""

    def __call__(self, batch: Batch) -> None:
        """Write the lines; a fault of the gateway or the upstream is a warning, as is an order in doubt."""
        timestamp = self._stamper.time()
        begin = self._before_plain + _BEGIN % timestamp
        rare = batch.rare
        lines = [
            begin + _plain_json(outcome, outcome.key)
            if self._is_plain and outcome.key is not None and not (rare and outcome in rare)
            else self._render(outcome, timestamp)
            for outcome in batch.outcomes
        ]
        if any(lines):
            self._stream.write("\n".join((*filter(None, lines), "")))
            self._stream.flush()

    def _render(self, outcome: Outcome, timestamp: str) -> str:
        """Return the line, "" where none is shown."""
        level = _level(outcome)
        if not self._is_shown[level]:
            return ""
        event: Any = _event(outcome, timestamp, level)
        for render in self._renderers:
            event = render(None, level, event)
        return str(event)


def log_requests(batch: Batch) -> None:
    """Log one line for each Outcome by structlog's loggers, where the log is not ours to set up. A reader."""
    log = structlog.get_logger("sealgate.request")
    for outcome in batch.outcomes:
        level = _level(outcome)
        values = {name: value for name, value in _event(outcome, "", level).items() if name not in _FIRST}
        (log.warning if level == "warning" else log.info)("request", **values)


def _event(outcome: Outcome, timestamp: str, level: str) -> Event:
    event: Event = {
        "timestamp": timestamp,
        "level": level,
        "event": "request",
        "id": outcome.request_id,
        "bot": outcome.bot or STRANGER,
        "key": outcome.key,
        "method": outcome.method,
        "route": outcome.route,
        "status": outcome.status,
        "outcome": outcome.conclusion.value,
        "attempts": outcome.attempts,
        "queue_ms": _ms(outcome.queue_s),
        "upstream_ms": _ms(outcome.upstream_s),
        "added_ms": _ms(outcome.added_s),
    }
    if outcome.trace_id:
        event["trace_id"] = outcome.trace_id
    event.update(redact(None, level, _rare(outcome)))  # the rest is ours word for word
    return event if outcome.key is not None else {n: value for n, value in event.items() if value is not None}


def _plain_json(outcome: Outcome, key: str) -> str:
    """Return what renders `_event` as JSON from the id on, for most requests: a quarter of the cost.

    What repeats from line to line is encoded once.
    """
    labels = _labels_json(
        (outcome.bot, key, outcome.method, outcome.route, outcome.status, outcome.conclusion)
    )
    trace = f', "trace_id": "{outcome.trace_id}"' if outcome.trace_id else ""  # of hexadecimal digits
    return _REST % (
        quoted(outcome.request_id),
        labels,
        outcome.attempts,
        outcome.queue_s * 1000,
        outcome.upstream_s * 1000,
        outcome.added_s * 1000,
        trace,
    )


@lru_cache(maxsize=256)
def _labels_json(labels: tuple[str | int | None, ...]) -> str:
    return _ENCODER.encode(dict(zip(_LABELS, labels, strict=True)))[1:-1]


def _rare(outcome: Outcome) -> Event:
    """Return what most requests do not have."""
    values: Event = {
        "client": outcome.client,
        "user_agent": outcome.user_agent,
        "reason": outcome.reason,
        "detail": outcome.detail,
        "broken": outcome.broken,
        "resends": ",".join(outcome.resends),
        "errors": ",".join(error.kind for error in outcome.upstream_errors),
        "hung_up": outcome.has_hung_up,
        "shared": outcome.shared,
    }
    return {name: value for name, value in values.items() if value}


def _level(outcome: Outcome) -> str:
    is_ours = outcome.reason is not None and REASONS[outcome.reason].fault is not Fault.BOT
    is_in_doubt = outcome.attempts > 0 and outcome.conclusion is _UNKNOWN and outcome.lane is not _READ
    is_alarming = is_ours or is_in_doubt or outcome.broken is not None
    return "warning" if is_alarming else "info"


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
