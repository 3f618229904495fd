"""Logins made of nothing but a venue's file, for who only wants to know whether a key is accepted.

A bot writes its own messages. These are the shortest for which a rule holds.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from urllib.parse import urlsplit

from sealgate.venues.conditions import ANYTHING, Expected
from sealgate.venues.json_edit import put, text_at
from sealgate.venues.key_kinds import Kind
from sealgate.venues.order_terms import steps
from sealgate.venues.routes import Permission
from sealgate.venues.streams import MessageRule, Stream
from sealgate.venues.venue import Venue

NO_LOGIN = "no stream has a login: they are public, or opened with a token that a request returns"
_UNIQUE = "{unique}"
_NEEDS = list(Permission)


@dataclass(frozen=True, slots=True)
class LoginPlan:
    """A login that can be tried. `host` is the one to dial. Without a `rule`, the handshake logs in.

    `path` is "" where only the handshake knows it.
    """

    stream: Stream
    host: str
    path: str
    rule: MessageRule | None = None


def find_login(venue: Venue, environment: str, kind: Kind) -> LoginPlan | str:
    """Return the login to try with a key of a kind, of the least need; or why there is none."""
    hosts = venue.stream_hosts(environment)
    streams = [stream for stream in venue.streams if has_login(stream)]
    here = [stream for stream in streams if any(host in hosts for host in stream.hosts)]
    found = [login for stream in here for login in _plans(stream, kind, _nearest(venue, stream, hosts))]
    known = [login for login in found if login.path or _sets_path(login.stream)]
    if known:
        return min(known, key=_needed)
    if not streams:
        return NO_LOGIN
    if not here:
        return f"the venue's file has no stream with a login for the environment {environment}"
    if not found:
        return f"the venue's file has no login for {kind} keys"
    return f"only a bot knows the whole path of {found[0].stream.label}"


def has_login(stream: Stream) -> bool:
    """Ask whether a stream has something that shows whether a key is accepted there."""
    return stream.has_login or any(rule.message for rule in stream.messages)


def _nearest(venue: Venue, stream: Stream, hosts: Mapping[str, tuple[str, str]]) -> str:
    """Return the host to dial: of several, as for regions, the one named most like that of requests."""
    own = urlsplit(venue.base_url).netloc
    listed = [host for host in stream.hosts if host in hosts]
    return hosts[max(listed, key=lambda host: SequenceMatcher(None, own, host).ratio())][1]


def _plans(stream: Stream, kind: Kind, host: str) -> Iterable[LoginPlan]:
    path = next((path for path in stream.templates if "{" not in path and "*" not in path), "")
    if (
        stream.handshake is not None and stream.handshake.signs
    ):  # whatever comes later would be a second login
        yield LoginPlan(stream, host, path)
        return
    for rule in stream.messages:
        if _is_tried(rule, kind):
            yield LoginPlan(stream, host, path, rule)


def _is_tried(rule: MessageRule, kind: Kind) -> bool:
    """Ask whether a rule is of a signed login that needs nothing of a bot's own."""
    if rule.signing is None or (rule.kinds and kind not in rule.kinds):
        return False
    is_made = all(_known_value(one) is not None for one in rule.when)
    return bool(rule.message) or (rule.is_login and is_made)


def _known_value(expected: Expected) -> object:
    """Return a value that is expected, None where only a bot knows one."""
    return next((one for one in expected.values if not (isinstance(one, str) and ANYTHING in one)), None)


def _sets_path(stream: Stream) -> bool:
    return stream.handshake is not None and bool(stream.handshake.path)


def _needed(login: LoginPlan) -> int:
    needs = [route.needs for route in login.rule.routes] if login.rule else []
    return max(map(_NEEDS.index, (login.stream.needs, *needs)))


def first_message(rule: MessageRule, unique: str) -> str:
    """Return the message of a rule before it is signed; `unique` is a text that is drawn each time."""
    text = rule.message.replace(_UNIQUE, unique) or "{}"
    for expected in rule.when:
        place, value = steps(expected.pointer), _known_value(expected)
        if value is not None and not text_at(text, place):
            text = put(text, place, json.dumps(value), is_bare=True)
    if rule.reply is not None and rule.reply.id and not text_at(text, steps(rule.reply.id)):
        text = put(text, steps(rule.reply.id), "1", is_bare=True)
    return text
