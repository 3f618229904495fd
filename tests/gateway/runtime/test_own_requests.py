"""The gateway's own requests: whose they are, how long they may wait, and what becomes of a large reply."""

import pytest

from gateway.clock.test_kept import HandHost
from rig.admitted import answer, remainder
from rig.generation import Scripted, generation_of
from rig.station import make_config
from sealgate.core.admission import Ticket
from sealgate.core.routes import Auth, Lane
from sealgate.errors import Refusal
from sealgate.gateway.request.context import RequestContext
from sealgate.gateway.runtime.key_care import ask
from sealgate.gateway.upstream.answer import Answer

URL = "http://127.0.0.1:9"


class Noting(Scripted):
    """It keeps what it was given."""

    given: tuple[Ticket, RequestContext]

    async def deliver(self, ticket: Ticket, body: bytes, context: RequestContext) -> Answer:
        self.given = ticket, context
        return await super().deliver(ticket, body, context)


@pytest.mark.parametrize(("max_wait_s", "waits_s"), [(0.0, 10.0), (60.0, 60.0)])
async def test_it_waits_a_while_also_where_bots_may_not(max_wait_s: float, waits_s: float) -> None:
    host = HandHost()
    async with generation_of(make_config(URL, limits={"max_wait": max_wait_s}), host) as tree:
        pipeline = Noting(tree, [answer(200)])
        assert (await ask(pipeline, "main", "/v1/trade/symbols/list", Lane.CANCEL, host)).status == 200
    ticket, context = pipeline.given
    assert (ticket.bot.name, ticket.key, ticket.target.raw) == (
        "(gateway)",
        "main",
        "/v1/trade/symbols/list",
    )
    assert (ticket.route.lane, ticket.route.auth, ticket.is_read) == (Lane.CANCEL, Auth.SIGNED, True)
    assert context.give_up_at == host.boot + waits_s
    assert context.ends_at == context.give_up_at + 10.0


async def test_the_rest_of_a_large_reply_is_not_read() -> None:
    ends: list[str] = []
    large = answer(200, b"first part", remainder=remainder(ends))
    host = HandHost()
    async with generation_of(make_config(URL), host) as tree:
        found = await ask(Scripted(tree, [large]), "main", "/v1/trade/api-keys", Lane.READ, host)
    assert (found.body, ends) == (b"first part", ["closed"])


async def test_a_refusal_is_whoever_asked_has_to_know() -> None:
    host = HandHost()
    async with generation_of(make_config(URL), host) as tree:
        pipeline = Scripted(tree, [Refusal("upstream_broken", "cut")])
        with pytest.raises(Refusal, match="upstream_broken"):
            await ask(pipeline, "main", "/v1/trade/symbols/list", Lane.READ, host)
