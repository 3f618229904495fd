"""Conclusions from the replies to reads, on an exchange and its keys, as lines of a check."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

from sealgate.diagnose.causes import HEADERS_MISSING, Facts, WholeReply, causes_of
from sealgate.exchange.refused_reads import ASK_WHETHER_SERVED, refused_unsigned
from sealgate.machine.findings import Finding, blamed, error_words, fail, ok, page_text, warn
from sealgate.venues.replies import Means, Verdict


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was sent without a signature, such as "GET /time", and the reply."""

    request: str
    status: int
    verdict: Verdict

    def __str__(self) -> str:
        return f"{self.request} was answered {error_words(self.status, self.verdict.words).rstrip('.')}"


def judge_paths(clock: Finding, time: Asked, read: Asked, base_url: str, home: str) -> Iterator[Finding]:
    """Yield the lines on an exchange that lacks the path of the time: `clock` alone would say too little.

    `read` is another path, read without a signature; `home` states the exchange's base URL, "" if unknown.
    """
    compare = f"compare base_url with the exchange's documents{home}"
    if read.status == HTTPStatus.NOT_FOUND:
        fix = f"{compare}; then upstream.prefix, clock.path, --path"
        yield fail("base_url", f"{base_url}: {time}, and {read}", fix)
        yield clock
        return
    # A reply known to the venue's file most likely comes from the exchange.
    is_known = read.verdict.means is Means.DONE or bool(read.verdict.topic)
    seems_right = "base_url seems to be right: look up the path of the exchange's time, and set clock.path"
    fix = seems_right if is_known else f"{compare}; if it is right, correct clock.path"
    yield replace(clock, text=f"{time}, though {read}", fix=fix)


def judge_limited(area: str, status: int, verdict: Verdict, retry_after_s: float | None) -> Finding:
    """Return the line on a 429, a ban or a country that is not served, after which nothing more is sent."""
    if verdict.means is Means.COUNTRY:
        cause, fix = refused_unsigned(status, verdict)
        return fail(area, f"{cause}; the check stopped here", fix)
    wait = f"wait {retry_after_s:.0f} s" if retry_after_s is not None else "wait a while"
    if verdict.means is Means.BANNED:
        said = error_words(status, verdict.words)
        text = f"the exchange has blocked this IP address or key ({said}); the check stopped here"
        return fail(area, text, f"{wait}, and run the check again; if the block stays, {ASK_WHETHER_SERVED}")
    return warn(
        area, "the rate limit is exceeded (429); the check stopped here", f"{wait}, and run the check again"
    )


@dataclass(frozen=True, slots=True)
class Read:
    """A signed read with one key, and the facts about it; without a `reply`, `trouble` says why."""

    api_key: str
    facts: Facts
    reply: WholeReply | None
    trouble: str = ""

    @property
    def is_accepted(self) -> bool:
        """Whether the exchange answered the read."""
        reply = self.reply
        return (
            reply is not None
            and reply.verdict.means is Means.DONE
            and reply.status < HTTPStatus.MULTIPLE_CHOICES
        )

    @property
    def is_signature_refused(self) -> bool:
        """Whether the signature must be the cause."""
        if self.reply is None:
            return False
        verdict = self.reply.verdict
        return verdict.means is Means.SIGNATURE and verdict.kind != HEADERS_MISSING and not verdict.others


def judge_reads(reads: Sequence[Read], *, is_public: bool) -> Iterator[Finding]:
    """Yield a line for each key. `is_public`: the path also answers without a signature."""
    accepted = tuple(read.facts.alias for read in reads if read.is_accepted and not is_public)
    refused = [read.facts.alias for read in reads if read.is_signature_refused]
    for read in reads:
        others = tuple(alias for alias in refused if alias != read.facts.alias)
        facts = replace(read.facts, accepted=accepted, signature_refused=others)
        yield _judge(replace(read, facts=facts), is_public=is_public)


def _judge(read: Read, *, is_public: bool) -> Finding:
    reply, facts = read.reply, read.facts
    area = f"keys.{facts.alias}"
    if reply is None:
        return fail(
            area,
            f"no answer to a signed read: {read.trouble}",
            "check the network (lines DNS and TLS), and run the check again",
        )
    if reply.verdict.means is not Means.DONE:
        words = reply.verdict.words or page_text(reply.body)
        said = error_words(reply.status, words, (read.api_key,))
        text = f"a signed read was refused, {said.rstrip('.')}"
        return blamed(area, text, causes_of(reply, facts), lists=bool(reply.verdict.others))
    if not read.is_accepted:
        fix = "set base_url to the target of the redirect: the gateway follows no redirects"
        return fail(area, f"the exchange redirects to another address ({reply.status})", fix)
    if not reply.body.lstrip().startswith((b"{", b"[")):
        fix = "compare base_url with the exchange's documents"
        return warn(area, "the reply to a signed read is not JSON", fix)
    if is_public:
        fix = "name a path that needs a key with --path"
        return warn(area, f"{facts.path} also answers without a key, so this read does not test the key", fix)
    text = f"a signed read is accepted ({facts.method} {facts.path}, {facts.round_trip_ms} ms)"
    if facts.is_to_trade and facts.is_listed is None:
        list_shows = f"only the exchange's list of keys shows whether the key may trade (set {area}.session)"
        text += f"; {'the first order will show whether the key may trade' if facts.venue else list_shows}"
    return ok(area, text)
