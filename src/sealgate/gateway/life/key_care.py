"""Looks after the keys of one tree beside the requests: tries disabled ones again, reads when they expire."""

from http import HTTPStatus

import structlog

from sealgate.core.advice import RENEW
from sealgate.core.key_records import KeyRecord, KeyState, find_record
from sealgate.core.routes import KEY_LIST, SIGNED_READ, Lane
from sealgate.errors import Refusal
from sealgate.gateway.host.host import Host
from sealgate.gateway.life.own_requests import ask
from sealgate.gateway.request.pipeline import Pipeline

_LOOK_S = 1.0
_FIRST_READ_S = 5.0  # those who start a gateway want to trade first
_READ_AGAIN_S = 3600.0
# What is logged, once an hour, of a key that is not good.
_TROUBLES = {
    KeyState.INACTIVE: "key_inactive",
    KeyState.ENDED: "key_expired",
    KeyState.ENDS_SOON: "key_expires_soon",
}

log = structlog.get_logger("sealgate.keys")


class KeyCare:
    """Runs as long as its pipeline is the current one."""

    def __init__(self, pipeline: Pipeline, host: Host) -> None:
        self._pipeline = pipeline
        self._host = host
        self._due = dict.fromkeys(self._with_session(), host.now() + _FIRST_READ_S)

    def _with_session(self) -> list[str]:
        return [alias for alias, desk in self._pipeline.tree.desks.items() if desk.key.session is not None]

    async def run(self) -> None:
        """Look once a second, and do at most one thing of each kind."""
        while True:
            await self._host.sleep(_LOOK_S)
            await self._try_disabled()
            await self._read_due()

    async def _try_disabled(self) -> None:
        """Send a signed read with each key that may be tried again; where bots came first, it is not due."""
        for alias, desk in self._pipeline.tree.desks.items():
            if desk.watch.health.fault is not None and desk.watch.health.may_go(self._host.now()):
                desk.watch.pass_or_refuse()
                await self._ask(alias, SIGNED_READ)

    async def _read_due(self) -> None:
        now = self._host.now()
        alias = next((alias for alias, at in self._due.items() if at <= now), None)
        if alias is not None:
            self._due[alias] = now + _READ_AGAIN_S
            await self.read_record(alias)

    async def read_record(self, alias: str) -> None:
        """Take in what the exchange's list says of a key."""
        desk = self._pipeline.tree.desks[alias]
        body = await self._ask(alias, KEY_LIST)
        record = None if body is None else find_record(body, desk.key.api_key)
        if record is not None:
            desk.watch.record = record
            self._warn(alias, record)
        elif body is not None:
            fix = f"check keys.{alias}.session: it must be of the user whose key it is"
            log.warning("key_not_listed", key=alias, cause="the exchange's list does not have it", fix=fix)

    async def _ask(self, alias: str, path: str) -> bytes | None:
        """Return the body of a reply, None where it was refused, which is told."""
        try:
            answer = await ask(self._pipeline, alias, path, Lane.READ, self._host)
        except Refusal as refusal:
            log.warning("key_not_asked_about", key=alias, path=path, cause=refusal.detail)
            return None
        if answer.status != HTTPStatus.OK:
            log.warning("key_not_asked_about", key=alias, path=path, cause=f"the answer was {answer.status}")
            return None
        return answer.body

    def _warn(self, alias: str, record: KeyRecord) -> None:
        now = self._pipeline.tree.clock.server_now()
        days = round(record.days_left(now), 1) if record.expires_at is not None else None
        event = _TROUBLES.get(record.state(now))
        if event is not None:
            log.warning(event, key=alias, days=days, cause="the exchange's list says so", fix=RENEW)
