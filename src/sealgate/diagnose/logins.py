"""What came of a login on a stream, as a line of a check."""

import contextlib
import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from sealgate.diagnose.causes import RUN_AGAIN, Facts, WholeReply, causes_of_login
from sealgate.machine.findings import Finding, blamed, error_words, fail, ok, page_text, shown_words, warn
from sealgate.streams.login import Login
from sealgate.streams.tally import OK
from sealgate.venues.json_edit import text_at
from sealgate.venues.replies import Judge
from sealgate.venues.streams import MessageSigning, ReplyRule, id_of
from sealgate.venues.templates import names_in

_REACH = "streams have hosts of their own: check the network, environment and upstream.streams"
_OWN = {"api_key", "passphrase", "uid"}
_LONG = re.compile(r'[^\s"\[\],]{8,}')


class Outcome(StrEnum):
    """What came of a login."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    LIMITED = "limited"
    UNSAID = "unsaid"  # the venue's file does not say what answers it
    SILENT = "silent"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A login that was tried. `way` is "the login" or "the signed handshake", `address` is host and path.

    `text` are the words of the exchange, or why it cannot be reached. `reply` is what the venue's rules say
    of a refusal, its `status` 0 where it came over the stream. `hidden` are texts that nobody is to read.
    """

    way: str
    address: str
    outcome: Outcome
    took_ms: int
    text: str = ""
    reply: WholeReply | None = None
    hidden: tuple[str, ...] = ()

    @property
    def is_limited(self) -> bool:
        """Whether the exchange refused it for its limit."""
        return self.outcome is Outcome.LIMITED


def outcome_of(rule: ReplyRule, sent: str, text: str) -> tuple[Outcome, int] | None:
    """Return what a message of the exchange says of the login that was sent, and the status of a refusal.

    None for a message about something else.
    """
    try:
        document, own = json.loads(text), json.loads(sent)
    except (ValueError, RecursionError):
        return None
    result, status = Login(rule, id_of(own, rule.id) if rule.id else None, 0.0).result(document)
    if not result:
        return None
    if result == OK:
        return Outcome.ACCEPTED, status
    return Outcome.LIMITED if rule.meaning(document) == "limited" else Outcome.REFUSED, status


def reply_over_stream(judge: Judge, status: int, text: str) -> WholeReply:
    """Return a refusal as the venue's rules for replies see it, with a status like that of a request."""
    body = text.encode("utf-8", "replace")
    return WholeReply(0, body, judge.judge(status, body))


def secrets_in(sent: str, signing: MessageSigning) -> tuple[str, ...]:
    """Return what of a message nobody is to read: key, passphrase, user, signature."""
    places = [place for place, put in signing.puts if names_in(put.text) & (_OWN | signing.late)]
    return _parts(text_at(sent, place) for place in places)


def secrets_of(values: Collection[str]) -> tuple[str, ...]:
    """Return the same of a handshake, whose headers and parameters have these values."""
    return _parts(values)


def _parts(values: Iterable[str]) -> tuple[str, ...]:
    """Return texts and what is long in them, as they are and as JSON has them."""
    parts = {part for value in values for part in (value, *_LONG.findall(value))}
    return tuple(parts | {json.dumps(part, ensure_ascii=False)[1:-1] for part in parts})


def judge_login(attempt: Attempt, facts: Facts) -> Finding:
    """Return the line of a login with a key."""
    area, outcome = f"keys.{facts.alias}", attempt.outcome
    what = f"{attempt.way} on {attempt.address}"
    said = _said(attempt)
    if outcome is Outcome.ACCEPTED:
        return ok(area, f"{what} is accepted ({attempt.took_ms} ms)")
    if outcome is Outcome.UNREACHABLE:
        return fail(area, f"{what} is not possible: {said}", _REACH)
    if attempt.is_limited:
        text = f"{what} was refused for the limit, {said}, so nothing more was tried"
        return warn(area, text, "wait a while, and run it again")
    if outcome is Outcome.UNSAID:
        came = f"what came is {said}" if said else "nothing came"
        text = f"{what} was sent, and the venue's file does not say what answers it; {came}"
        return warn(area, text, "compare it with the exchange's documents")
    if attempt.reply is None:
        came = f"; what came is {said}" if said else ""
        return fail(area, f"{what} was not answered{came}", RUN_AGAIN)
    causes = causes_of_login(attempt.reply, facts)
    lists = bool(attempt.reply.verdict.others)
    return blamed(area, f"{what} was refused, {said.rstrip('.')}", causes, lists=lists)


def _said(attempt: Attempt) -> str:
    """Return the words of the exchange, without what nobody is to read."""
    reply, text = attempt.reply, attempt.text
    with contextlib.suppress(
        ValueError, RecursionError
    ):  # one spelling of each letter, to find what is hidden
        text = json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
    if reply is None:
        return shown_words(text, attempt.hidden)
    words = reply.verdict.words or page_text(reply.body) or text
    if reply.status:
        return error_words(reply.status, words, attempt.hidden)
    return shown_words(words, attempt.hidden)
