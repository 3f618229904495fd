"""The exchange of a gateway that has one."""

from sealgate.config import Config, ExchangeConfig
from sealgate.request.generation import Backend, Generation
from sealgate.request.pipeline import Pipeline
from sealgate.server.gateway import Gateway


def the_exchange(config: Config) -> ExchangeConfig:
    """Return what a configuration of one exchange says of it."""
    (exchange,) = config.served.values()
    return exchange


def only(generation: Generation) -> Backend:
    """Return the one exchange of a generation."""
    (backend,) = generation.backends.values()
    return backend


def pipeline_of(gateway: Gateway) -> Pipeline:
    """Return the pipeline of new requests of a gateway with one exchange."""
    (pipeline,) = gateway.handler.router.pipelines.values()
    return pipeline
