"""Chooses the exchange of a request: by the address that was reached, else by the path's first segment."""

from collections.abc import Mapping

from sealgate.errors import Refusal
from sealgate.http.head_memory import HeadMemory
from sealgate.http.parser import RequestHead
from sealgate.http.server import Incoming
from sealgate.request.admission import unknown_exchange
from sealgate.request.context import RequestContext
from sealgate.request.generation import Generation
from sealgate.request.halting import Halting
from sealgate.request.pipeline import Pipeline
from sealgate.venues.error_shapes import ErrorShape


def split_target(target: str) -> tuple[str, str]:
    """Return the first segment of a raw target and all that follows it, from its slash on.

    The rest is "" if no slash ends the segment. For a target without a leading slash, both are "".
    """
    if not target.startswith("/"):
        return "", ""
    end = target.find("/", 1)
    segment = target[1:] if end < 0 else target[1:end]
    if "?" in segment:  # the slash is part of the query
        return segment.partition("?")[0], ""
    return segment, "" if end < 0 else target[end:]


class Router:
    """The pipelines of one generation, by the name of their exchange. `heads` are of admitted requests.

    Without [exchanges], the common addresses are those of the only exchange.
    """

    def __init__(
        self,
        generation: Generation,
        pipelines: Mapping[str, Pipeline],
        heads: HeadMemory[RequestHead],
        halting: Halting,
    ) -> None:
        self.generation = generation
        self.pipelines = pipelines
        self.heads = heads
        self.halting = halting
        self._any = next(iter(pipelines.values()))
        self.common = "" if generation.config.exchanges else self._any.backend.config.name

    def choose(self, request: Incoming, own: str, context: RequestContext) -> tuple[Pipeline, str]:
        """Return the pipeline of a request, and the target to send to its exchange.

        `own` is the exchange whose own address was reached, "" at the common ones. Raises Refusal
        `unknown_exchange`, `ambiguous_target` for a name with nothing behind it, or what stops any request
        without a valid token.
        """
        target, own = request.head.target, own or self.common
        name, rest = (own, target) if own else split_target(target)
        pipeline = self.pipelines.get(name)
        if pipeline is not None and rest:
            return pipeline, rest
        # Name an exchange only to clients with a valid token.
        bot = self._any.identify(request, context)
        if name not in bot.exchanges:
            raise unknown_exchange(bot, name)
        raise Refusal(
            "ambiguous_target",
            f"Only the name of an exchange is in the target; write /{name}/ before the path.",
        )

    def errors_of(self, target: str, own: str) -> ErrorShape | None:
        """Return how the exchange that a request names states errors; None if its file does not say.

        `own` is as with `choose`, `target` the head's. A client without a token can tell by the shape of its
        401 whether a name that it guessed is an exchange's: that is the price of a client's right exception.
        """
        pipeline = self.pipelines.get(own or self.common or split_target(target)[0])
        return None if pipeline is None else pipeline.backend.config.venue.errors

    def retire(self) -> None:
        """Forget everything that contains tokens: a reload has replaced this router."""
        self.heads.clear()
        for pipeline in self.pipelines.values():
            pipeline.retire()
