"""The metrics of what every request adds to, written when somebody asks: a scrape is in another thread."""

from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from sealgate.admin.traffic import Durations, Traffic


class TrafficMetrics(Collector):
    """Writes them."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    def collect(self) -> Iterator[Metric]:
        """Write them."""
        labels = ("bot", "key", "route", "method", "status")
        requests = CounterMetricFamily("sealgate_requests", "Requests of known bots", labels=labels)
        outcomes = CounterMetricFamily("sealgate_outcomes", "Requests by outcome", labels=("bot", "outcome"))
        counts: Counter[tuple[str, ...]] = Counter()
        concluded: Counter[tuple[str, str]] = Counter()
        for (bot, key, route, method, status, conclusion), count in self._traffic.rows().items():
            counts[bot, key, route, method, str(status)] += count
            concluded[bot, conclusion.value] += count
        for names, count in counts.items():
            requests.add_metric(names, count)
        for pair, count in concluded.items():
            outcomes.add_metric(pair, count)
        sent = CounterMetricFamily(
            "sealgate_sent", "Requests sent to the exchange, resends included", labels=("bot", "key", "lane")
        )
        for (bot, key, lane), count in self._traffic.sent().items():
            sent.add_metric((bot, key, lane.value), count)
        yield requests
        yield sent
        yield outcomes
        yield _durations("added_latency", "Time spent in the gateway itself", {(): self._traffic.added})
        queued: dict[tuple[str, ...], Durations] = {
            (key, lane.value): one for (key, lane), one in self._traffic.queued().items()
        }
        yield _durations("queue_wait", "Time spent waiting in the gateway", queued, "key", "lane")
        yield _durations(
            "upstream_duration", "Time spent waiting for the upstream", {(): self._traffic.upstream}
        )


def _durations(
    name: str, text: str, of: Mapping[tuple[str, ...], Durations], *labels: str
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(f"sealgate_{name}_seconds", text, labels=labels)
    for combination, durations in of.items():
        buckets, sum_s = durations.buckets()
        family.add_metric(combination, buckets, sum_s)
    return family
