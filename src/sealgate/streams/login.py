"""A login that was sent over a stream, until something answers it."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from sealgate.streams.tally import FAILED, OK
from sealgate.venues.streams import ReplyRule

_MOST_MESSAGES: Final = 1000  # behind a login that may be the reply to it


@dataclass(slots=True)
class Login:
    """A login that was sent at `sent_at`. `id` is the one of its reply, None where the rule has none."""

    rule: ReplyRule
    id: str | None
    sent_at: float
    messages: int = 0  # that came since

    def note_message(self, now: float, patience_s: float) -> bool:
        """Count a message of the exchange; return whether the reply to the login is given up."""
        self.messages += 1
        return self.messages > _MOST_MESSAGES or now - self.sent_at > patience_s

    def result(self, document: object) -> tuple[str, int]:
        """Return what a message says of the login ("ok", "failed", "" for nothing) and the status for that.

        Whatever answers it and does not say that it worked means that it failed, unless the venue's file says
        what does.
        """
        if not self.rule.answers(self.id, document):
            return "", 0
        meaning = self.rule.meaning(document)
        if meaning == "done":
            return OK, int(HTTPStatus.OK)
        is_refused = bool(meaning) or not self.rule.refused
        return FAILED if is_refused else "", self.rule.status_of(document, int(HTTPStatus.UNAUTHORIZED))
