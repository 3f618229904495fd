"""The generation of a configuration without sockets, and a pipeline over it that answers from a script."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

from rig.backends import only
from rig.station import ENVIRON
from sealgate.config import Config
from sealgate.exchange.answer import Answer
from sealgate.keys.parts import read_parts
from sealgate.machine.system import System
from sealgate.request.admission import Ticket
from sealgate.request.context import InFlightRequests, RequestContext
from sealgate.request.generation import Backend, Generation
from sealgate.server.services import build_generation


@contextlib.asynccontextmanager
async def backend_of(
    config: Config, system: System, environ: Mapping[str, str] = ENVIRON
) -> AsyncIterator[Backend]:
    """Make the parts of the one exchange of a configuration; nothing of it runs."""
    async with generation_of(config, system, environ) as generation:
        yield only(generation)


@contextlib.asynccontextmanager
async def generation_of(
    config: Config, system: System, environ: Mapping[str, str] = ENVIRON
) -> AsyncIterator[Generation]:
    """Make a generation; nothing of it runs."""
    generation = build_generation(config, read_parts(config, environ), system, InFlightRequests())
    try:
        yield generation
    finally:
        for backend in generation.backends.values():
            await backend.exchange.upstream.close()
            await backend.exchange.clock_keeper._upstream.close()


class Scripted:
    """In place of a pipeline: its requests are answered, or refused, by these; `asked` are their targets."""

    is_draining = False

    def __init__(self, backend: Backend, answers: Sequence[Answer | Exception]) -> None:
        self.backend = backend
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
