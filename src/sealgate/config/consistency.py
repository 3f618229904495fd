"""Checks across tables, each a small rule that looks at the whole tree and yields what is wrong."""

from collections.abc import Iterator, Mapping

from sealgate.config.addresses import Address
from sealgate.config.names import STRANGER, STRANGERS_LABEL
from sealgate.config.problems import Problem
from sealgate.config.settings import Config
from sealgate.venues.routes import RouteTable


def inconsistencies(config: Config) -> list[Problem]:
    """Return every problem that a single value does not show."""
    return [problem for check in _CHECKS for problem in check(config)]


def _has_a_key(config: Config) -> Iterator[Problem]:
    if not config.keys:
        text = "names no key; add [keys.main] with api_key and secret, or set SEALGATE_KEYS__MAIN__API_KEY"
        yield Problem(("keys",), text)


def _prefix_comes_once(config: Config) -> Iterator[Problem]:
    prefix = config.upstream.prefix
    if prefix and config.base_url.path.endswith(prefix):
        yield Problem(
            ("base_url",), f"ends in upstream.prefix, which bots' paths have already; leave out {prefix}"
        )


def _keys_are_whole(config: Config) -> Iterator[Problem]:
    signing, name = config.venue.signing, config.venue.name
    for alias, key in config.keys.items():
        for setting, form in (("passphrase", '"file:/path"'), ("uid", '"…"')):
            is_set = bool(getattr(key, setting))
            if signing.needs(setting) and not is_set:
                text = f"missing; keys of the venue {name} have one: write {setting} = {form}"
                yield Problem(("keys", alias, setting), text)
            if is_set and not signing.needs(setting):
                yield Problem(("keys", alias, setting), f"has no effect: the venue {name} requires none")


def _windows_are_as_the_exchange_has_them(config: Config) -> Iterator[Problem]:
    """By a shorter one, an order would be called dead while the exchange still accepts it."""
    venue = config.venue
    for alias, key in config.keys.items():
        if venue.fixes_window and key.recv_window_ms != venue.recv_window_ms:
            always = f"always {venue.recv_window_ms} ms; leave it out"
            text = f"is not how long {venue.name} takes a timestamp, {always}"
            yield Problem(("keys", alias, "recv_window_ms"), text)


def _exchange_is_another(config: Config) -> Iterator[Problem]:
    exchange = Address(config.base_url.host, config.base_url.port)
    for setting, own in (("listen.tcp", config.listen.tcp), ("admin.tcp", config.admin.tcp)):
        if own is not None and own.takes(exchange):
            text = f"is this gateway itself ({setting}), which would send to itself; write the exchange's URL"
            yield Problem(("base_url",), text)
            return


def _listens(config: Config) -> Iterator[Problem]:
    if config.listen.tcp is None and config.listen.unix is None:
        yield Problem(("listen", "tcp"), 'turns off the only address for bots; write "127.0.0.1:8787"')


def _a_group_is_let_in(config: Config) -> Iterator[Problem]:
    listen = config.listen
    is_for_group = listen.unix_mode == "0660"
    if is_for_group and listen.unix is None:
        yield Problem(("listen", "unix_mode"), "has no effect; name a socket in listen.unix")
    elif is_for_group and listen.unix_group is None:
        yield Problem(("listen", "unix_mode"), "lets a group in; name it in listen.unix_group")
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
    if listen.tls_cert and listen.tcp is None:
        yield Problem(("listen", "tls_cert"), "has no effect; listen.tcp is turned off")


def _listens_apart(config: Config) -> Iterator[Problem]:
    if config.listen.tcp and config.listen.tcp.port and config.listen.tcp == config.admin.tcp:
        yield Problem(("admin", "tcp"), "is the address of listen.tcp; choose another port")


def _strangers_need_tokens(config: Config) -> Iterator[Problem]:
    if config.listen.tcp and not config.listen.tcp.is_loopback and not config.bots:
        text = "is reachable from other machines; add [bots.NAME] with a token, or listen on 127.0.0.1"
        yield Problem(("listen", "tcp"), text)


def _bots_prove_themselves(config: Config) -> Iterator[Problem]:
    owners: dict[int, str] = {}
    for name, bot in config.bots.items():
        if bot.token is None and bot.uid is None and not config.listen.client_ca:
            yield Problem(("bots", name), "has no way to authenticate; add token, or uid for listen.unix")
        if bot.uid is None:
            continue
        if config.listen.unix is None:
            yield Problem(("bots", name, "uid"), "has no effect; name a socket in listen.unix")
        if owners.setdefault(bot.uid, name) != name:
            yield Problem(("bots", name, "uid"), f"is that of {owners[bot.uid]}, too; give each its own")


def _bots_are_no_strangers(config: Config) -> Iterator[Problem]:
    for name in (STRANGER, STRANGERS_LABEL):
        if name in config.bots:
            text = "is the name of requests without a valid token; choose another name for the bot"
            yield Problem(("bots", name), text)


def _local_bot_has_one_key(config: Config) -> Iterator[Problem]:
    if len(config.keys) > 1 and not config.bots:
        text = "names several keys, but no bot chooses one; add [bots.NAME] with token and key"
        yield Problem(("keys",), text)


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
        symbols, sizes, path = bot.policy.symbols, bot.policy.max_size, ("bots", name, "policy")
        if bot.policy.observe and not bot.policy.is_set:
            yield Problem((*path, "observe"), "has no effect; add a rule, such as symbols")
        elif "policy" in bot.model_fields_set and not bot.policy.is_set:
            yield Problem(path, "has no rule, so it limits nothing; add one, such as symbols")
        if symbols and isinstance(sizes, Mapping):
            for symbol in (one for one in symbols if one not in sizes):
                text = f"has no size for {symbol}, so each order in it would be refused; add it"
                yield Problem((*path, "max_size"), text)
            for symbol in (one for one in sizes if one not in symbols):
                yield Problem(
                    (*path, "max_size", symbol), "has no effect, as symbols does not allow it; add it there"
                )


def _routes_are_inside(config: Config) -> Iterator[Problem]:
    prefix = config.upstream.prefix
    for index, route in enumerate(config.routes):
        if not route.path.startswith(f"{prefix}/"):
            text = f"is outside upstream.prefix; begin the path with {prefix}/"
            yield Problem(("routes", index, "match"), text)
        if (route.needs, route.lane, route.cost, route.share_s) == (None, None, None, None):
            yield Problem(("routes", index), "changes nothing; add needs, lane, cost or share_s")


def _only_reads_are_shared(config: Config) -> Iterator[Problem]:
    table = RouteTable(config.venue.routes)
    for index, route in enumerate(config.routes):
        if route.share_s is None:
            continue
        standing = table.find(route.method, route.path.removeprefix(config.upstream.prefix))
        if not standing.is_shareable:
            yield Problem(
                ("routes", index, "share_s"), "has no effect, as each bot needs a stream's key of its own"
            )
        elif not (standing.is_read if route.needs is None else route.needs == "read"):
            text = (
                'is for reads; add needs = "read" if the exchange changes nothing for it, else leave it out'
            )
            yield Problem(("routes", index, "share_s"), text)


def _aliases(config: Config) -> str:
    return ", ".join(config.keys) or "those under [keys]"


_CHECKS = (
    _has_a_key,
    _keys_are_whole,
    _windows_are_as_the_exchange_has_them,
    _prefix_comes_once,
    _exchange_is_another,
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
)
