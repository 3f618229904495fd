"""The documents against the code: whatever one side names, the other side has."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.process_collector import ProcessCollector
from pydantic import BaseModel

from rig.key_pools import only
from sealgate.config import Config
from sealgate.config.names import COMMON
from sealgate.errors import REASONS
from sealgate.exchange.clock import ClockStatus
from sealgate.limits.status import LimitStatus, SharingStatus
from sealgate.observe.metrics import Metrics
from sealgate.observe.status import ExchangeStatus, KeyStatus, Status
from sealgate.orders.doubts import JournalStatus

ROOT = Path(__file__).parent.parent
LIMIT = LimitStatus(
    20.0, 1.0, 0.5, 3, is_foreign_use=False, words="about 20 per 1 s", low=20.0, high=20.0, next_step=""
)
SHARING = SharingStatus(replicas=1, is_leader=True, degraded=None)
STATUS = Status(
    "1",
    0.0,
    False,
    0,
    0,
    (
        ExchangeStatus(
            "spot",
            "service",
            "",
            (),
            (),
            ClockStatus(0.0, 0.0, 0.0, 0, 0, None),
            (KeyStatus("main", "spot", 0.0, {}, {}, only(LIMIT), sharing=SHARING),),
        ),
    ),
    JournalStatus(0, (), None, is_refusing=False),
    tls_cert_expires_at=0.0,
)
# Programs of bench/ that a benchmark or a script of its own starts.
STARTED = {
    "bare_proxy",
    "low_level_proxy",
    "distance",
    "first_request",
    "load",
    "stream_deaf",
    "stream_exchange",
    "stream_load",
    "stream_proxy",
    "upstream",
    "slow_timers",
}
TABLES = {"keys": "keys.*", "bots": "bots.*", "routes": "routes.*", "exchanges": "exchanges.*"}
TABLES |= {"limits.pools": "limits.pools.*"}
# The tables that others are alike; their settings are documented once.
ALIKE = {f"exchanges.*.{name}" for name in COMMON} | {"bots.*.policies"}


def first_cells(name: str) -> set[str]:
    """Return what stands in backquotes at the start of each table row of a document."""
    return set(re.findall(r"^\| `([^`]+)`", (ROOT / name).read_text(), re.MULTILINE))


def settings(model: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        where = TABLES.get(path + name, path + name)
        if where in ALIKE:
            continue
        inner = [kind for kind in _classes(field.annotation) if issubclass(kind, BaseModel)]
        yield from settings(inner[0], f"{where}.") if inner else (where,)


def _classes(annotation: object) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _classes(part)


def test_every_setting_is_documented_and_exists() -> None:
    documented = {name for name in first_cells("docs/configuration.md") if not re.search("[: ]", name)}
    assert documented == set(settings(Config))


def test_every_reason_is_documented_with_its_status() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d{3}) \|", (ROOT / "docs/replies.md").read_text(), re.MULTILINE)
    assert {slug: int(status) for slug, status in rows} == {slug: row.status for slug, row in REASONS.items()}


def test_every_metric_is_documented_with_its_type() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE)
    metrics = Metrics(lambda: STATUS, ProcessCollector(registry=None))
    families = text_string_to_metric_families(metrics.snapshot()().decode())
    exposed = {
        family.name + ("_total" if family.type == "counter" else ""): family.type
        for family in families
        if not family.name.endswith("_created")
    }
    of_process = {name for name, _ in rows if name.startswith("process_")}
    assert of_process
    if not any(name.startswith("process_") for name in exposed):  # this platform has none of them
        rows = [(name, kind) for name, kind in rows if name not in of_process]
    assert dict(rows) == exposed


def test_links_lead_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\((?!https:)([^)]+)\)", page.read_text()):
            file, _, anchor = link.partition("#")
            target = page.parent / file if file else page
            assert target.exists(), f"{page.name}: {link}"
            assert not anchor or anchor in anchors(target.read_text()), f"{page.name}: {link}"


def anchors(page: str) -> set[str]:
    """Return the places of a page that a link can name, as GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    plain = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return plain | set(re.findall(r'<a id="([^"]+)"></a>', page))


@pytest.mark.parametrize("folder", ["docs", "docs/adr", "docs/exchanges"])
def test_the_index_leads_to_every_page(folder: str) -> None:
    index = ROOT / folder / "README.md"
    links = re.findall(r"\]\(([\w/-]+\.md)\)", index.read_text())
    below = [index.parent, *([index.parent / "internals"] if folder == "docs" else [])]
    pages = {page for place in below for page in place.glob("*.md")}
    assert {index.parent / link for link in links} >= pages - {index}


def test_every_benchmark_is_listed() -> None:
    """A benchmark is a program that takes arguments or prints; the others are started by one."""
    part = (ROOT / "docs" / "internals" / "testing.md").read_text().partition("## Benchmarks")[2]
    listed = set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE))
    bench = (ROOT / "bench").glob("*.py")
    assert listed == {file.stem for file in bench if "__main__" in file.read_text()} - STARTED


def test_every_path_that_contributing_names_is_there() -> None:
    named = re.findall(
        r"`((?:src|tests|scripts|docs|deploy|\.ci)/[\w./-]*)", (ROOT / "CONTRIBUTING.md").read_text()
    )
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []
