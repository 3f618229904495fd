"""The gateway's own reads, sent like a bot's: to test keys, and for the prices of policies."""

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
    """Sends the reads: a pipeline, from its wait on."""

    backend: Backend

    @property
    def is_draining(self) -> bool:
        """Whether the gateway is shutting down."""

    async def deliver(self, ticket: Ticket, body: bytes, context: RequestContext) -> Answer:
        """Return the reply. Raises Refusal if there is none."""


async def ask(pipeline: Deliverer, alias: str, path: str, lane: Lane, system: System) -> Answer:
    """Return the reply to a read of `path`, prefix included, with a key of the pipeline's generation.

    If the reply is too large, only its first part is returned. Raises Refusal if there is none.
    """
    config, rules = pipeline.backend.config, pipeline.backend.rules
    target = parse_target(path, rules.prefix)
    inner = target.path[len(rules.prefix) :]
    method = rules.routes.method_of_read(inner)
    # The exchange itself must answer: the reply to an earlier read of a bot would prove nothing now.
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
