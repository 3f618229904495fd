"""Tries each key once after the start, so that a wrong secret is told though no bot has used it yet.

What the exchange answers is taken in as with any request of a bot. Nothing waits for it and nothing fails by
it: an exchange that does not answer, or answers something else, says nothing of a key.
"""

import structlog

from sealgate.core.key_health import KeyVerdict, is_mismatch, judge_key
from sealgate.core.routes import SIGNED_READ, Lane
from sealgate.errors import Refusal
from sealgate.gateway.host.host import Host
from sealgate.gateway.life.own_requests import ask
from sealgate.gateway.request.pipeline import Pipeline

log = structlog.get_logger("sealgate.keys")


async def try_keys(pipeline: Pipeline, host: Host) -> None:
    """Send a signed read with each key of which bots have learned nothing, one after the other."""
    for alias, desk in pipeline.tree.desks.items():
        if not desk.watch.was_accepted and desk.watch.health.fault is None:
            await _try_key(pipeline, alias, host)


async def _try_key(pipeline: Pipeline, alias: str, host: Host) -> None:
    try:
        answer = await ask(pipeline, alias, SIGNED_READ, Lane.READ, host)
    except Refusal as refusal:
        log.info("key_not_tried", key=alias, cause=refusal.detail)
        return
    if is_mismatch(answer.status, answer.body):
        pipeline.tree.desks[alias].watch.confirm_mismatch()
    elif (verdict := judge_key(answer.status, answer.body)) is not KeyVerdict.REFUSED:
        event = "key_tried" if verdict is KeyVerdict.ACCEPTED else "key_not_tried"
        log.info(event, key=alias, cause=f"a signed read was answered {answer.status}")
