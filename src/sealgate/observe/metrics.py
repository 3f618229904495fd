"""Metrics, read from each Outcome and, at the time of a scrape, from the gateway's status.

Everything is counted in plain totals, which the library writes at a scrape.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from sealgate.config.names import STRANGERS_LABEL
from sealgate.observe.status import ExchangeStatus, KeyStatus, Status
from sealgate.observe.traffic import Durations, TrafficTotals
from sealgate.orders.outcome import Outcome
from sealgate.streams.tally import FAILED, OPENED, StreamsStatus

if TYPE_CHECKING:
    from sealgate.exchange.clock import ClockStatus
    from sealgate.observe.pools import KeyPool

_LONG = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0, 600.0, 3600.0)
_KEY = ("exchange", "key")
_OF_STRANGERS = ("bot_unauthenticated", "browser_refused", "host_refused")

Values = Mapping[Any, float]  # by a tuple of label values


class Metrics:
    """What one gateway counts, and the reader that feeds it. Counters go by the values of their labels.

    `process` has the metrics of the process, which the library reads where the platform has them.
    """

    def __init__(self, status: Callable[[], Status], process: Collector | None = None) -> None:
        self._status = status
        self._process = process
        self._traffic = TrafficTotals()
        self._refusals = Counter[tuple[str, str, str]]()
        self._retries = Counter[tuple[str, str, str]]()
        self._limited = Counter[tuple[str, str, str]]()
        self._errors = Counter[tuple[str, str, str]]()
        self._shared = Counter[tuple[str, str]]()
        self._stated_waits: dict[tuple[str, str], Durations] = {}

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        """Take in requests that ended."""
        self._traffic.take(outcomes)
        for outcome in outcomes:
            if not outcome.is_plain:
                self._take_rare(outcome, outcome.exchange, outcome.key or "")

    def _take_rare(self, outcome: Outcome, exchange: str, key: str) -> None:
        """Count what most requests do not have."""
        if outcome.reason is not None:
            self._refusals[exchange, outcome.bot or STRANGERS_LABEL, outcome.reason] += 1
        if outcome.shared is not None:
            self._shared[exchange, key] += 1
        self._retries.update((exchange, key, reason) for reason in outcome.resends)
        if times_limited := outcome.times_limited:
            self._limited[exchange, key, "upstream"] += times_limited
        if outcome.reason == "rate_limited":
            self._limited[exchange, key, "gateway"] += 1
        for error in outcome.upstream_errors:
            self._errors[exchange, key, error.kind] += 1
            if error.retry_after_s is not None:
                waits = self._stated_waits.setdefault((exchange, key), Durations(_LONG))
                waits.add(error.retry_after_s)

    def snapshot(self, write: Callable[[Collector], bytes] = generate_latest) -> Callable[[], bytes]:
        """Look at the status, on the loop; return what writes the text, slowly, for a thread.

        `write` is the library's writer of a format.
        """
        status = self._status()
        self._begin(status)
        rare = list(self._of_rare())

        def text() -> bytes:
            of_process = () if self._process is None else self._process.collect()
            return write(_Collector(chain(_of_traffic(self._traffic), rare, _of_status(status), of_process)))

        return text

    def _begin(self, status: Status) -> None:
        """Let series begin from zero: Prometheus does not take what one starts with for an increase."""
        names = [one.name for one in status.exchanges]
        # Of several exchanges, strangers may also ask for one that is not there.
        for exchange in names if len(names) == 1 else ("", *names):
            for reason in _OF_STRANGERS:
                self._refusals[exchange, STRANGERS_LABEL, reason] += 0
        for name in names:
            self._traffic.begin(name)
        for key in status.keys:
            self._limited[key.exchange, key.alias, "upstream"] += 0

    def _of_rare(self) -> Iterator[Metric]:
        """Yield the metrics of what few requests have: as few series that they are made on the loop."""
        text = "Replies that the gateway made itself"
        yield _counter("refusals", text, self._refusals, "exchange", "bot", "reason")
        yield _counter("retries", "Requests sent again", self._retries, *_KEY, "reason")
        yield _counter("rate_limited", "429 replies, by who made them", self._limited, *_KEY, "origin")
        text = "Errors of the exchange and of the connection to it, by kind"
        yield _counter("upstream_errors", text, self._errors, *_KEY, "kind")
        text = "Reads not sent, as an identical one's reply answers them"
        yield _counter("shared_reads", text, self._shared, *_KEY)
        text = "Waits that refusals for the limit stated"
        yield _histogram("retry_after_seconds", text, self._stated_waits, *_KEY)


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
    for (exchange, bot, alias, route, method, status, conclusion, lane), tally in traffic.tallies().items():
        key = alias or ""
        requests[exchange, bot, key, route, method, str(status)] += tally.requests
        outcomes[exchange, bot, conclusion.value] += tally.requests
        if lane is not None and tally.sent:
            sent[exchange, bot, key, lane.value] += tally.sent
    labels = ("exchange", "bot", "key", "route", "method", "status")
    yield _counter("requests", "Requests of known bots", requests, *labels)
    text = "Requests sent to the exchange, resends included"
    yield _counter("sent", text, sent, "exchange", "bot", "key", "lane")
    yield _counter("outcomes", "Requests by outcome", outcomes, "exchange", "bot", "outcome")
    queued = {(exchange, key, lane.value): waits for (exchange, key, lane), waits in traffic.queued().items()}
    yield _histogram("queue_wait_seconds", "Time spent waiting in the gateway", queued, *_KEY, "lane")
    added = {(exchange,): durations for exchange, durations in traffic.added().items()}
    yield _histogram("added_latency_seconds", "Time spent in the gateway itself", added, "exchange")
    upstream = {(exchange,): durations for exchange, durations in traffic.upstream().items()}
    text = "Time spent waiting for the upstream"
    yield _histogram("upstream_duration_seconds", text, upstream, "exchange")


def _of_status(status: Status) -> Iterator[Metric]:
    """Yield the gauges of a moment, and the counters that are kept elsewhere."""
    journal = status.journal
    yield _gauge("build_info", "The running version", {(status.version,): 1}, "version")
    yield _gauge("inflight", "Requests in flight", {(): status.inflight})
    yield _gauge("connections", "Open connections of bots", {(): status.connections})
    yield _gauge("journal_failing", "1 while the journal cannot be written", {(): bool(journal.trouble)})
    reloads = {(result,): count for result, count in status.reloads.items()}
    yield _counter("reloads", "Reloads of the configuration, by result", reloads, "result")
    failed = {("",): status.callback_errors}  # the fault of no exchange
    yield _counter("callback_errors", "Exceptions in background tasks of the gateway", failed, "exchange")
    if (ends := status.tls_cert_expires_at) is not None:
        text = "When the certificate that bots see expires"
        yield _gauge("tls_cert_expires_timestamp_seconds", text, {(): ends})
    # Orders stay in doubt at an exchange that is configured no more.
    doubts = {(one.name,): 0 for one in status.exchanges}
    doubts |= {(exchange,): count for exchange, count in journal.by_exchange.items()}
    yield _gauge("orders_in_doubt", "Orders sent whose outcome is unknown", doubts, "exchange")
    yield from _of_exchanges(status.exchanges)
    yield from _of_keys(status.keys)
    yield from _of_pools(status.exchanges)
    yield from _of_streams(status.streams, status.keys)
    refused = {
        (one.exchange, one.bot, rule): count
        for one in status.policies
        for rule, count in one.refusals.items()
    }
    text = "Orders that a policy refused, or would have refused if it did not observe"
    yield _counter("policy_refusals", text, refused, "exchange", "bot", "rule")
    halts = {(halt.exchange or "", halt.bot or "", halt.key or ""): 1 for halt in status.halts}
    yield _gauge(
        "halted", "1 for each halt of orders; an empty label means all", halts, "exchange", "bot", "key"
    )


def _of_exchanges(exchanges: Sequence[ExchangeStatus]) -> Iterator[Metric]:
    ready = {(one.name,): not one.not_ready for one in exchanges}
    yield _gauge("exchange_ready", "1 while requests to the exchange can be signed", ready, "exchange")
    clocks = {(one.name,): one.clock for one in exchanges}
    steps = {labels: clock.steps for labels, clock in clocks.items()}
    yield _counter("clock_steps", "Clock jumps noticed", steps, "exchange")
    refusals = {labels: clock.refusals for labels, clock in clocks.items()}
    text = "Requests refused by the upstream for their timestamp"
    yield _counter("clock_refusals", text, refusals, "exchange")
    gauges: dict[str, tuple[str, Callable[[ClockStatus], float | None]]] = {
        "offset": ("Upstream's clock minus this host's wall clock", lambda clock: clock.offset_s),
        "error": ("Largest possible error of the offset", lambda clock: clock.error_s),
        "age": ("Time since the last sample of the upstream's clock", lambda clock: clock.age_s),
    }
    for name, (text, value) in gauges.items():
        yield _gauge(f"clock_{name}_seconds", text, _known(clocks, value), "exchange")


def _known(of: Mapping[Any, Any], value: Callable[[Any], float | None]) -> Values:
    """Return a value of each, of those where it is known."""
    found = {labels: value(one) for labels, one in of.items()}
    return {labels: one for labels, one in found.items() if one is not None}


def _of_keys(keys: Sequence[KeyStatus]) -> Iterator[Metric]:
    by_labels = {(key.exchange, key.alias): key for key in keys}

    def by_key(name: str, text: str, value: Callable[[KeyStatus], float | None]) -> Metric:
        return _gauge(name, text, _known(by_labels, value), *_KEY)

    yield by_key("key_active", "0 while the exchange does not accept a key", lambda key: key.is_active)
    yield by_key(
        "key_signatures_refused",
        "1 while the exchange refuses a key's signatures",
        lambda key: key.trouble is not None,
    )
    yield by_key("key_expires_timestamp_seconds", "When a key expires", lambda key: key.expires_at)
    yield by_key("pause_seconds", "Seconds for which nothing is sent with a key", lambda key: key.pause_s)
    depths = {(key.exchange, key.alias, lane): count for key in keys for lane, count in key.waiting.items()}
    yield _gauge("queue_depth", "Requests that wait in the gateway", depths, *_KEY, "lane")
    shared = {labels: key.sharing for labels, key in by_labels.items() if key.sharing is not None}
    replicas = {labels: one.replicas for labels, one in shared.items()}
    leads = {labels: one.is_leader for labels, one in shared.items()}
    degraded = {labels: one.degraded is not None for labels, one in shared.items()}
    yield _gauge("limit_sharing_replicas", "Gateways that share a key's limit", replicas, *_KEY)
    yield _gauge("limit_sharing_lead", "1 if this gateway is the leader, which paces for all", leads, *_KEY)
    yield _gauge("limit_sharing_degraded", "1 while the limit cannot be shared", degraded, *_KEY)


def _of_pools(exchanges: Sequence[ExchangeStatus]) -> Iterator[Metric]:
    """Yield what is known of each pool, once for all keys where they share it.

    Of one for each route or parameter, it is that of the part with most to tell: bots may choose how many
    parts there are.
    """
    pools: dict[tuple[str, ...], KeyPool] = {}
    for one in exchanges:
        of_keys = [("" if pool.is_shared else key.alias, pool) for key in one.keys for pool in key.pools]
        for alias, pool in (*of_keys, *(("", pool) for pool in one.open_pools)):
            labels = (one.name, alias, pool.pool)
            if labels not in pools or pools[labels].urgency < pool.urgency:
                pools[labels] = pool
    labels = ("exchange", "key", "pool")
    pauses = {at: pool.pause_s for at, pool in pools.items()}
    yield _gauge("pool_pause_seconds", "Seconds for which a pool stays closed", pauses, *labels)
    spent = {at: pool.spent_s for at, pool in pools.items()}
    text = "Seconds for which the exchange says that nothing is left of a pool"
    yield _gauge("limit_spent_seconds", text, spent, *labels)
    # A window is a label of three digits, as a learned one may be any number: a day is 86400s.
    limits = {
        (*at, f"{float(f'{limit.window_s:.2e}'):g}s"): limit
        for at, pool in pools.items()
        for limit in pool.limits
    }
    heights = {at: limit.n for at, limit in limits.items()}
    used = {at: limit.used_ratio for at, limit in limits.items()}
    yield _gauge("limit_requests", "Requests per window that the limit allows", heights, *labels, "window")
    yield _gauge("limit_used_ratio", "The part of the limit that is in use", used, *labels, "window")


def _of_streams(streams: StreamsStatus, keys: Sequence[KeyStatus]) -> Iterator[Metric]:
    """Yield what is counted of streams; the gauge of one that was open is 0 from then on."""
    open_now = Counter({labels[:3]: 0 for labels in streams.opened if labels[3] == OPENED})
    open_now.update((one.exchange, one.bot, one.stream) for one in streams.open)
    labels = ("exchange", "bot", "stream")
    yield _gauge("streams", "Open streams of bots", open_now, *labels)
    yield _counter("streams_opened", "Openings of streams, by result", streams.opened, *labels, "result")
    messages = {labels: traffic.messages for labels, traffic in streams.traffic.items()}
    carried = {labels: traffic.bytes for labels, traffic in streams.traffic.items()}
    labels = ("exchange", "bot", "direction")
    yield _counter("stream_messages", "Messages carried on streams", messages, *labels)
    yield _counter("stream_bytes", "Bytes carried on streams, their frames included", carried, *labels)
    logins = {(key.exchange, key.alias, FAILED): 0 for key in keys} | dict(streams.logins)
    yield _counter("stream_logins", "Logins on streams, by result", logins, *_KEY, "result")
    text = "Orders over streams, by outcome"
    yield _counter("stream_orders", text, streams.orders, "exchange", "bot", "outcome")


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
