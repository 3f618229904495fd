"""The page's files: what is vendored is what was taken, all is served, nothing comes from elsewhere."""

import hashlib
import re
from pathlib import Path

import pytest

import sealgate.observe
from rig.admin import Admin, Client
from rig.verdicts import ERRORS
from sealgate.observe.views import load_assets

PAGE = Path(sealgate.observe.__file__).parent / "page"
OWN = [file for file in sorted(PAGE.iterdir()) if file.is_file()]
# uPlot 1.6.32 as npm has it.
DIGESTS = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}


def test_what_is_vendored_is_unchanged_and_has_its_licence() -> None:
    vendor = PAGE / "vendor"
    found = {name: hashlib.sha256((vendor / name).read_bytes()).hexdigest() for name in DIGESTS}
    assert found == DIGESTS
    stated = dict(line.split()[::-1] for line in (vendor / "SHA256SUMS").read_text().splitlines())
    assert stated == DIGESTS
    assert (vendor / "LICENSE").read_text().startswith("The MIT License")


def test_every_file_is_served() -> None:
    there = {str(file.relative_to(PAGE)) for file in PAGE.rglob("*") if file.is_file()}
    assert set(load_assets()) == there - {"vendor/LICENSE", "vendor/SHA256SUMS"}


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.name)
def test_nothing_comes_from_elsewhere(file: Path) -> None:
    text = file.read_text().replace("http://www.w3.org/2000/svg", "")
    assert "//" not in re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    assert len(text.splitlines()) <= 200


def test_nothing_stands_in_the_page_that_the_policy_forbids() -> None:
    page = (PAGE / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>", page)
    scripts = "".join(file.read_text() for file in OWN if file.suffix == ".js")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", scripts)


@pytest.mark.parametrize("name", load_assets())
async def test_it_is_served_with_its_type(client: Client, name: str) -> None:
    answer = await client.get("/" if name == "index.html" else f"/page/{name}")
    found = answer.headers["Content-Type"], await answer.read()
    assert (answer.status, found) == (200, load_assets()[name])


@pytest.mark.parametrize("path", ["/page/", "/page/none.js", "/page/../live.py", "/page/vendor/LICENSE"])
async def test_nothing_else_is(admin: Admin, path: str) -> None:
    assert (await admin.ask(path)).status == 404


async def test_the_policy_allows_the_own_origin_alone(admin: Admin) -> None:
    policy = (await admin.ask("/")).text("Content-Security-Policy") or ""
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    assert rules.pop("default-src") == "'none'"
    assert set(rules.values()) == {"'self'", "'none'"}


async def test_the_errors_are_explained(client: Client) -> None:
    page = await (await client.get("/errors")).text()
    assert re.findall(r'<tr id="(\w+)">', page) == list(ERRORS)
