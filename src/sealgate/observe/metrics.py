"""Metrics, read from each Outcome and, at the time of a scrape, from the gateway's status.

What every request adds to is a plain number until a scrape; what few do is a counter of the library.
"""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from sealgate.config.names import STRANGERS_LABEL
from sealgate.observe.status import Status
from sealgate.observe.traffic import Durations, TrafficTotals
from sealgate.orders.outcome import Outcome

_LONG = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0, 600.0, 3600.0)
_OF_STRANGERS = ("bot_unauthenticated", "browser_refused", "host_refused")


class _TrafficCollector(Collector):
    """Makes metrics of the totals that every request adds to, at a scrape."""

    def __init__(self, traffic: TrafficTotals) -> None:
        self._traffic = traffic

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all requests."""
        labels = ("bot", "key", "route", "method", "status")
        requests = CounterMetricFamily("sealgate_requests", "Requests of known bots", labels=labels)
        outcomes = CounterMetricFamily("sealgate_outcomes", "Requests by outcome", labels=("bot", "outcome"))
        sent = CounterMetricFamily(
            "sealgate_sent", "Requests sent to the exchange, resends included", labels=("bot", "key", "lane")
        )
        asked, ended, went = (collections.Counter[tuple[str, ...]]() for _ in range(3))
        for (bot, alias, route, method, status, conclusion, lane), tally in self._traffic.tallies().items():
            key = alias or ""
            asked[bot, key, route, method, str(status)] += tally.requests
            ended[bot, conclusion.value] += tally.requests
            if lane is not None and tally.sent:
                went[bot, key, lane.value] += tally.sent
        for family, counts in ((requests, asked), (outcomes, ended), (sent, went)):
            for values, count in counts.items():
                family.add_metric(values, count)
        yield requests
        yield sent
        yield outcomes
        yield _histogram_family(
            "added_latency", "Time spent in the gateway itself", {(): self._traffic.added}
        )
        queued: dict[tuple[str, ...], Durations] = {
            (key, lane.value): one for (key, lane), one in self._traffic.queued().items()
        }
        yield _histogram_family("queue_wait", "Time spent waiting in the gateway", queued, "key", "lane")
        yield _histogram_family(
            "upstream_duration", "Time spent waiting for the upstream", {(): self._traffic.upstream}
        )


def _histogram_family(
    name: str, text: str, of: Mapping[tuple[str, ...], Durations], *labels: str
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(f"sealgate_{name}_seconds", text, labels=labels)
    for combination, durations in of.items():
        buckets, sum_s = durations.buckets()
        family.add_metric(combination, buckets, sum_s)
    return family


# They are a second series for each counter, and nobody reads them.
disable_created_metrics()  # type: ignore[no-untyped-call] # the library's own gap


class Metrics:
    """The registry of one gateway and the reader that feeds it."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        self._traffic = TrafficTotals()
        self._registry.register(_TrafficCollector(self._traffic))
        self._refusals = self._counter("refusals", "Replies that the gateway made itself", "bot", "reason")
        self._retries = self._counter("retries", "Requests sent again", "key", "reason")
        self._limited = self._counter("rate_limited", "429 replies, by who made them", "key", "origin")
        self._errors = self._counter(
            "upstream_errors", "Errors of the exchange and of the connection to it, by kind", "key", "kind"
        )
        self._shared = self._counter(
            "shared_reads", "Reads not sent, as an identical one's reply answers them", "key"
        )
        self._stated_waits = Histogram(
            "sealgate_retry_after_seconds",
            "Waits that refusals for the limit stated",
            ("key",),
            buckets=_LONG,
            registry=self._registry,
        )
        self._status = status
        # From zero on: Prometheus takes what a new series starts with for its past, not for an increase.
        for reason in _OF_STRANGERS:
            self._refusals.labels(STRANGERS_LABEL, reason)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"sealgate_{name}_total", text, labels, registry=self._registry)

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        """Take in requests that ended."""
        self._traffic.take(outcomes)
        for outcome in outcomes:
            if not outcome.is_plain:
                self._take_rare(outcome, outcome.key or "")

    def _take_rare(self, outcome: Outcome, key: str) -> None:
        """Count what most requests do not have."""
        if outcome.reason is not None:
            self._refusals.labels(outcome.bot or STRANGERS_LABEL, outcome.reason).inc()
        if outcome.shared is not None:
            self._shared.labels(key).inc()
        for reason in outcome.resends:
            self._retries.labels(key, reason).inc()
        if times_limited := outcome.times_limited:
            self._limited.labels(key, "upstream").inc(times_limited)
        if outcome.reason == "rate_limited":
            self._limited.labels(key, "gateway").inc()
        for error in outcome.upstream_errors:
            self._errors.labels(key, error.kind).inc()
            if error.retry_after_s is not None:
                self._stated_waits.labels(key).observe(error.retry_after_s)

    def snapshot(self) -> Callable[[], bytes]:
        """Look at the status, on the loop; return what writes the text, slowly, for a thread."""
        status = self._status()
        for key in status.keys:
            self._limited.labels(key.alias, "upstream")
        collector = _StatusCollector(status)
        return lambda: generate_latest(self._registry) + generate_latest(collector)


class _StatusCollector(Collector):
    """Makes gauges, and the counters that are kept elsewhere, of the status of one moment."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of that moment."""
        status = self._status
        yield _gauge_family("build_info", "The running version", ("version",), {(status.version,): 1.0})
        yield _one_gauge("inflight", "Requests in flight", status.inflight)
        yield _one_gauge("connections", "Open connections of bots", status.connections)
        yield _one_gauge("orders_in_doubt", "Orders sent whose outcome is unknown", status.journal.in_doubt)
        yield _one_gauge(
            "journal_failing", "1 while the journal cannot be written", bool(status.journal.trouble)
        )
        reloads: Values = {(result,): float(count) for result, count in status.reloads.items()}
        yield _counter_family("reloads", "Reloads of the configuration, by result", ("result",), reloads)
        failed: Values = {(): float(status.callback_errors)}
        yield _counter_family("callback_errors", "Exceptions in background tasks of the gateway", (), failed)
        if status.tls_cert_expires_at is not None:
            yield _one_gauge(
                "tls_cert_expires_timestamp_seconds",
                "When the certificate that bots see expires",
                status.tls_cert_expires_at,
            )
        yield from _clock_metrics(status)
        yield from _key_metrics(status)
        refused: Values = {
            (policy.bot, rule): float(count)
            for policy in status.policies
            for rule, count in policy.refusals.items()
        }
        text = "Orders that a policy refused, or would have refused if it did not observe"
        yield _counter_family("policy_refusals", text, ("bot", "rule"), refused)
        halts: Values = {(halt.bot or "", halt.key or ""): 1.0 for halt in status.halts}
        yield _gauge_family(
            "halted", "1 for each halt of orders; an empty label means all", ("bot", "key"), halts
        )


Values = dict[tuple[str, ...], float]


def _clock_metrics(status: Status) -> Iterator[Metric]:
    clock = status.clock
    steps: Values = {(): float(clock.steps)}
    refusals: Values = {(): float(clock.refusals)}
    yield _counter_family("clock_steps", "Clock jumps noticed", (), steps)
    yield _counter_family(
        "clock_refusals", "Requests refused by the upstream for their timestamp", (), refusals
    )
    if clock.offset_s is not None and clock.error_s is not None and clock.age_s is not None:
        yield _one_gauge(
            "clock_offset_seconds", "Upstream's clock minus this host's wall clock", clock.offset_s
        )
        yield _one_gauge("clock_error_seconds", "Largest possible error of the offset", clock.error_s)
        yield _one_gauge(
            "clock_age_seconds", "Time since the last sample of the upstream's clock", clock.age_s
        )


def _key_metrics(status: Status) -> Iterator[Metric]:
    pauses: Values = {(key.alias,): key.pause_s for key in status.keys}
    spent: Values = {(key.alias,): key.spent_s for key in status.keys}
    depths: Values = {
        (key.alias, lane): float(count) for key in status.keys for lane, count in key.waiting.items()
    }
    limits = {(key.alias, _window(limit.window_s)): limit for key in status.keys for limit in key.limits}
    heights: Values = {labels: limit.n for labels, limit in limits.items()}
    used: Values = {labels: limit.used_ratio for labels, limit in limits.items()}
    active: Values = {(key.alias,): float(key.is_active) for key in status.keys}
    ends: Values = {(key.alias,): key.expires_at for key in status.keys if key.expires_at is not None}
    refused: Values = {(key.alias,): float(key.trouble is not None) for key in status.keys}
    yield _gauge_family("key_active", "0 while the exchange does not accept a key", ("key",), active)
    yield _gauge_family(
        "key_signatures_refused", "1 while the exchange refuses a key's signatures", ("key",), refused
    )
    yield _gauge_family("key_expires_timestamp_seconds", "When a key expires", ("key",), ends)
    yield _gauge_family("pause_seconds", "Seconds left of a key's pause", ("key",), pauses)
    yield _gauge_family(
        "limit_spent_seconds", "Seconds for which the exchange says its limit is used up", ("key",), spent
    )
    yield _gauge_family("queue_depth", "Requests that wait in the gateway", ("key", "lane"), depths)
    yield _gauge_family(
        "limit_requests", "Requests per window that the limit allows", ("key", "window"), heights
    )
    yield _gauge_family("limit_used_ratio", "The part of the limit that is in use", ("key", "window"), used)
    yield from _sharing_metrics(status)


def _sharing_metrics(status: Status) -> Iterator[Metric]:
    shared = {(key.alias,): key.sharing for key in status.keys if key.sharing is not None}
    replicas: Values = {labels: float(one.replicas) for labels, one in shared.items()}
    leads: Values = {labels: float(one.is_leader) for labels, one in shared.items()}
    degraded: Values = {labels: float(one.degraded is not None) for labels, one in shared.items()}
    yield _gauge_family("limit_sharing_replicas", "Gateways that share a key's limit", ("key",), replicas)
    yield _gauge_family(
        "limit_sharing_lead", "1 if this gateway is the leader, which paces for all", ("key",), leads
    )
    yield _gauge_family("limit_sharing_degraded", "1 while the limit cannot be shared", ("key",), degraded)


def _window(seconds: float) -> str:
    """Return a window as a label: two digits, for a learned one may be any number."""
    return f"{float(f'{seconds:.1e}'):g}s"


def _one_gauge(name: str, text: str, value: float) -> Metric:
    return _gauge_family(name, text, (), {(): float(value)})


def _gauge_family(name: str, text: str, labels: tuple[str, ...], values: Values) -> Metric:
    return _with_values(GaugeMetricFamily(f"sealgate_{name}", text, labels=labels), values)


def _counter_family(name: str, text: str, labels: tuple[str, ...], values: Values) -> Metric:
    return _with_values(CounterMetricFamily(f"sealgate_{name}", text, labels=labels), values)


def _with_values(family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
    for combination, value in values.items():
        family.add_metric(combination, value)
    return family
