"""Checks across tables: each is a small rule that looks at the whole tree and yields problems."""

from collections.abc import Iterable, Iterator, Mapping

from sealgate.config.addresses import Address, family_name, is_ip
from sealgate.config.names import STRANGER, STRANGERS_LABEL, SettingPath
from sealgate.config.pools import route_pairs
from sealgate.config.problems import Problem
from sealgate.config.settings import Policy
from sealgate.config.tree import Config, ExchangeConfig
from sealgate.machine.nearest import nearest
from sealgate.venues import streams
from sealgate.venues.key_kinds import Kind
from sealgate.venues.limit_rules import pairs_named, route_names
from sealgate.venues.routes import RouteTable

# The settings that make two exchanges of one base URL.
_WAY = ("prefix", "source", "proxy", "headers")


def inconsistencies(config: Config) -> list[Problem]:
    """Return every problem that cannot be seen in a single value."""
    return [problem for check in _CHECKS for problem in check(config)]


def _has_a_key(config: Config) -> Iterator[Problem]:
    if not config.keys:
        text = "names no key; add [keys.main] with api_key and secret, or set SEALGATE_KEYS__MAIN__API_KEY"
        yield Problem(("keys",), text)


def _exchanges_replace_the_one(config: Config) -> Iterator[Problem]:
    if config.exchanges:
        for name in sorted({"venue", "base_url"} & config.model_fields_set):
            if getattr(config, name) is not None:
                tables = " or ".join(f"[exchanges.{exchange}]" for exchange in config.exchanges)
                text = f"cannot be combined with [exchanges]; write it below {tables}"
                yield Problem((name,), text)


def _environments_are_known(config: Config) -> Iterator[Problem]:
    for exchange in config.served.values():
        name, venue = exchange.environment, exchange.venue
        there = venue.environments.get(name)
        if not name:
            continue
        if not venue.environments:
            is_common = bool(exchange.at) and config.environment == name
            fix = f'write environment = "" below [exchanges.{exchange.name}]' if is_common else "remove it"
            text = f"has no effect, because the file of the venue {venue.name} has no environments; {fix}"
            yield Problem((*exchange.at, "environment"), text)
        elif there is None:
            kind = f"an environment of the venue {venue.name}"
            text = f"names {name}, {_not_among(kind, name, venue.environments)}"
            yield Problem((*exchange.at, "environment"), text)
        elif there.base_url and str(exchange.base_url) != there.base_url:
            text = f"cannot be combined with environment, which leads to {there.base_url}; remove one of them"
            yield Problem((*exchange.at, "base_url"), text)


def _keys_know_their_exchanges(config: Config) -> Iterator[Problem]:
    for alias, key in config.keys.items():
        path = ("keys", alias)
        if key.exchange and key.exchanges:
            yield Problem((*path, "exchanges"), "cannot be combined with exchange; keep one of the two")
        elif not config.exchanges:
            for setting in ("exchange", "exchanges"):
                if getattr(key, setting):
                    text = "has no effect, because there are no [exchanges.NAME]; remove it"
                    yield Problem((*path, setting), text)
        elif not key.exchange and not key.exchanges:
            names = " or ".join(f'"{name}"' for name in config.exchanges)
            text = f"names no exchange; write exchange = {names}"
            yield Problem((*path, "exchange"), text)
        else:
            for name in config.exchanges_of(alias):
                if name not in config.exchanges:
                    text = f"names {name}, {_not_among('an exchange', name, config.exchanges)}"
                    yield Problem((*path, "exchange" if key.exchange else "exchanges"), text)


def _exchanges_have_keys(config: Config) -> Iterator[Problem]:
    """Look at the exchanges once the keys are right: a key with a wrong or no exchange may belong there."""
    if config.exchanges and config.keys and not any(_keys_know_their_exchanges(config)):
        for name, exchange in config.served.items():
            if not exchange.keys:
                text = f'has no key; write exchange = "{name}" in one of [keys.NAME], or remove the exchange'
                yield Problem(exchange.at, text)


def _exchanges_are_different(config: Config) -> Iterator[Problem]:
    """Refuse two tables for one exchange: it counts the requests of both together.

    Two products of an exchange count as two exchanges, and so does one exchange reached from two local
    addresses.
    """
    earlier: list[ExchangeConfig] = []
    for exchange in config.served.values():
        same = next((one for one in earlier if _is_same(one, exchange)), None)
        if same is not None:
            text = f"is the same as exchanges.{same.name}; remove one, and give its keys to the other"
            yield Problem(exchange.at, text)
        earlier.append(exchange)


def _is_same(one: ExchangeConfig, other: ExchangeConfig) -> bool:
    # A dot at the end of a name does not change its address.
    address, there = (Address(each.base_url.host.rstrip("."), each.base_url.port) for each in (one, other))
    paths = {(each.base_url.path, each.venue.name) for each in (one, other)}
    ways = [[getattr(each.upstream, name) for name in _WAY] for each in (one, other)]
    return address.takes(there) and len(paths) == 1 and ways[0] == ways[1]


def _prefix_comes_once(config: Config) -> Iterator[Problem]:
    for exchange in config.served.values():
        prefix = exchange.upstream.prefix
        if prefix and exchange.base_url.path.endswith(prefix):
            text = f"ends in upstream.prefix, which bots' paths already have; remove {prefix}"
            yield Problem((*exchange.at, "base_url"), text)


def _keys_are_whole(config: Config) -> Iterator[Problem]:
    """Require a setting if any of the key's exchanges needs it, and refuse it if none does."""
    for alias, key in config.keys.items():
        venues = [exchange.venue for exchange in config.served.values() if alias in exchange.keys]
        schemes = [
            (venue.name, scheme)
            for venue in venues
            for kind, scheme in venue.schemes.items()
            if key.kind in {None, kind}
        ]
        for setting, form in (("api_key", '"…"'), ("passphrase", '"file:/path"'), ("uid", '"…"')):
            is_set = bool(getattr(key, setting))
            needing = [name for name, scheme in schemes if scheme.needs(setting)]
            if needing and not is_set:
                text = f"missing; keys of the venue {needing[0]} have one: write {setting} = {form}"
                yield Problem(("keys", alias, setting), text)
            is_used = needing or any(streams.use(venue.streams, setting) for venue in venues)
            if is_set and schemes and not is_used and setting != "api_key":
                names = " and ".join(dict.fromkeys(name for name, _ in schemes))
                yield Problem(("keys", alias, setting), f"has no effect: the venue {names} requires none")
        for venue in venues:
            if key.kind and key.kind not in venue.schemes:
                text = f"is not accepted by the venue {venue.name}; write {' or '.join(venue.schemes)}"
                yield Problem(("keys", alias, "kind"), text)
        if key.secret_passphrase and schemes and {scheme.kind for _, scheme in schemes} == {Kind.HMAC}:
            text = "has no effect: the secret of an HMAC key is not encrypted; remove it"
            yield Problem(("keys", alias, "secret_passphrase"), text)


def _windows_are_as_the_exchange_has_them(config: Config) -> Iterator[Problem]:
    """Refuse another window: with a shorter one, the gateway would call an order dead too early."""
    for exchange in config.served.values():
        venue = exchange.venue
        for alias, key in exchange.keys.items():
            if venue.fixes_window and key.recv_window_ms != venue.recv_window_ms:
                always = f"always accepts a timestamp for {venue.recv_window_ms} ms"
                text = f"differs from {venue.name}, which {always}; remove this setting"
                yield Problem(("keys", alias, "recv_window_ms"), text)


def _exchange_is_another(config: Config) -> Iterator[Problem]:
    own = {"listen.tcp": config.listen.tcp, "admin.tcp": config.admin.tcp, **_own_listeners(config)}
    for exchange in config.served.values():
        there = Address(exchange.base_url.host, exchange.base_url.port)
        taken = next((name for name, address in own.items() if address and address.takes(there)), None)
        if taken is not None:
            text = f"is this gateway itself ({taken}); write the exchange's URL"
            yield Problem((*exchange.at, "base_url"), text)


def _source_reaches_the_exchange(config: Config) -> Iterator[Problem]:
    for exchange in config.served.values():
        source, proxy = exchange.upstream.source, exchange.upstream.proxy
        name, host = ("base_url", exchange.base_url.host) if proxy is None else ("proxy", proxy.host)
        if source and is_ip(host) and family_name(host) != family_name(source):
            text = (
                f"is {family_name(source)}, but {name} is {family_name(host)}; write an address of the "
                "same kind"
            )
            yield Problem((*exchange.at, "upstream", "source"), text)


def _proxy_is_another(config: Config) -> Iterator[Problem]:
    own = {"listen.tcp": config.listen.tcp, "admin.tcp": config.admin.tcp, **_own_listeners(config)}
    for exchange in config.served.values():
        proxy, path = exchange.upstream.proxy, (*exchange.at, "upstream")
        if exchange.upstream.proxy_password is not None and (proxy is None or not proxy.user):
            text = "has no effect without a user; write it in proxy, as in http://USER@HOST:3128"
            yield Problem((*path, "proxy_password"), text)
        if proxy is None:
            continue
        there = Address(proxy.host, proxy.port)
        taken = next((name for name, address in own.items() if address and address.takes(there)), None)
        if taken is not None:
            text = f"is this gateway itself ({taken}); write the proxy's address"
            yield Problem((*path, "proxy"), text)


def _headers_sign_nothing(config: Config) -> Iterator[Problem]:
    for exchange in config.served.values():
        for name in exchange.upstream.headers:
            if exchange.venue.signs_with(name):
                text = f"is a header that the venue {exchange.venue.name} uses for signing; remove it"
                yield Problem((*exchange.at, "upstream", "headers", name), text)


def _own_listeners(config: Config) -> dict[str, Address]:
    """Return the listen addresses of single exchanges and bots, by setting."""
    return {own.setting: own.address for own in config.own_addresses}


def _listens(config: Config) -> Iterator[Problem]:
    if config.listen.tcp is None and config.listen.unix is None and not config.own_addresses:
        yield Problem(("listen", "tcp"), 'turns off the only address for bots; write "127.0.0.1:8787"')


def _a_group_is_let_in(config: Config) -> Iterator[Problem]:
    listen = config.listen
    is_for_group = listen.unix_mode == "0660"
    if is_for_group and listen.unix is None:
        yield Problem(("listen", "unix_mode"), "has no effect; name a socket in listen.unix")
    elif is_for_group and listen.unix_group is None:
        yield Problem(("listen", "unix_mode"), "admits a group; name it in listen.unix_group")
    elif listen.unix_group is not None and not is_for_group:
        yield Problem(("listen", "unix_group"), 'has no effect; set listen.unix_mode to "0660"')


def _tls_is_whole(config: Config) -> Iterator[Problem]:
    listen = config.listen
    if listen.tls_cert and not listen.tls_key:
        yield Problem(("listen", "tls_cert"), "has no key; name its file in listen.tls_key")
    if listen.tls_key and not listen.tls_cert:
        yield Problem(("listen", "tls_key"), "has no certificate; name its file in listen.tls_cert")
    if listen.client_ca and not listen.tls_cert:
        yield Problem(("listen", "client_ca"), "needs TLS; name listen.tls_cert and listen.tls_key")
    if listen.client_ca and not config.bots:
        yield Problem(("listen", "client_ca"), "names bots, but there are none; add [bots.NAME]")
    is_used = listen.tcp is not None or any(own.exchange for own in config.own_addresses)
    if listen.tls_cert and not is_used:
        yield Problem(("listen", "tls_cert"), "has no effect; listen.tcp is off")


def _listens_apart(config: Config) -> Iterator[Problem]:
    taken: dict[str, Address] = {}
    addresses = {"listen.tcp": config.listen.tcp, "admin.tcp": config.admin.tcp, **_own_listeners(config)}
    for setting, address in addresses.items():
        if address is None:
            continue
        other = next((name for name, one in taken.items() if one.takes(address)), None)
        if other is not None:
            yield Problem(tuple(setting.split(".")), f"is also the address of {other}; choose another port")
        taken[setting] = address


def _strangers_need_tokens(config: Config) -> Iterator[Problem]:
    for setting, address in {"listen.tcp": config.listen.tcp, **_own_listeners(config)}.items():
        if address and not address.is_loopback and not config.bots:
            text = "is reachable from other machines; add [bots.NAME] with a token, or listen on 127.0.0.1"
            yield Problem(tuple(setting.split(".")), text)


def _bots_prove_themselves(config: Config) -> Iterator[Problem]:
    owners: dict[int, str] = {}
    for name, bot in config.bots.items():
        is_known_by_itself = bot.token is not None or bot.uid is not None or bot.listen is not None
        if not is_known_by_itself and not config.listen.client_ca:
            text = "has no way to authenticate; add token, uid for listen.unix, or an address in listen"
            yield Problem(("bots", name), text)
        if bot.uid is None:
            continue
        if config.listen.unix is None:
            yield Problem(("bots", name, "uid"), "has no effect; name a socket in listen.unix")
        if owners.setdefault(bot.uid, name) != name:
            yield Problem(
                ("bots", name, "uid"), f"is also the uid of {owners[bot.uid]}; give each bot its own"
            )


def _bots_are_no_strangers(config: Config) -> Iterator[Problem]:
    for name in (STRANGER, STRANGERS_LABEL):
        if name in config.bots:
            text = "is the name for unauthenticated clients; choose another name for the bot"
            yield Problem(("bots", name), text)


def _local_bot_has_one_key(config: Config) -> Iterator[Problem]:
    for exchange in config.served.values():
        if len(exchange.keys) > 1 and not config.bots:
            at = f"valid at {exchange.name}, " if config.exchanges else ""
            text = f"names several keys, {at}but no bot chooses one; add [bots.NAME] with token and key"
            yield Problem(("keys",), text)
            return


def _bots_know_their_keys(config: Config) -> Iterator[Problem]:
    for name, bot in config.bots.items():
        if bot.key and bot.keys:
            yield Problem(("bots", name, "keys"), "cannot be combined with key; keep one of the two")
        elif not bot.key and not bot.keys and len(config.keys) > 1:
            yield Problem(("bots", name), f"chooses no key; add key, one of {_aliases(config)}")
        else:
            for alias in config.keys_of(name):
                if alias not in config.keys:
                    text = f"names {alias}, which is not a key; write one of {_aliases(config)}"
                    yield Problem(("bots", name, "key" if bot.key else "keys"), text)


def _policies_say_something(config: Config) -> Iterator[Problem]:
    for name, bot in config.bots.items():
        if "policy" in bot.model_fields_set or bot.policy.is_set:
            yield from _policy_says_something(bot.policy, ("bots", name, "policy"))
        usable = {
            exchange
            for alias in config.keys_of(name)
            if alias in config.keys
            for exchange in config.exchanges_of(alias)
        }
        for exchange, policy in bot.policies.items():
            path = ("bots", name, "policies", exchange)
            yield from _policy_says_something(policy, path)
            if exchange not in config.served:
                text = f"names {exchange}, {_not_among('an exchange', exchange, config.served)}"
                yield Problem(path, text)
            elif exchange not in usable:
                yield Problem(
                    path, f"has no effect, because no key of {name} is valid at {exchange}; remove it"
                )


def _policy_says_something(policy: Policy, path: SettingPath) -> Iterator[Problem]:
    symbols, sizes = policy.symbols, policy.max_size
    if policy.observe and not policy.is_set:
        yield Problem((*path, "observe"), "has no effect; add a rule, such as symbols")
    elif not policy.is_set:
        yield Problem(path, "has no rule, so it restricts nothing; add one, such as symbols")
    if symbols and isinstance(sizes, Mapping):
        for symbol in (one for one in symbols if one not in sizes):
            text = f"has no size for {symbol}, so every order in it would be refused; add one"
            yield Problem((*path, "max_size"), text)
        for symbol in (one for one in sizes if one not in symbols):
            text = "has no effect, because symbols does not allow it; add it there"
            yield Problem((*path, "max_size", symbol), text)


def _routes_are_inside(config: Config) -> Iterator[Problem]:
    for exchange in config.served.values():
        prefix = exchange.upstream.prefix
        for index, route in enumerate(exchange.routes):
            if not route.path.startswith(f"{prefix}/"):
                text = f"is outside upstream.prefix; begin the path with {prefix}/"
                yield Problem((*exchange.at, "routes", index, "match"), text)
            if (route.needs, route.lane, route.cost, route.share_s) == (None, None, None, None):
                text = "changes nothing; add needs, lane, cost or share_s"
                yield Problem((*exchange.at, "routes", index), text)


def _only_reads_are_shared(config: Config) -> Iterator[Problem]:
    for exchange in config.served.values():
        shared = [(at, route) for at, route in enumerate(exchange.routes) if route.share_s is not None]
        if not shared:  # the usual case; building the route table takes time
            continue
        table = RouteTable(exchange.venue.routes)
        for index, route in shared:
            path = (*exchange.at, "routes", index, "share_s")
            standing = table.find(route.method, route.path.removeprefix(exchange.upstream.prefix))
            if not standing.is_shareable:
                yield Problem(path, "has no effect, because each bot needs its own stream key")
            elif not (standing.is_read if route.needs is None else route.needs == "read"):
                fix = 'add needs = "read" if the call changes nothing at the exchange, else remove share_s'
                text = f"applies only to reads; {fix}"
                yield Problem(path, text)


def _known_is_of_all_requests(config: Config) -> Iterator[Problem]:
    for exchange in config.served.values():
        venue = exchange.venue
        if exchange.limits.known and venue.limits.whole is None:
            first, *others = (pool.name for pool in venue.limits.pools)
            text = (
                f"the venue {venue.name} has no pool for all requests; write it as known in "
                f"[limits.pools.{first}]" + (f", or of one of {', '.join(others)}" if others else "")
            )
            yield Problem((*exchange.at, "limits", "known"), text)


def _pools_are_known(config: Config) -> Iterator[Problem]:
    for exchange in config.served.values():
        venue = exchange.venue
        names = [pool.name for pool in venue.limits.pools]
        pairs = route_pairs(venue, exchange.routes) if exchange.limits.pools else frozenset()
        for name, pool in exchange.limits.pools.items():
            path = (*exchange.at, "limits", "pools", name)
            if name not in names and pool.scope is None:
                near = nearest(name, names)
                fix = f"did you mean {near}?" if near else f"write one of {', '.join(names)}."
                yield Problem(path, f"is not a pool of the venue {venue.name}; {fix} A new pool needs scope")
            for index, route in enumerate(pool.routes or ()):
                if not pairs_named(route, pairs, venue.prefix):
                    near = nearest(route, route_names(pairs, venue.prefix))
                    fix = f"did you mean {near}? Else add" if near else "add"
                    text = f"is not a route of the venue {venue.name}; {fix} it to [[routes]] as `match`"
                    yield Problem((*path, "routes", index), text)


def _aliases(config: Config) -> str:
    return ", ".join(config.keys) or "those under [keys]"


def _not_among(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name, with the known ones."""
    names = list(known)
    near = nearest(name, names)
    return f"which is not {kind}; " + (
        f"did you mean {near}?" if near else f"write one of {', '.join(names)}"
    )


_CHECKS = (
    _has_a_key,
    _exchanges_replace_the_one,
    _environments_are_known,
    _keys_know_their_exchanges,
    _exchanges_have_keys,
    _exchanges_are_different,
    _keys_are_whole,
    _windows_are_as_the_exchange_has_them,
    _prefix_comes_once,
    _exchange_is_another,
    _source_reaches_the_exchange,
    _proxy_is_another,
    _headers_sign_nothing,
    _listens,
    _listens_apart,
    _a_group_is_let_in,
    _tls_is_whole,
    _strangers_need_tokens,
    _bots_prove_themselves,
    _bots_are_no_strangers,
    _local_bot_has_one_key,
    _bots_know_their_keys,
    _policies_say_something,
    _routes_are_inside,
    _only_reads_are_shared,
    _known_is_of_all_requests,
    _pools_are_known,
)
