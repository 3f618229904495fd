"""What the signed reads of a check say of the keys: all keys are asked first, as one explains another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

from sealgate.core.error_words import error_words
from sealgate.core.findings import Finding, blamed, fail, ok, warn
from sealgate.core.refusals import Facts, Others, WholeReply, causes_of
from sealgate.core.venues.replies import Means


@dataclass(frozen=True, slots=True)
class Read:
    """A signed read with one key, and what is known of it.

    `reply` is None where none came: `trouble` says why.
    """

    api_key: str
    facts: Facts
    reply: WholeReply | None
    trouble: str = ""

    @property
    def area(self) -> str:
        """What its line is about."""
        return f"keys.{self.facts.alias}"


def judge_reads(reads: Sequence[Read], *, is_public: bool) -> Iterator[Finding]:
    """Yield a line for each key. `is_public`: the path is answered without a signature, too."""
    accepted = tuple(read.facts.alias for read in reads if _is_accepted(read) and not is_public)
    refused = tuple(read.facts.alias for read in reads if _is_signature_refused(read))
    for read in reads:
        others = Others(accepted, tuple(alias for alias in refused if alias != read.facts.alias))
        if read.reply is None:
            yield fail(
                read.area, f"no answer to a signed read: {read.trouble}", "see above, and run it again"
            )
        else:
            yield _judge(
                replace(read, facts=replace(read.facts, others=others)), read.reply, is_public=is_public
            )


def limited(area: str, retry_after_s: float | None) -> Finding:
    """Return the line of a 429, after which nothing more is sent."""
    wait = f"wait {retry_after_s:.0f} s" if retry_after_s is not None else "wait a while"
    return warn(
        area, "the rate limit is exceeded (429), so nothing more was asked", f"{wait}, and run it again"
    )


def _judge(read: Read, reply: WholeReply, *, is_public: bool) -> Finding:
    area = read.area
    if reply.verdict.means is not Means.DONE:
        said = error_words(reply.status, reply.verdict.words, (read.api_key,))
        return blamed(area, f"a signed read was refused, {said}", causes_of(reply, read.facts))
    if reply.status >= HTTPStatus.MULTIPLE_CHOICES:
        fix = "write the address that it leads to as base_url: the gateway follows none"
        return fail(area, f"the exchange redirects to another address ({reply.status})", fix)
    if not reply.body.lstrip().startswith((b"{", b"[")):
        return warn(
            area, "a signed read was answered, but not with JSON", "compare base_url with the exchange's"
        )
    if is_public:
        fix = "name one that needs a key: --path"
        return warn(area, f"{read.facts.path} is answered without a key too, which proves nothing", fix)
    text = f"a signed read is accepted ({read.facts.method} {read.facts.path}, {read.facts.round_trip_ms} ms)"
    if read.facts.is_to_trade and read.facts.is_listed is None:
        text += f"; whether it may trade, only the exchange's list tells ({area}.session)"
    return ok(area, text)


def _is_accepted(read: Read) -> bool:
    reply = read.reply
    if reply is None or reply.verdict.means is not Means.DONE:
        return False
    return reply.status < HTTPStatus.MULTIPLE_CHOICES


def _is_signature_refused(read: Read) -> bool:
    return read.reply is not None and read.reply.verdict.kind == "signature_invalid"
