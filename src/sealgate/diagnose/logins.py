"""The result of a login on a stream, as a line of a check."""

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
    """The result of a login."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    LIMITED = "limited"
    UNSAID = "unsaid"  # the venue's file does not describe the reply
    SILENT = "silent"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A login attempt. `way` is "the login" or "the signed handshake", `address` is host and path.

    `text` is the exchange's text, or why it cannot be reached. `reply` is a refusal as judged by the venue's
    rules; its `status` is 0 if it arrived over the stream. `hidden` are texts that must not be shown.
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
        """Whether the exchange refused it because of the rate limit."""
        return self.outcome is Outcome.LIMITED


def outcome_of(rule: ReplyRule, sent: str, text: str) -> tuple[Outcome, int] | None:
    """Return the result of the login according to a message of the exchange, and the status of a refusal.

    Return None for a message about something else.
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
    """Return a refusal as judged by the venue's rules for replies, with a status like that of a request."""
    body = text.encode("utf-8", "replace")
    return WholeReply(0, body, judge.judge(status, body))


def secrets_in(sent: str, signing: MessageSigning) -> tuple[str, ...]:
    """Return the parts of a message that must not be shown: key, passphrase, user, signature."""
    places = [place for place, put in signing.puts if names_in(put.text) & (_OWN | signing.late)]
    return _parts(text_at(sent, place) for place in places)


def secrets_of(values: Collection[str]) -> tuple[str, ...]:
    """Return the same for a handshake with headers and parameters of these values."""
    return _parts(values)


def _parts(values: Iterable[str]) -> tuple[str, ...]:
    """Return texts and their long parts, plain and as in JSON."""
    parts = {part for value in values for part in (value, *_LONG.findall(value))}
    return tuple(parts | {json.dumps(part, ensure_ascii=False)[1:-1] for part in parts})


def judge_login(attempt: Attempt, facts: Facts) -> Finding:
    """Return the line on a login with a key."""
    area, outcome = f"keys.{facts.alias}", attempt.outcome
    what = f"{attempt.way} on {attempt.address}"
    said = _said(attempt)
    if outcome is Outcome.ACCEPTED:
        return ok(area, f"{what} is accepted ({attempt.took_ms} ms)")
    if outcome is Outcome.UNREACHABLE:
        return fail(area, f"{what} is not possible: {said}", _REACH)
    if attempt.is_limited:
        text = f"{what} was refused because of the rate limit, {said}; the check stopped here"
        return warn(area, text, "wait a while, and run the check again")
    if outcome is Outcome.UNSAID:
        came = f"the reply is {said}" if said else "no reply arrived"
        text = f"{what} was sent, but the venue's file does not describe the reply; {came}"
        return warn(area, text, "compare the reply with the exchange's documents")
    if attempt.reply is None:
        came = f"; the last message is {said}" if said else ""
        return fail(area, f"{what} was not answered{came}", RUN_AGAIN)
    causes = causes_of_login(attempt.reply, facts)
    lists = bool(attempt.reply.verdict.others)
    return blamed(area, f"{what} was refused, {said.rstrip('.')}", causes, lists=lists)


def _said(attempt: Attempt) -> str:
    """Return the exchange's text, without the hidden parts."""
    reply, text = attempt.reply, attempt.text
    with contextlib.suppress(
        ValueError, RecursionError
    ):  # normalize each letter, so that hidden parts are found
        text = json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
    if reply is None:
        return shown_words(text, attempt.hidden)
    words = reply.verdict.words or page_text(reply.body) or text
    if reply.status:
        return error_words(reply.status, words, attempt.hidden)
    return shown_words(words, attempt.hidden)
