"""Tables made of the venues' files; docs/venue-files.md's example is read, and its tables are whole."""

import base64
import hmac
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sealgate.cli import main
from sealgate.config.venues import parse_venue
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.venues.encodings import DIGESTS, ENCODERS, NONCES, SECRETS, STAMPS
from sealgate.venues.error_shapes import ErrorClass
from sealgate.venues.filters import FILTERS
from sealgate.venues.key_kinds import Kind
from sealgate.venues.limit_rules import LIMITS_KEYS
from sealgate.venues.replies import Means, doc_link
from sealgate.venues.scheme import NAMES, SIGNATURE, SIGNING_KEYS
from sealgate.venues.stream_grammar import (
    HANDSHAKE_KEYS,
    MESSAGE_KEYS,
    REPLY_KEYS,
    STREAM_KEYS,
    STREAM_NAMES,
)
from sealgate.venues.stream_sealer import Moment, StreamSealer
from sealgate.venues.venue import read_venue
from venues.page_rows import DEFAULT
from venues.pages import BLOCKS, ROOT, block, with_block
from venues.through import FILES, venue_of

PAGE = (ROOT / "docs" / "venue-files.md").read_text("utf-8")
FENCES = re.findall(r"^```([^\n]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
[EXAMPLE, *LIKE] = [text for language, text in FENCES if language == "toml venue"]
[STREAMS] = [text for language, text in FENCES if language == "toml venue streams"]
[ERRORS] = [text for language, text in FENCES if language == "toml venue errors"]
[SHOWN, ERROR] = [text for language, text in FENCES if language == "text"]


@pytest.mark.parametrize(("file", "name"), BLOCKS)
def test_a_table_is_the_one_that_the_files_make(file: str, name: str) -> None:
    """Where it is not: PYTHONPATH=tests python -m venues.pages."""
    page = (ROOT / file).read_text("utf-8")
    text = BLOCKS[file, name]()
    assert block(page, name) == text
    assert with_block(page, name, text) == page
    assert block(with_block(page, name, "| other |\n"), name) == "| other |\n"


def test_each_error_of_each_venue_is_explained_and_so_is_each_meaning() -> None:
    """The log and `sealgate check` name these places; so does a rule of a user's own file, by its meaning."""
    page = (ROOT / "docs" / "errors.md").read_text("utf-8")
    headings = re.findall(r"^### (\w+)$", page, re.MULTILINE)
    anchors = [*headings, *re.findall(r'<a id="(\w+)"></a>', page)]
    assert headings == [means for means in Means if means is not Means.DONE]
    assert len(set(anchors)) == len(anchors)
    for venue in map(venue_of, FILES):
        for row in venue.replies.errors().values():
            file, _, anchor = doc_link(row.verdict).partition("#")
            assert (file, anchor in anchors) == ("docs/errors.md", True), (venue.name, row.verdict)


def test_each_meaning_has_its_cause_and_its_fix() -> None:
    page = (ROOT / "docs" / "errors.md").read_text("utf-8")
    for part in page.partition("## Kinds at every venue")[0].split("\n### ")[1:]:
        assert re.findall(r"^\*\*(Cause:|The gateway|Fix:)\*\* ", part, re.MULTILINE) == [
            *("Cause:", "The gateway", "Fix:")
        ]


def test_the_example_is_read_and_makes_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(EXAMPLE)
    assert SHOWN in show().stdout
    Path("mine.toml").write_text(EXAMPLE.replace('timestamp = "ms"', 'timestamp = "msec"'))
    assert show().stderr == ERROR


def test_the_examples_of_files_that_are_like_another_are_read(tmp_path: Path) -> None:
    for text in LIKE:
        (tmp_path / "mine.toml").write_text(text)
        assert parse_venue(str(tmp_path / "mine.toml")).like
    assert len(LIKE) == 2


def show() -> Result:
    return CliRunner().invoke(main, ["venues", "show", "./mine.toml", "--summary"])


def test_the_example_of_streams_is_read_and_signs_what_the_page_shows() -> None:
    text = f"{EXAMPLE}\n{STREAMS}"
    venue = read_venue("mine.toml", text)
    private, public = venue.streams
    assert (private.label, private.is_read, public.label) == (
        *("private", True),
        "stream.example.com/v2/public/**",
    )
    key = KeyMaterial("API_KEY", bytearray(b"secret"), passphrase="P")
    sealer = StreamSealer(sealer_of(venue, key), "stream.example.com", "/v2/private")
    [before, after] = [shown for language, shown in FENCES if language == "json"]
    rule, _ = private.find(private.clear(before.strip()), Kind.HMAC)
    assert rule is not None
    sent = sealer.sign(before.strip(), rule.signing, rule.drops, Moment(1_790_000_000_000, b""))
    signature = hmac.digest(b"secret", b"LOGIN1790000010000", "sha256")
    assert sent.replace(base64.b64encode(signature).decode(), "SIGNATURE") == after.strip()


def test_the_example_has_every_table() -> None:
    tables = set(re.findall(r"^\[+([a-z.]+)\]+", EXAMPLE, re.MULTILINE))
    assert tables == {
        *("signing", "signing.headers", "clock", "limits", "limits.pools", "limits.pools.counter", "reads"),
        *("routes", "replies", "environments.test", "environments.demo"),
    }


@pytest.mark.parametrize(
    ("head", "valid"),
    [
        ("name", {*NAMES, SIGNATURE}),
        ("filter", set(FILTERS)),
        ("key", set(SIGNING_KEYS)),
        ("means", set(Means)),
        ("key of limits", set(LIMITS_KEYS)),
        ("key of a stream", set(STREAM_KEYS)),
        ("key of a message", set(MESSAGE_KEYS)),
        ("key of a reply", set(REPLY_KEYS)),
        ("key of a handshake", set(HANDSHAKE_KEYS)),
        ("name on a stream", set(STREAM_NAMES)),
    ],
)
def test_a_table_of_the_grammar_is_whole(head: str, valid: set[str]) -> None:
    [table] = re.findall(rf"^\| {head} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == valid


def test_the_venues_whose_orders_a_policy_can_judge_are_listed() -> None:
    [table] = re.findall(
        r"^\| venue \| what a policy can judge \|.*\n\|[-|]+\n((?:\|.*\n)+)",
        (ROOT / "docs" / "exchanges" / "README.md").read_text("utf-8"),
        re.MULTILINE,
    )
    venues = [venue for venue in map(venue_of, FILES) if not venue.like and venue.name != DEFAULT]
    judged = [venue for venue in venues if any(route.order for route in venue.routes)]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == {venue.name for venue in judged}
    unpriced = {venue.name for venue in judged if not any(route.prices for route in venue.routes)}
    assert set(re.findall(r"^\| `([\w-]+)` \|.*\| -.* \|$", table, re.MULTILINE)) == unpriced


def test_what_a_digest_an_encoding_or_a_secret_may_be_is_all_said() -> None:
    for name, values in (
        ("digest", DIGESTS),
        ("secret", SECRETS),
        ("encoding", ENCODERS),
        ("timestamp", STAMPS),
        ("nonce", NONCES),
    ):
        [row] = re.findall(rf"^\| `{name}` \| (`.*) \|$", PAGE, re.MULTILINE)
        assert set(values) <= set(re.findall(r"`(\w+)`", row)), name


def test_the_venues_at_which_the_secret_stays_in_memory_are_listed() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    hashed, sent = re.findall(r"^\| API secret at (.*?) \| the secret itself", text, re.MULTILINE)
    venues = [venue for venue in map(venue_of, FILES) if venue.signing.keeps_secret]
    static = {venue.name for venue in venues if venue.signing.is_static}
    assert set(re.findall(r"`([\w-]+)`", sent)) == static
    assert set(re.findall(r"`([\w-]+)`", hashed)) == {venue.name for venue in venues} - static


def test_the_example_of_errors_is_read() -> None:
    shape = read_venue("mine.toml", f"{EXAMPLE}\n{ERRORS}").errors
    assert shape is not None
    told = shape.document(ErrorClass.LIMITED, "rate_limited", "Wait.")
    assert told == {"code": -1003, "msg": "rate_limited: Wait."}
    assert shape.document(ErrorClass.PERMISSION, "halted", "Wait.") is None
