"""The exposition of one moment: the totals, and the gauges of a status."""

from dataclasses import replace
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.openmetrics import exposition, parser
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.process_collector import ProcessCollector

from observe.test_picture import KEY, LATE, REFUSED, SECOND, SENT, SPOT, STATUS, down, of_exchange
from rig.key_pools import only, pool
from rig.open_streams import COUNTED, PRIVATE
from rig.outcome import changed
from rig.verdicts import upstream_error
from sealgate.limits.status import SharingStatus
from sealgate.observe.metrics import Metrics
from sealgate.observe.pools import PoolState
from sealgate.observe.status import PolicyStatus, Status, halt_status
from sealgate.orders.halts import Halt, Halts, Scope
from sealgate.orders.outcome import Conclusion, Outcome
from sealgate.venues.routes import Lane

Sample = tuple[str, frozenset[tuple[str, str]]]


def parsed(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def figures(text: str) -> dict[Sample, float]:
    """Return each sample by name and labels, after a look that none comes twice."""
    found: dict[Sample, float] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type != "unknown"
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def counts(found: dict[Sample, float], name: str) -> dict[tuple[str, ...], float]:
    """Return a counter's values by its label values, in the order of the label names."""
    return {
        tuple(value for _, value in sorted(labels)): value
        for (sample, labels), value in found.items()
        if sample == f"sealgate_{name}"
    }


def text(status: Status = STATUS, *outcomes: Outcome) -> str:
    metrics = Metrics(lambda: status)
    metrics(outcomes)
    return metrics.snapshot()().decode()


KEYS = (
    replace(KEY, pools=only(SECOND, replace(SECOND, window_s=0.8149), spent_s=2.0), pause_s=1.5),
    replace(
        KEY,
        alias="alt",
        pools=only(),
        trouble="refused",
        is_active=False,
        expires_at=5.0,
        sharing=SharingStatus(3, is_leader=True, degraded="Redis is away"),
    ),
)
POLICY = PolicyStatus("grid", "spot", "may", is_observing=False, refusals={"symbols": 7})
MUCH = replace(
    STATUS,
    exchanges=(replace(SPOT, keys=KEYS, policies=(POLICY,)),),
    inflight=4,
    connections=5,
    halts=halt_status(Halts(Halt(Scope("grid"), 0))),
    reloads={"ok": 2},
    callback_errors=3,
    tls_cert_expires_at=6.0,
)


def test_the_state_shows_as_gauges() -> None:
    found = figures(text(MUCH))
    shown = {
        "build_info": {("1.0",): 1},
        "inflight": {(): 4},
        "connections": {(): 5},
        "orders_in_doubt": {("spot",): 0},
        "journal_failing": {(): 0},
        "reloads_total": {("ok",): 2},
        "callback_errors_total": {("",): 3},
        "tls_cert_expires_timestamp_seconds": {(): 6},
        "exchange_ready": {("spot",): 1},
        "clock_steps_total": {("spot",): 0},
        "clock_refusals_total": {("spot",): 0},
        "clock_offset_seconds": {("spot",): -0.25},
        "clock_error_seconds": {("spot",): 0.002},
        "clock_age_seconds": {("spot",): 3},
        "key_active": {("spot", "main"): 1, ("spot", "alt"): 0},
        "key_signatures_refused": {("spot", "main"): 0, ("spot", "alt"): 1},
        "key_expires_timestamp_seconds": {("spot", "alt"): 5},
        "pause_seconds": {("spot", "main"): 1.5, ("spot", "alt"): 0},
        "limit_spent_seconds": {("spot", "main", "all"): 2, ("spot", "alt", "all"): 0},
        "pool_pause_seconds": {("spot", "main", "all"): 2, ("spot", "alt", "all"): 0},
        "limit_sharing_replicas": {("spot", "alt"): 3},
        "limit_sharing_lead": {("spot", "alt"): 1},
        "limit_sharing_degraded": {("spot", "alt"): 1},
        "queue_depth": {("spot", "main", "order"): 0, ("spot", "alt", "order"): 0},
        "limit_requests": {("spot", "main", "all", "1s"): 20, ("spot", "main", "all", "0.815s"): 20},
        "limit_used_ratio": {("spot", "main", "all", "1s"): 0.5, ("spot", "main", "all", "0.815s"): 0.5},
        "policy_refusals_total": {("grid", "spot", "symbols"): 7},
        "halted": {("grid", "", ""): 1},
    }
    assert {name: counts(found, name) for name in shown} == shown


def test_each_pool_has_series_and_one_of_the_address_has_them_once() -> None:
    weight = pool(SECOND, pool="weight", is_whole=True, is_shared=True)
    orders = pool(replace(SECOND, window_s=86400.0), pool="orders", pause_s=7.0)
    keys = (
        replace(KEY, pools=(weight, orders)),
        replace(KEY, alias="alt", pools=(weight, pool(pool="orders"))),
    )
    public = pool(pool="public", is_shared=True)
    found = figures(text(of_exchange(keys=keys, open_pools=(public,))))
    assert counts(found, "limit_requests") == {
        ("spot", "", "weight", "1s"): 20,
        ("spot", "main", "orders", "86400s"): 20,
    }
    assert counts(found, "pool_pause_seconds") == {
        ("spot", "", "weight"): 0,
        ("spot", "main", "orders"): 7,
        ("spot", "alt", "orders"): 0,
        ("spot", "", "public"): 0,
    }
    assert counts(found, "pause_seconds") == {("spot", "main"): 0, ("spot", "alt"): 0}


def test_of_a_pool_for_each_route_there_is_the_part_with_most_to_tell() -> None:
    """Bots may choose how many parts there are."""
    parts = [
        pool(replace(SECOND, used_ratio=number / 100, n=10.0 + number), pool="path", of=f"GET /{number}")
        for number in range(40)
    ]
    found = figures(text(of_exchange(keys=(replace(KEY, pools=tuple(parts)),))))
    assert counts(found, "limit_used_ratio") == {("spot", "main", "path", "1s"): 0.39}
    assert counts(found, "limit_requests") == {("spot", "main", "path", "1s"): 49}
    closed = replace(parts[3], state=PoolState.CLOSED, pause_s=2.0)
    found = figures(text(of_exchange(keys=(replace(KEY, pools=(*parts, closed)),))))
    assert counts(found, "pool_pause_seconds") == {("spot", "main", "path"): 2}
    assert counts(found, "limit_requests") == {("spot", "main", "path", "1s"): 13}


def test_a_clock_without_a_sample_has_no_offset() -> None:
    clock = replace(STATUS.clock, offset_s=None, error_s=None, age_s=None)
    found = figures(text(of_exchange(clock=clock)))
    for name in ("clock_offset_seconds", "clock_error_seconds", "tls_cert_expires_timestamp_seconds"):
        assert counts(found, name) == {}


def test_what_alerts_and_the_dashboard_count_is_there_from_zero_on() -> None:
    """Prometheus sees no increase in the first value of a series, so it would miss a burst before that."""
    found = figures(text())
    assert counts(found, "rate_limited_total") == {("spot", "main", "upstream"): 0}
    strangers = ("bot_unauthenticated", "browser_refused", "host_refused")
    assert counts(found, "refusals_total") == {("unknown", "spot", reason): 0 for reason in strangers}


def test_requests_are_counted_by_who_asked_what_and_how_it_ended() -> None:
    moved = changed(
        SENT, method="POST", route="/order", status=502, lane=Lane.ORDER, conclusion=Conclusion.UNKNOWN
    )
    outside = changed(SENT, key=None, route="other", status=404, lane=None, attempts=0)
    read = changed(SENT, lane=Lane.READ)
    found = figures(text(STATUS, read, changed(read, attempts=3), moved, outside))
    # Label names in their order: bot, exchange, key, method, route, status.
    assert counts(found, "requests_total") == {
        ("grid", "spot", "main", "GET", SENT.route, "200"): 2,
        ("grid", "spot", "main", "POST", "/order", "502"): 1,
        ("grid", "spot", "", "GET", "other", "404"): 1,
    }
    assert counts(found, "sent_total") == {
        ("grid", "spot", "main", "read"): 4,
        ("grid", "spot", "main", "order"): 1,
    }
    assert counts(found, "outcomes_total") == {("grid", "spot", "done"): 3, ("grid", "spot", "unknown"): 1}
    assert counts(found, "upstream_duration_seconds_count") == {("spot",): 3}
    assert counts(found, "added_latency_seconds_count") == {("spot",): 4}


def test_what_few_requests_have_is_counted() -> None:
    limited = changed(
        SENT,
        lane=Lane.ORDER,
        attempts=2,
        resends=("rate_limited",),
        reason="rate_limited",
        upstream_errors=(upstream_error("rate_limited", 1.0, 2.0), upstream_error("rate_limited", 2.0)),
    )
    stranger = changed(LATE, bot=None, key=None, lane=None, reason="host_refused")
    shared = changed(SENT, attempts=0, shared="r-0")
    found = figures(text(STATUS, limited, stranger, shared, REFUSED, down(), LATE))
    assert counts(found, "sent_total") == {("grid", "spot", "main", "order"): 2}
    assert counts(found, "queue_wait_seconds_count") == {
        ("spot", "main", "order"): 1,
        ("spot", "main", "read"): 1,
    }
    assert counts(found, "refusals_total")["unknown", "spot", "host_refused"] == 1
    assert counts(found, "retries_total") == {("spot", "main", "rate_limited"): 1}
    assert counts(found, "rate_limited_total") == {
        ("spot", "main", "upstream"): 2,
        ("spot", "main", "gateway"): 1,
    }
    assert counts(found, "retry_after_seconds_sum") == {("spot", "main"): 2}
    assert counts(found, "shared_reads_total") == {("spot", "main"): 1}
    assert counts(found, "outcomes_total") == {
        ("grid", "spot", "done"): 3,
        ("grid", "spot", "refused"): 1,
        ("watcher", "spot", "done"): 1,
    }


def test_each_exchange_has_series_of_its_own() -> None:
    perp = replace(
        SPOT, name="perp", not_ready=("clock not synced",), keys=(replace(KEY, exchange="perp", pause_s=2.0),)
    )
    journal = replace(STATUS.journal, by_exchange={"perp": 2, "gone": 1})
    status = replace(STATUS, exchanges=(SPOT, perp), journal=journal)
    nowhere = changed(LATE, bot=None, exchange="", key=None, lane=None, reason="bot_unauthenticated")
    found = figures(
        text(status, SENT, changed(SENT, exchange="perp"), changed(SENT, exchange="perp"), nowhere)
    )
    assert counts(found, "outcomes_total") == {("grid", "spot", "done"): 1, ("grid", "perp", "done"): 2}
    assert counts(found, "upstream_duration_seconds_count") == {("spot",): 1, ("perp",): 2}
    assert counts(found, "exchange_ready") == {("spot",): 1, ("perp",): 0}
    assert counts(found, "pause_seconds") == {("spot", "main"): 0, ("perp", "main"): 2}
    assert counts(found, "orders_in_doubt") == {("spot",): 0, ("perp",): 2, ("gone",): 1}
    refused = counts(found, "refusals_total")
    assert refused["unknown", "", "bot_unauthenticated"] == 1
    assert refused["unknown", "perp", "bot_unauthenticated"] == 0


def test_streams_are_counted_by_what_the_venues_file_calls_them() -> None:
    """Of one that was open the gauge is 0 afterwards; label names in their order."""
    found = figures(text(replace(STATUS, streams=COUNTED)))
    shown = {
        "streams": {
            ("grid", "spot", PRIVATE): 2,
            ("maker", "spot", "other.example.com/"): 1,
            ("grid", "spot", "gone.example.com/"): 0,
        },
        "streams_opened_total": {
            ("grid", "spot", "opened", PRIVATE): 5,
            ("grid", "spot", "opened", "gone.example.com/"): 1,
            ("grid", "spot", "refused", PRIVATE): 2,
            ("grid", "spot", "unknown_stream", "other"): 3,
        },
        "stream_messages_total": {("grid", "to_bot", "spot"): 1200, ("grid", "to_exchange", "spot"): 7},
        "stream_bytes_total": {("grid", "to_bot", "spot"): 64_000, ("grid", "to_exchange", "spot"): 900},
        "stream_logins_total": {("spot", "main", "ok"): 4, ("spot", "main", "failed"): 0},
        "stream_orders_total": {("grid", "spot", "done"): 8, ("grid", "spot", "unknown"): 1},
    }
    assert {name: counts(found, name) for name in shown} == shown


def test_openmetrics_has_the_same_samples() -> None:
    """Held by the library's own strict parser."""
    status = replace(MUCH, streams=COUNTED)
    metrics = Metrics(lambda: status)
    metrics((SENT, LATE, down(), REFUSED))
    written = metrics.snapshot(exposition.generate_latest)().decode()
    strict = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(written)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }
    assert strict == figures(metrics.snapshot()().decode())


def test_the_process_is_measured_where_the_platform_can(tmp_path: Path) -> None:
    """As on Linux, and as on a machine without /proc."""
    (tmp_path / "self/fd").mkdir(parents=True)
    (tmp_path / "stat").write_text("cpu 1 2\nbtime 1700000000\n")
    fields = [str(number) for number in range(40)]
    (tmp_path / "self/stat").write_text(f"7 (seal) gate) {' '.join(fields)}")
    (tmp_path / "self/limits").write_text("Max open files            1024    4096    files\n")
    for folder, is_there in ((tmp_path, True), (tmp_path / "self", False)):
        process = ProcessCollector(proc=str(folder), registry=None)
        names = figures(Metrics(lambda: STATUS, process).snapshot()().decode())
        for name in ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "start_time_seconds"):
            assert ((f"process_{name}", frozenset()) in names) is is_there


def test_names_and_units() -> None:
    families = parsed(text(replace(MUCH, streams=COUNTED), SENT))
    assert families
    for name, family in families.items():
        assert name.startswith("sealgate_")
        assert not name.endswith(("_ms", "_milliseconds"))
        assert all(sample.name.startswith(name) for sample in family.samples)
