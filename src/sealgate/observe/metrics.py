"""Metrics, read from each Outcome and, at the time of a scrape, from the gateway's status.

Everything is counted in plain totals, which the library writes at a scrape.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from sealgate.config.names import STRANGERS_LABEL
from sealgate.observe.status import KeyStatus, Status
from sealgate.observe.traffic import Durations, TrafficTotals
from sealgate.orders.outcome import Outcome

_LONG = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0, 600.0, 3600.0)
_OF_STRANGERS = ("bot_unauthenticated", "browser_refused", "host_refused")

Values = Mapping[Any, float]  # by a tuple of label values


class Metrics:
    """What one gateway counts, and the reader that feeds it. Counters go by the values of their labels."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status
        self._traffic = TrafficTotals()
        # From zero on: Prometheus takes what a new series starts with for its past, not for an increase.
        self._refusals = Counter(dict.fromkeys(((STRANGERS_LABEL, reason) for reason in _OF_STRANGERS), 0))
        self._retries = Counter[tuple[str, str]]()
        self._limited = Counter[tuple[str, str]]()
        self._errors = Counter[tuple[str, str]]()
        self._shared = Counter[tuple[str]]()
        self._stated_waits: dict[tuple[str], Durations] = {}

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        """Take in requests that ended."""
        self._traffic.take(outcomes)
        for outcome in outcomes:
            if not outcome.is_plain:
                self._take_rare(outcome, outcome.key or "")

    def _take_rare(self, outcome: Outcome, key: str) -> None:
        """Count what most requests do not have."""
        if outcome.reason is not None:
            self._refusals[outcome.bot or STRANGERS_LABEL, outcome.reason] += 1
        if outcome.shared is not None:
            self._shared[(key,)] += 1
        self._retries.update((key, reason) for reason in outcome.resends)
        if times_limited := outcome.times_limited:
            self._limited[key, "upstream"] += times_limited
        if outcome.reason == "rate_limited":
            self._limited[key, "gateway"] += 1
        for error in outcome.upstream_errors:
            self._errors[key, error.kind] += 1
            if error.retry_after_s is not None:
                self._stated_waits.setdefault((key,), Durations(_LONG)).add(error.retry_after_s)

    def snapshot(self) -> Callable[[], bytes]:
        """Look at the status, on the loop; return what writes the text, slowly, for a thread."""
        status = self._status()
        for key in status.keys:
            self._limited[key.alias, "upstream"] += 0  # from zero on, as above
        rare = list(self._of_rare())
        return lambda: generate_latest(
            _Collector(chain(_of_traffic(self._traffic), rare, _of_status(status)))
        )

    def _of_rare(self) -> Iterator[Metric]:
        """Yield the metrics of what few requests have: as few series that they are made on the loop."""
        text = "Replies that the gateway made itself"
        yield _counter("refusals", text, self._refusals, "bot", "reason")
        yield _counter("retries", "Requests sent again", self._retries, "key", "reason")
        yield _counter("rate_limited", "429 replies, by who made them", self._limited, "key", "origin")
        text = "Errors of the exchange and of the connection to it, by kind"
        yield _counter("upstream_errors", text, self._errors, "key", "kind")
        text = "Reads not sent, as an identical one's reply answers them"
        yield _counter("shared_reads", text, self._shared, "key")
        text = "Waits that refusals for the limit stated"
        yield _histogram("retry_after_seconds", text, self._stated_waits, "key")


class _Collector(Collector):
    """Hands the library metrics that are made at a scrape."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of this moment."""
        return self._metrics


def _of_traffic(traffic: TrafficTotals) -> Iterator[Metric]:
    """Yield the metrics that every request adds to."""
    requests, outcomes, sent = (Counter[tuple[str, ...]]() for _ in range(3))
    for (bot, alias, route, method, status, conclusion, lane), tally in traffic.tallies().items():
        key = alias or ""
        requests[bot, key, route, method, str(status)] += tally.requests
        outcomes[bot, conclusion.value] += tally.requests
        if lane is not None and tally.sent:
            sent[bot, key, lane.value] += tally.sent
    labels = ("bot", "key", "route", "method", "status")
    yield _counter("requests", "Requests of known bots", requests, *labels)
    yield _counter("sent", "Requests sent to the exchange, resends included", sent, "bot", "key", "lane")
    yield _counter("outcomes", "Requests by outcome", outcomes, "bot", "outcome")
    queued = {(key, lane.value): durations for (key, lane), durations in traffic.queued().items()}
    added, upstream = {(): traffic.added}, {(): traffic.upstream}
    yield _histogram("added_latency_seconds", "Time spent in the gateway itself", added)
    yield _histogram("queue_wait_seconds", "Time spent waiting in the gateway", queued, "key", "lane")
    yield _histogram("upstream_duration_seconds", "Time spent waiting for the upstream", upstream)


def _of_status(status: Status) -> Iterator[Metric]:
    """Yield the gauges of a moment, and the counters that are kept elsewhere."""
    journal, keys = status.journal, status.keys
    yield _gauge("build_info", "The running version", {(status.version,): 1}, "version")
    yield _gauge("inflight", "Requests in flight", {(): status.inflight})
    yield _gauge("connections", "Open connections of bots", {(): status.connections})
    yield _gauge("orders_in_doubt", "Orders sent whose outcome is unknown", {(): journal.in_doubt})
    yield _gauge("journal_failing", "1 while the journal cannot be written", {(): bool(journal.trouble)})
    reloads = {(result,): count for result, count in status.reloads.items()}
    yield _counter("reloads", "Reloads of the configuration, by result", reloads, "result")
    failed = {(): status.callback_errors}
    yield _counter("callback_errors", "Exceptions in background tasks of the gateway", failed)
    if (ends := status.tls_cert_expires_at) is not None:
        text = "When the certificate that bots see expires"
        yield _gauge("tls_cert_expires_timestamp_seconds", text, {(): ends})
    yield from _of_clock(status)
    yield from _of_keys(keys)
    yield from _of_limits(keys)
    refused: Counter[tuple[str, str]] = Counter()
    for one in status.policies:
        refused.update({(one.bot, rule): count for rule, count in one.refusals.items()})
    text = "Orders that a policy refused, or would have refused if it did not observe"
    yield _counter("policy_refusals", text, refused, "bot", "rule")
    halts = {(halt.bot or "", halt.key or ""): 1 for halt in status.halts}
    yield _gauge("halted", "1 for each halt of orders; an empty label means all", halts, "bot", "key")


def _of_clock(status: Status) -> Iterator[Metric]:
    clock = status.clock
    yield _counter("clock_steps", "Clock jumps noticed", {(): clock.steps})
    text = "Requests refused by the upstream for their timestamp"
    yield _counter("clock_refusals", text, {(): clock.refusals})
    if clock.offset_s is not None and clock.error_s is not None and clock.age_s is not None:
        offset, error, age = {(): clock.offset_s}, {(): clock.error_s}, {(): clock.age_s}
        yield _gauge("clock_offset_seconds", "Upstream's clock minus this host's wall clock", offset)
        yield _gauge("clock_error_seconds", "Largest possible error of the offset", error)
        yield _gauge("clock_age_seconds", "Time since the last sample of the upstream's clock", age)


def _of_keys(keys: Sequence[KeyStatus]) -> Iterator[Metric]:
    def by_key(name: str, text: str, value: Callable[[KeyStatus], float | None]) -> Metric:
        found = {(key.alias,): value(key) for key in keys}
        known = {labels: one for labels, one in found.items() if one is not None}
        return _gauge(name, text, known, "key")

    yield by_key("key_active", "0 while the exchange does not accept a key", lambda key: key.is_active)
    yield by_key(
        "key_signatures_refused",
        "1 while the exchange refuses a key's signatures",
        lambda key: key.trouble is not None,
    )
    yield by_key("key_expires_timestamp_seconds", "When a key expires", lambda key: key.expires_at)
    yield by_key("pause_seconds", "Seconds left of a key's pause", lambda key: key.pause_s)
    yield by_key(
        "limit_spent_seconds",
        "Seconds for which the exchange says its limit is used up",
        lambda key: key.spent_s,
    )
    shared = {(key.alias,): key.sharing for key in keys if key.sharing is not None}
    replicas = {labels: one.replicas for labels, one in shared.items()}
    leads = {labels: one.is_leader for labels, one in shared.items()}
    degraded = {labels: one.degraded is not None for labels, one in shared.items()}
    yield _gauge("limit_sharing_replicas", "Gateways that share a key's limit", replicas, "key")
    yield _gauge("limit_sharing_lead", "1 if this gateway is the leader, which paces for all", leads, "key")
    yield _gauge("limit_sharing_degraded", "1 while the limit cannot be shared", degraded, "key")


def _of_limits(keys: Sequence[KeyStatus]) -> Iterator[Metric]:
    depths = {(key.alias, lane): count for key in keys for lane, count in key.waiting.items()}
    yield _gauge("queue_depth", "Requests that wait in the gateway", depths, "key", "lane")
    # A window is a label of two digits, as a learned one may be any number.
    limits = {
        (key.alias, f"{float(f'{limit.window_s:.1e}'):g}s"): limit for key in keys for limit in key.limits
    }
    heights = {labels: limit.n for labels, limit in limits.items()}
    used = {labels: limit.used_ratio for labels, limit in limits.items()}
    yield _gauge("limit_requests", "Requests per window that the limit allows", heights, "key", "window")
    yield _gauge("limit_used_ratio", "The part of the limit that is in use", used, "key", "window")


def _gauge(name: str, text: str, values: Values, *labels: str) -> Metric:
    return _filled(GaugeMetricFamily(f"sealgate_{name}", text, labels=labels), values)


def _counter(name: str, text: str, values: Values, *labels: str) -> Metric:
    return _filled(CounterMetricFamily(f"sealgate_{name}", text, labels=labels), values)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
    for combination, value in values.items():
        family.add_metric(combination, value)
    return family


def _histogram(name: str, text: str, of: Mapping[Any, Durations], *labels: str) -> Metric:
    family = HistogramMetricFamily(f"sealgate_{name}", text, labels=labels)
    for combination, durations in of.items():
        buckets, sum_s = durations.buckets()
        family.add_metric(combination, buckets, sum_s)
    return family
