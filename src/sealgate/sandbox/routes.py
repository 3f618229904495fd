"""The table of all routes: the one place that says what the sandbox serves."""

from collections.abc import Callable
from dataclasses import dataclass

from sealgate.sandbox.access import Access
from sealgate.sandbox.control import Conditions, KeyControl, UserDesk
from sealgate.sandbox.journal import Journal
from sealgate.sandbox.keys import KeyDesk
from sealgate.sandbox.market_desk import MarketDesk
from sealgate.sandbox.message import Call
from sealgate.sandbox.models import control, keys, streams, trading
from sealgate.sandbox.models.wire import Nothing
from sealgate.sandbox.orders import OrderDesk
from sealgate.sandbox.positions import PositionDesk
from sealgate.sandbox.router import Route
from sealgate.sandbox.sessions import PasskeyDesk, SessionDesk
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.signature import PREFIX
from sealgate.sandbox.spot import SpotDesk
from sealgate.sandbox.stream import STREAM_PATH
from sealgate.sandbox.stream_desk import LOGIN, WS, StreamDesk
from sealgate.sandbox.wallet import WalletDesk

CONTROL = "/_sandbox"

ORDER_ROWS = (
    "off_tick",
    "below_minimum",
    "size_invalid",
    "price_invalid",
    "symbol_unsupported",
    "halted",
    "needs_transfer",
)


@dataclass(frozen=True, slots=True)
class Desks:
    """All who answer calls."""

    keys: KeyDesk
    sessions: SessionDesk
    passkeys: PasskeyDesk
    orders: OrderDesk
    positions: PositionDesk
    spot: SpotDesk
    wallet: WalletDesk
    market: MarketDesk
    streams: StreamDesk
    conditions: Conditions
    users: UserDesk
    key_control: KeyControl
    journal: Journal
    reset: Callable[[Call[Nothing]], control.Reset]


def build_routes(desks: Desks, settings: SandboxSettings) -> tuple[Route, ...]:
    """Bind every route of HTTP to its desk."""
    return (
        *_key_routes(desks, settings),
        *_public_routes(desks, settings),
        *_trading_routes(desks),
        *_app_routes(desks),
        *_condition_routes(desks),
        *_control_routes(desks),
    )


# One route a line, as far as lines go.
# fmt: off
def _key_routes(desks: Desks, settings: SandboxSettings) -> tuple[Route, ...]:
    every, one = f"{PREFIX}/api-keys", f"{PREFIX}/api-keys/{{api_key}}"
    values, user = ("invalid_permission", "invalid_ip"), ("not_onboarded", "not_traded")
    down, unknown = ("key_system_down",), ("key_unknown", "key_system_down")
    step_up, session, public = Access.PASSKEY, Access.SESSION, Access.PUBLIC
    desk, handshake = desks.keys, desks.sessions.handshake
    return (
        Route("POST", every, step_up, keys.CreateKey, keys.CreatedKey, desk.create,
              (*values, "key_limit", *user, *down)),
        Route("GET", every, session, Nothing, keys.KeyList, desk.list_keys, down),
        Route("DELETE", f"{every}/all", step_up, Nothing, keys.RevokedKeys, desk.revoke_all, down),
        Route("PATCH", one, step_up, keys.UpdateKey, keys.UpdatedKey, desk.update,
              (*values, *user, *unknown)),
        Route("DELETE", one, step_up, Nothing, keys.RevokedKey, desk.revoke, unknown),
        Route("GET", f"{one}/audit", session, keys.AuditQuery, keys.AuditLog, desk.audit, unknown),
        Route(settings.handshake_method, f"{PREFIX}/user/handshake", public, keys.Handshake,
              keys.SessionGrant, handshake, ("handshake_limited", "user_unknown")),
    )


def _public_routes(desks: Desks, settings: SandboxSettings) -> tuple[Route, ...]:
    lists = Access.PUBLIC if settings.public_symbols else Access.READ
    spot, spot_list, market = f"{PREFIX}/spot/symbols", trading.SpotSymbolList, desks.market
    return (
        Route("GET", f"{PREFIX}/time", Access.PUBLIC, Nothing, trading.ServerTime, _time),
        Route("GET", f"{PREFIX}/symbols/list", lists, Nothing, trading.SymbolList, market.symbols),
        Route("GET", f"{spot}/list", lists, Nothing, spot_list, market.pairs),
        Route("GET", spot, lists, Nothing, spot_list, market.pairs),
        Route("GET", STREAM_PATH, Access.PUBLIC, Nothing, streams.Upgrade, desks.streams.open,
              ("upgrade_required",)),
    )


def _trading_routes(desks: Desks) -> tuple[Route, ...]:
    order, user, reply = f"{PREFIX}/order", f"{PREFIX}/user", trading.OrderReply
    trade, read = Access.TRADE, Access.READ
    orders, held, spot = desks.orders, desks.positions, desks.spot
    return (
        Route("POST", order, trade, trading.PlaceOrder, reply, orders.place,
              (*ORDER_ROWS, "margin_short_to_place")),
        Route("POST", f"{order}/modify", trade, trading.ModifyOrder, reply, orders.modify,
              (*ORDER_ROWS, "margin_short", "order_gone")),
        Route("POST", f"{order}/cancel", trade, trading.CancelOrder, reply, orders.cancel, ("order_gone",)),
        Route("DELETE", f"{order}/{{order_id}}", trade, Nothing, reply, orders.cancel_by_path,
              ("order_gone",)),
        Route("GET", f"{user}/{{address}}/openOrders", read, trading.OpenOrdersQuery, trading.OpenOrders,
              orders.open_orders),
        Route("GET", f"{user}/{{addr}}/positions", read, Nothing, trading.Positions, held.list_positions),
        Route("POST", f"{PREFIX}/position/close", trade, trading.ClosePosition, trading.ClosedPosition,
              held.close, ("no_position", "size_exceeds", "size_invalid", "symbol_unsupported")),
        Route("POST", f"{PREFIX}/leverage", trade, trading.SetLeverage, trading.LeverageReply,
              held.set_leverage, ("leverage_exceeds", "cross_refused", "margin_short", "symbol_unsupported")),
        Route("POST", f"{PREFIX}/spot/order", trade, trading.SpotOrder, reply, spot.order,
              ("spot_unknown", "spot_short", "size_invalid", "below_minimum")),
        Route("GET", f"{PREFIX}/spot/balance/{{address}}", read, Nothing, trading.SpotBalance, spot.balance),
    )


def _app_routes(desks: Desks) -> tuple[Route, ...]:
    app, reply, desk = Access.PASSKEY, trading.WalletReply, desks.wallet
    return (
        Route("POST", f"{PREFIX}/deposit", app, trading.Deposit, reply, desk.deposit, ("deposit_small",)),
        Route("POST", f"{PREFIX}/withdraw", app, trading.Withdraw, reply, desk.withdraw,
              ("balance_short", "withdrawal_signature")),
    )


def _condition_routes(desks: Desks) -> tuple[Route, ...]:
    limit, clock, faults = f"{CONTROL}/limit", f"{CONTROL}/clock", f"{CONTROL}/faults"
    public, now = Access.PUBLIC, desks.conditions
    return (
        Route("PUT", limit, public, control.Limit, control.Limit, now.set_limit),
        Route("DELETE", limit, public, Nothing, control.Limit, now.reset_limit),
        Route("PUT", clock, public, control.Clock, control.Clock, now.set_clock),
        Route("DELETE", clock, public, Nothing, control.Clock, now.reset_clock),
        Route("PUT", faults, public, control.Faults, control.Faults, now.set_faults),
        Route("DELETE", faults, public, Nothing, control.Faults, now.reset_faults),
    )


def _control_routes(desks: Desks) -> tuple[Route, ...]:
    public, users, key = Access.PUBLIC, f"{CONTROL}/users", desks.key_control
    return (
        Route("POST", users, public, control.NewUser, control.UserGrant, desks.users.create),
        Route("PATCH", f"{users}/{{address}}", public, control.ChangeUser, control.UserState,
              desks.users.change, ("user_unknown",)),
        Route("PATCH", f"{CONTROL}/keys/{{api_key}}", public, control.ChangeKey, control.KeyState,
              key.change, ("key_unknown",)),
        Route("PUT", f"{CONTROL}/key_system", public, control.KeySystem, control.KeySystem, key.switch),
        Route("POST", f"{CONTROL}/passkey", Access.SESSION, Nothing, control.PasskeyGrant,
              desks.passkeys.issue),
        Route("PUT", f"{CONTROL}/market", public, control.MarketChange, control.MarketReply,
              desks.market.change,
              ("price_invalid", "off_tick", "symbol_unsupported", "size_invalid", "order_gone")),
        Route("DELETE", f"{CONTROL}/streams", public, streams.EndStreams, streams.EndedStreams,
              desks.streams.end),
        Route("POST", f"{CONTROL}/reset", public, Nothing, control.Reset, desks.reset),
        Route("GET", f"{CONTROL}/journal", public, control.JournalQuery, control.JournalReply,
              desks.journal.since),
    )


def build_stream_routes(desks: Desks) -> tuple[Route, ...]:
    """Bind every kind of message to its desk. Orders alone are counted against the rate limit."""
    order, trade, reply = f"{STREAM_PATH}/order", Access.TRADE, trading.OrderReply
    desk, orders = desks.streams, desks.orders
    subscription, subscribed = streams.Subscription, streams.Subscribed
    return (
        Route(WS, f"{STREAM_PATH}/{LOGIN}", Access.LOGIN, streams.Login, streams.LoggedIn, desk.login,
              counts=False),
        Route(WS, f"{STREAM_PATH}/subscribe", Access.READ, subscription, subscribed, desk.subscribe,
              counts=False),
        Route(WS, f"{STREAM_PATH}/unsubscribe", Access.READ, subscription, subscribed, desk.unsubscribe,
              counts=False),
        Route(WS, f"{STREAM_PATH}/ping", Access.PUBLIC, Nothing, trading.ServerTime, desk.ping, counts=False),
        Route(WS, f"{order}.place", trade, trading.PlaceOrder, reply, orders.place),
        Route(WS, f"{order}.modify", trade, trading.ModifyOrder, reply, orders.modify),
        Route(WS, f"{order}.cancel", trade, trading.CancelOrder, reply, orders.cancel),
    )
# fmt: on


def _time(call: Call[Nothing]) -> trading.ServerTime:
    """Tell the server's time."""
    return trading.ServerTime(server_time=call.now.server_ms)
