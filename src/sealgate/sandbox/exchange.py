"""The exchange: one request passes `answer` from top to bottom. No sockets; the time comes from `Conditions`.

    find the route -> count it -> authenticate -> validate -> address in the body -> execute

Refusals of any step, and the unexpected, become replies in the stated shape here and nowhere else.
"""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from sealgate.sandbox.access import KEY_HEADER, Attempt, Doorman, check_same_address
from sealgate.sandbox.account import Accounts
from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.clock import Moment, http_date, iso
from sealgate.sandbox.control import Conditions, KeyControl, UserDesk
from sealgate.sandbox.journal import Journal, Receipt
from sealgate.sandbox.key_rules import PERMISSIONS, KeyOptions
from sealgate.sandbox.keys import KeyDesk
from sealgate.sandbox.market import Market
from sealgate.sandbox.market_desk import MarketDesk
from sealgate.sandbox.message import Call, Reply, Request
from sealgate.sandbox.models.control import Fault, NewUser, Reset
from sealgate.sandbox.models.wire import Nothing
from sealgate.sandbox.numbering import Numbering
from sealgate.sandbox.openapi import build_document
from sealgate.sandbox.orders import OrderDesk
from sealgate.sandbox.positions import PositionDesk
from sealgate.sandbox.records import Key
from sealgate.sandbox.registry import Registry
from sealgate.sandbox.router import Found, Route, Router
from sealgate.sandbox.routes import CONTROL, Desks, build_routes, build_stream_routes
from sealgate.sandbox.sessions import PasskeyDesk, SessionDesk
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.spot import SpotDesk
from sealgate.sandbox.store import Store
from sealgate.sandbox.stream import SERVICE_RESTART, Streams
from sealgate.sandbox.stream_desk import StreamDesk, input_of
from sealgate.sandbox.system import System
from sealgate.sandbox.validation import read_body, read_query
from sealgate.sandbox.wallet import WalletDesk

logger = logging.getLogger("sealgate.sandbox")

OPENAPI_PATH = "/openapi.json"
DOCUMENT_VERSION = "1"
READY_MADE = "ready-made"  # the label of the key that is printed at the start


@dataclass(frozen=True, slots=True)
class Credentials:
    """The ready-made user, printed at the start."""

    api_key: str
    api_secret: str
    session_token: str
    user_address: str


class Exchange:
    """All of spec.md behind two calls: `receive` a request, then `answer` it."""

    def __init__(self, settings: SandboxSettings, system: System, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._registry = Registry(store, settings.secret_is)
        self.conditions = Conditions(settings, system)
        self.journal = Journal()
        self.streams = Streams()
        self._market = Market(store)
        self._accounts = Accounts(settings.usdc, self._market, store)
        desks = self._build_desks(system)
        self._desks = desks
        self._doorman = Doorman(self._registry, desks.passkeys, settings)
        self._routes = build_routes(desks, settings)
        messages = build_stream_routes(desks)
        self._router, self._stream_router = Router(self._routes), Router(messages)
        self.conditions.serve(frozenset(_calls((*self._routes, *messages))))

    def _build_desks(self, system: System) -> Desks:
        settings, registry = self._settings, self._registry
        accounts = self._accounts
        next_id = Numbering(self._store, "order_id").next_id
        sessions = SessionDesk(registry, settings, system)
        keys = KeyDesk(registry, settings, system)
        return Desks(
            keys=keys,
            sessions=sessions,
            passkeys=PasskeyDesk(settings, system.token),
            orders=OrderDesk(accounts, settings, next_id, self.streams),
            positions=PositionDesk(accounts, settings, next_id, self.streams),
            spot=SpotDesk(accounts, next_id, self.streams),
            wallet=WalletDesk(accounts),
            market=MarketDesk(self._market, accounts, self.streams),
            streams=StreamDesk(self.streams),
            conditions=self.conditions,
            users=UserDesk(registry, sessions, accounts, system),
            key_control=KeyControl(registry, keys),
            journal=self.journal,
            reset=self._reset,
        )

    @cached_property
    def _document(self) -> bytes:
        return build_document(self._routes, self._settings, DOCUMENT_VERSION)

    def make_credentials(self) -> Credentials:
        """Give the ready-made user a new session, and the same key as long as it works.

        The user is the database's first. A database without one gets a user who has done all in the app.
        """
        now = self.conditions.now()
        address = next(iter(self._registry.users), None) or self._desks.users.add(NewUser())
        key = self._ready_made_key(address, now)
        session = self._desks.sessions.grant(address, now)
        self._registry.mark_start()
        return Credentials(key.api_key, key.secret, session.session_token, address)

    def _ready_made_key(self, address: str, now: Moment) -> Key:
        """Find the user's ready-made key, or make one for everything where it was revoked or renamed."""
        for live in self._registry.keys_of(address):
            key = live.record
            if key.label == READY_MADE and not key.is_revoked and not key.is_expired(now.server_ms):
                return key
        options = KeyOptions(READY_MADE, PERMISSIONS, (), None)
        return self._desks.keys.make(address, options, now, "127.0.0.1")

    def receive(self, request: Request) -> Receipt | None:
        """Write a request down. None for calls that are the sandbox's own."""
        if request.path.startswith(f"{CONTROL}/") or request.path == OPENAPI_PATH:
            return None
        return self.write_down(request)

    def write_down(self, request: Request) -> Receipt:
        """Write a request or a message down."""
        return self.journal.receive(request, self._look_up(request), self.conditions.now())

    def enter(self, receipt: Receipt) -> Callable[[], None] | Reply:
        """Count a request against the rate limit: what to call at its end, or the 429."""
        if receipt.found and not receipt.found.route.counts:
            return lambda: None
        gate, request = self.conditions.gate, receipt.request
        cost = gate.cost(request.method, receipt.template, request.path)
        try:
            return gate.enter(self._caller(request), cost, receipt.now)
        except ApiError as error:
            return self._error_reply(error, receipt.now)

    def strike(self, receipt: Receipt) -> Fault | None:
        """Draw the fault that this request will meet, if any."""
        request = receipt.request
        fault = self.conditions.plan.strike(request.method, receipt.template, request.path)
        receipt.fault = fault.kind if fault else None
        return fault

    def answer(self, request: Request, now: Moment, found: Found | None = None) -> Reply:
        """Answer a request; never raises. `found` is its route, where it has been looked for before."""
        try:
            if request.path == OPENAPI_PATH and request.method in {"GET", "HEAD"}:
                return Reply(200, self._document, "ok", _dated(now))
            return _ok(self._execute(request, now, found), now)
        except ApiError as error:
            return self._error_reply(error, now)
        except Exception as error:
            logger.error("%s %s failed: %r", request.method, request.path, error)  # noqa: TRY400 - see below
            logger.debug("The traceback", exc_info=error)  # for those who asked for it
            return self._error_reply(ApiError("internal"), now)

    def refuse(self, error: ApiError) -> Reply:
        """Make the reply to something that never became a request."""
        return self._error_reply(error, self.conditions.now())

    def flush(self) -> None:
        """Write what was batched; to be called at the end."""
        self._registry.flush()

    def _reset(self, _: Call[Nothing]) -> Reset:
        """Put everything back to how it was at the start; all accounts are as new."""
        desks = self._desks
        self._registry.reset()
        self._accounts.reset()
        self._market.reset()
        self.conditions.reset()
        desks.sessions.reset()
        desks.passkeys.reset()
        desks.keys.is_available = True
        self.streams.end_all(SERVICE_RESTART, "reset")
        return Reset(since=self.journal.forget())

    def _execute(self, request: Request, now: Moment, found: Found | None) -> BaseModel:
        found = found or self._find(request)
        address = self._doorman.admit(found.route.access, Attempt(request, found.params, now))
        value = self._read(found, request)
        named = getattr(value, "user_address", None)
        if address and named is not None:
            check_same_address(named, address)
        reply = found.route.call(Call(now, address, request.client_ip, found.params, value, request.stream))
        self._accounts.save()
        self.streams.publish(lambda api_key: self._registry.live_key(api_key, now.server_ms) is not None)
        return reply

    def _find(self, request: Request) -> Found:
        router = self._router if request.stream is None else self._stream_router
        return router.find(request.method, request.path)

    def _read(self, found: Found, request: Request) -> Any:
        if found.route.reads_body:
            body = request.body if request.stream is None else input_of(request.body)
            return read_body(found.route.takes, body, self._settings.unknown_fields)
        return read_query(found.route.takes, request.target.partition("?")[2])

    def _look_up(self, request: Request) -> Found | None:
        try:
            return self._find(request)
        except ApiError:  # `answer` meets it again, and says so
            return None

    def _caller(self, request: Request) -> str:
        """Name who shares a limit. Unknown keys count by IP, so that inventing keys gains nothing."""
        api_key = request.header(KEY_HEADER)
        names = {
            "all": "",
            "ip": request.client_ip,
            "key": api_key if api_key in self._registry.keys else request.client_ip,
        }
        return names[self._settings.limit_by] or ""

    def _error_reply(self, error: ApiError, now: Moment) -> Reply:
        at = iso(now.server_ms) if self._settings.error_timestamp == "iso" else now.server_ms
        body = json.dumps({"detail": error.detail, "timestamp": at}).encode()
        return Reply(error.status, body, error.slug, _dated(now) | error.headers)


def _ok(value: BaseModel, now: Moment) -> Reply:
    order_id = getattr(value, "order_id", None)
    return Reply(200, value.model_dump_json().encode(), "ok", _dated(now), order_id)


def _calls(routes: Sequence[Route]) -> Iterator[str]:
    """Yield what can be limited and struck, each as `METHOD /template`."""
    for route in routes:
        if not route.template.startswith(f"{CONTROL}/"):
            yield f"{route.method} {route.template}"
            if route.method == "GET":
                yield f"HEAD {route.template}"


def _dated(now: Moment) -> dict[str, str]:
    """Give the Date header by the exchange's own clock, skew and all."""
    return {"Date": http_date(now.server_ms // 1000)}
