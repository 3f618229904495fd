"""The generation of a configuration without sockets, and a pipeline over it that answers from a script."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

from rig.station import ENVIRON
from sealgate.config import Config
from sealgate.exchange.answer import Answer
from sealgate.keys.parts import read_parts
from sealgate.machine.system import System
from sealgate.request.admission import Ticket
from sealgate.request.context import InFlightRequests, RequestContext
from sealgate.request.generation import Generation
from sealgate.server.services import build_generation


@contextlib.asynccontextmanager
async def generation_of(
    config: Config, system: System, environ: Mapping[str, str] = ENVIRON
) -> AsyncIterator[Generation]:
    """Make a generation; nothing of it runs."""
    generation = build_generation(config, read_parts(config, environ), system, InFlightRequests())
    try:
        yield generation
    finally:
        await generation.exchange.upstream.close()
        await generation.exchange.clock_keeper._upstream.close()


class Scripted:
    """In place of a pipeline: its requests are answered, or refused, by these; `asked` are their targets."""

    is_draining = False

    def __init__(self, generation: Generation, answers: Sequence[Answer | Exception]) -> None:
        self.generation = generation
        self._answers = [*answers]
        self.asked: list[tuple[str, str]] = []

    async def deliver(self, ticket: Ticket, body: bytes, context: RequestContext) -> Answer:
        """Give the next answer."""
        assert (ticket.method, body, context.key) == ("GET", b"", ticket.key)
        self.asked.append((ticket.key, ticket.target.raw))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer
