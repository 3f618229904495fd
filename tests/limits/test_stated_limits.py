"""Limits that header fields of replies state hold for the key, unless `limits.headers` says otherwise."""

from rig.bot import met, request
from rig.station import running_station
from rig.upstream import Upstream, say
from rig.wire import reply

HURRIED = request().replace(b"Host:", b"X-Gateway-Deadline-Ms: 500\r\nHost:", 1)
SPENT = say(reply(b"200 OK", b"{}", b"X-RateLimit-Remaining: 0", b"X-RateLimit-Reset: 60"))


async def test_where_nothing_is_left_the_key_waits(upstream: Upstream) -> None:
    upstream.answers.append(SPENT)
    async with running_station(upstream) as station:
        assert met(await station.ask(HURRIED)) == (200, "done", None, 1)
        assert met(await station.ask(HURRIED)) == (429, "not_sent", "rate_limited", 0)


async def test_where_header_fields_are_ignored_the_key_goes_on(upstream: Upstream) -> None:
    upstream.answers.append(SPENT)
    async with running_station(upstream, limits={"headers": False}) as station:
        assert met(await station.ask(HURRIED)) == (200, "done", None, 1)
        assert met(await station.ask(HURRIED)) == (200, "done", None, 1)
