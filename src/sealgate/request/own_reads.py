"""Reads that the gateway sends itself, by the way of a bot's: to try keys, and for the prices of policies."""

from dataclasses import replace
from typing import Protocol

from sealgate.exchange.answer import Answer
from sealgate.http.headers import Head
from sealgate.http.target import parse_target
from sealgate.keys.bot import Bot
from sealgate.limits.claims import OWN_BOT
from sealgate.machine.system import System
from sealgate.request.admission import Ticket
from sealgate.request.context import RequestContext
from sealgate.request.generation import Backend
from sealgate.venues.routes import Lane

_SHORTEST_WAIT_S = 10.0


class Deliverer(Protocol):
    """What sends them: a pipeline, from its wait on."""

    backend: Backend

    @property
    def is_draining(self) -> bool:
        """Whether the gateway shuts down."""

    async def deliver(self, ticket: Ticket, body: bytes, context: RequestContext) -> Answer:
        """Return the reply. Raises Refusal where there is none."""


async def ask(pipeline: Deliverer, alias: str, path: str, lane: Lane, system: System) -> Answer:
    """Return the whole reply to a read of `path`, prefix included, with a key of the pipeline's generation.

    Of a reply too large to be held the first part is returned. Raises Refusal where there is none.
    """
    config, rules = pipeline.backend.config, pipeline.backend.rules
    target = parse_target(path, rules.prefix)
    inner = target.path[len(rules.prefix) :]
    method = rules.routes.method_of_read(inner)
    # The exchange itself must answer: a reply to an earlier read of a bot would say nothing of now.
    route = replace(rules.routes.find(method, inner), lane=lane, share_s=None)
    bot = Bot(OWN_BOT, (alias,), frozenset((route.needs,)))
    ticket = Ticket(bot, alias, route, method, target, Head({}, b""), None)
    context = RequestContext(system.request_id(), system.now(), method)
    context.exchange = config.name
    context.admitted(ticket, max(_SHORTEST_WAIT_S, config.limits.max_wait), config.upstream.total_timeout)
    answer = await pipeline.deliver(ticket, b"", context)
    if answer.remainder is not None:
        answer.remainder.abandon()
    return answer
