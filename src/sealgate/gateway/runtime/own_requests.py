"""The gateway's own requests with a key. They wait in its line and are sent as a bot's are."""

from dataclasses import replace
from typing import Protocol

from sealgate.core.admission import Bot, Ticket
from sealgate.core.headers import Head
from sealgate.core.routes import Lane
from sealgate.core.target import parse_target
from sealgate.gateway.platform.system import System
from sealgate.gateway.request.context import RequestContext
from sealgate.gateway.request.generation import Generation
from sealgate.gateway.upstream.answer import Answer

_SHORTEST_WAIT_S = 10.0
_NOBODY = "(gateway)"  # no bot can have this name


class Deliverer(Protocol):
    """What sends them: a pipeline, from its wait on."""

    generation: Generation

    @property
    def is_draining(self) -> bool:
        """Whether the gateway shuts down."""

    async def deliver(self, ticket: Ticket, body: bytes, context: RequestContext) -> Answer:
        """Return the reply. Raises Refusal where there is none."""


async def ask(pipeline: Deliverer, alias: str, path: str, lane: Lane, system: System) -> Answer:
    """Return the whole reply to a read of `path`, prefix included, with a key of the pipeline's generation.

    Of a reply too large to be held the first part is returned. Raises Refusal where there is none.
    """
    ticket = _ticket(pipeline, alias, path, lane)
    limits = pipeline.generation.limits
    context = RequestContext(system.request_id(), system.now(), ticket.method)
    context.admitted(ticket, max(_SHORTEST_WAIT_S, limits.max_wait_s), limits.total_timeout_s)
    answer = await pipeline.deliver(ticket, b"", context)
    if answer.remainder is not None:
        answer.remainder.abandon()
    return answer


def _ticket(pipeline: Deliverer, alias: str, path: str, lane: Lane) -> Ticket:
    rules = pipeline.generation.rules
    target = parse_target(path, rules.prefix)
    inner = target.path[len(rules.prefix) :]
    method = rules.routes.method_of_read(inner)
    # It asks about the key, so it shares no reply.
    route = replace(rules.routes.find(method, inner), lane=lane, share_s=None)
    bot = Bot(_NOBODY, (alias,), frozenset((route.needs,)))
    return Ticket(bot, alias, route, method, target, Head({}, b""), None)
