"""Check this machine: files and their permissions, secrets, addresses, open files, the journal."""

import asyncio
import os
import shlex
import shutil
import socket
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from sealgate.config import Address, Config, ExchangeConfig
from sealgate.config.addresses import is_loopback
from sealgate.config.listing import toml_text
from sealgate.config.names import PREFIX
from sealgate.diagnose.vetting import vet_descriptors, vet_disk, vet_own_certificate
from sealgate.exchange.pool import ConnectionSlots
from sealgate.exchange.stamps import Nonces
from sealgate.keys.files import SecretError, wipe
from sealgate.keys.key import Secret, SigningKey
from sealgate.keys.parts import key_with, read_proxy_password, read_roster
from sealgate.keys.private_keys import is_another_key
from sealgate.keys.sources import read_secret
from sealgate.keys.wrong_secrets import Shape, in_words, shape_of
from sealgate.limits.claims import ONLY
from sealgate.limits.pool import label_of, name_in, subject_in
from sealgate.limits.snapshots import Snapshot, kept_in_words
from sealgate.machine.findings import Finding, Level, fail, ok, warn
from sealgate.machine.process import StartError, grantable
from sealgate.machine.system import System, random_token
from sealgate.orders.journal import JournalError
from sealgate.orders.journal.file import check_way
from sealgate.orders.journal.insight import look_into
from sealgate.orders.journal.learned import UNREAD_FIX
from sealgate.orders.journal.marks import LOST_FIX, WHAT_IS_LOST, Marks, places
from sealgate.orders.journal.nonces import FAR_FIX, FAR_S
from sealgate.request.rules import look_at_policy, policies_at
from sealgate.server.memory import nonces_place, subjects
from sealgate.server.opening import OPEN_WIRE, OPEN_WIRE_FIX
from sealgate.server.sockets import cannot_listen, check_admin, check_place
from sealgate.server.tls import certificate_life
from sealgate.venues.key_kinds import Kind
from sealgate.venues.routes import Permission
from sealgate.venues.venue import Venue

_PROOF = b"sealgate check: whether a private key is whole"
_ADD, _SET = "add this to the configuration", "set this variable for the gateway"


@dataclass(frozen=True)
class Known:
    """A key whose secret was read, and the shape of the secret."""

    key: SigningKey
    shape: Shape


def found_wrong(area: str, text: str, level: Level = Level.FAIL) -> Finding:
    """Return the line for an error whose text is `cause; fix`, or only a cause.

    If a user's name, for example of a file, contains the separator, it is in the cause.
    """
    cause, mark, fix = text.rpartition("; ")
    return Finding(area, level, cause, fix) if mark else Finding(area, level, text)


def said_of(exchange: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings with the name of their exchange."""
    return (replace(finding, exchange=exchange) for finding in findings)


def look_at_file(file: Path | None) -> Iterator[Finding]:
    """Yield a finding if others may write the configuration, which decides where signed requests go."""
    if file is None:
        return
    found = file.stat()
    if found.st_mode & stat.S_IWOTH:
        yield fail(
            "configuration",
            f"everyone can write to {file}, and so redirect signed requests",
            f"chmod 600 {file}",
        )
    elif found.st_uid not in (os.geteuid(), 0):
        yield warn("configuration", f"{file} belongs to user {found.st_uid}", f"chown {os.geteuid()} {file}")


def read_keys(
    config: Config, environ: Mapping[str, str], known: Mapping[str, dict[str, Known]]
) -> Iterator[Finding]:
    """Read the secrets of each key once, and yield a line for each.

    `known` are the exchanges by name; each gets the keys that are valid there.
    """
    for alias, key in config.keys.items():
        area, places = f"keys.{alias}", [name for name in known if alias in config.served[name].keys]
        if not places:
            continue
        try:
            secret = read_secret(key.secret, environ, config.cmd_env)
            try:
                for name in places:
                    signing_key = key_with(config, config.served[name], alias, secret, environ)
                    is_text = signing_key.sealer.signer.kind is Kind.HMAC
                    shape = shape_of(secret, key.api_key) if is_text else Shape()
                    known[name][alias] = Known(signing_key, shape)
            finally:
                wipe(secret)
        except SecretError as error:
            yield found_wrong(area, str(error))
            continue
        scheme = key.secret.partition(":")[0]
        place = key.secret if scheme != "cmd" else "a program's output"
        if shape.oddity:
            fix = "store only the secret, as ASCII text, unless this is really part of it"
            yield warn(area, f"the secret from {place} {shape.oddity}", fix)
        else:
            private = ", only by you" if scheme == "file" else ""
            yield ok(area, f"the secret is readable from {place}{private}")
        for name in places:
            yield from said_of(name, _look_at_kind(area, config.served[name].venue, known[name][alias].key))


def _look_at_kind(area: str, venue: Venue, key: SigningKey) -> Iterator[Finding]:
    """Test a private key by a signature, and yield the venue file's advice on keys of its kind."""
    scheme, signer = key.sealer.scheme, key.sealer.signer
    if signer.verifies is not None:
        if signer.verifies(_PROOF, signer.sign(_PROOF)):
            name = f"{in_words(signer.kind)}, fingerprint {key.sealer.fingerprint()}"
            yield ok(area, f"it is {name}; its public key verifies a signature that it made")
        else:
            fix = "copy the key again, or make a new one with `sealgate keys new --kind KIND`"
            yield fail(area, "its public key refuses a signature that the private key made", fix)
    elif len(venue.schemes) > 1:
        yield ok(area, "the secret is not a private key, so it is used for HMAC")
    if is_another_key(key.api_key, scheme, signer):
        fix = f"compare keys.{key.alias}.api_key and the secret with the exchange's list of keys"
        yield fail(area, "api_key is the public key of another private key", fix)
    if scheme.advice:
        yield found_wrong(area, scheme.advice, Level.WARN)
    if scheme.is_static:
        yield ok(area, f"{venue.title} receives the secret itself with each request")


def read_passwords(
    config: Config,
    exchanges: Iterable[ExchangeConfig],
    environ: Mapping[str, str],
    passwords: dict[str, Secret],
) -> Iterator[Finding]:
    """Read the passwords of proxies into `passwords`, by exchange, and yield a line for each."""
    for exchange in exchanges:
        area, reference = "upstream.proxy_password", exchange.upstream.proxy_password
        try:
            passwords[exchange.name] = read_proxy_password(exchange, environ, config.cmd_env)
        except SecretError as error:
            yield from said_of(exchange.name, [found_wrong(area, str(error))])
            continue
        if reference is not None:
            place = "a program's output" if reference.startswith("cmd:") else reference
            yield from said_of(exchange.name, [ok(area, f"the password is readable from {place}")])


def read_tokens(config: Config, environ: Mapping[str, str], file: Path | None) -> Iterator[Finding]:
    """Yield whether the bots' tokens can be read. `file` is the configuration file."""
    if not config.bots:
        who = "every program on this machine" if config.listen.tcp else "every program of this user"
        token = _beside(file, "grid.token")
        make = f"(umask 077; sealgate token new > {shlex.quote(token)})"
        fix = f"give each bot a token: run the first line below, then {_ADD if file else _SET}"
        lines = (make, *_to_paste(file, "bots.grid", "token", f"file:{token}"))
        yield warn("bots", f"no bots are configured: {who} may read and trade", fix, lines)
        return
    try:
        read_roster(config, environ)
    except SecretError as error:
        yield found_wrong("bots", str(error))
        return
    count, usual = len(config.bots), len(random_token())
    who = "1 bot configured; its" if count == 1 else f"{count} bots configured; their"
    yield ok("bots", f"{who} credentials are readable")
    for name, bot in config.bots.items():
        if bot.token is None:
            continue
        given = read_secret(bot.token, environ, config.cmd_env)
        length = len(given)
        wipe(given)
        if length < usual:  # it can be guessed
            text = f"the token has {length} characters; a random one has {usual}"
            yield warn(f"bots.{name}", text, "replace it with the output of `sealgate token new`")


def look_at_policies(config: Config, exchanges: Iterable[ExchangeConfig]) -> Iterator[Finding]:
    """Yield the policy of each bot at the exchanges where it has a key, and the routes that it closes."""
    for exchange in exchanges:
        for bot, policies in policies_at(config, exchange).items():
            may = frozenset(map(Permission, config.bots[bot].may))
            for policy in policies:
                yield from said_of(exchange.name, look_at_policy(exchange, bot, may, policy))


def look_at_certificate(config: Config) -> Iterator[Finding]:
    """Yield whether the bots' address can speak TLS, if configured."""
    if config.listen.tls_cert is None:
        return
    try:
        life = certificate_life(config.listen)
    except StartError as error:
        yield found_wrong("listen.tls_cert", str(error))
    else:
        if life is None:
            yield ok("listen.tls_cert", "the certificate matches its key")
        else:
            yield vet_own_certificate(*life, System().wall())


def look_at_addresses(config: Config, environ: Mapping[str, str], *, is_running: bool) -> Iterator[Finding]:
    """Yield whether each address is free; a running gateway already uses them."""
    addresses = {"listen.tcp": config.listen.tcp, "admin.tcp": config.admin.tcp}
    addresses |= {own.setting: own.address for own in config.own_addresses}
    for setting, address in addresses.items():
        if address is not None:
            yield (
                ok(setting, f"{address} is in use by the running gateway")
                if is_running
                else _bindable(setting, address)
            )
    for own in config.own_addresses:
        if own.bot:
            yield ok(own.setting, f"every program on this machine counts as {own.bot} there, without a token")
    if is_running:
        return
    try:
        check_admin(config.admin.unix, environ)
    except (StartError, OSError) as error:
        yield found_wrong("admin.unix", str(error))
    if (place := config.listen.unix) is not None:
        try:
            check_place(place, "listen.unix")
        except (StartError, OSError) as error:
            yield found_wrong("listen.unix", str(error))
        else:
            yield ok("listen.unix", f"{place} is free")


def _bindable(setting: str, address: Address) -> Finding:
    """Bind and release without listening, so that no bot can connect."""
    if address.port == 0:
        return ok(setting, "a free port is chosen at each start")
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        for family, kind, _, _, where in found:
            with closing(socket.socket(family, kind)) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(where)
    except OSError as error:
        return found_wrong(setting, str(asyncio.run(cannot_listen(address, setting, error))))
    return ok(setting, f"{address} is free")


def look_at_descriptors(config: Config) -> Iterator[Finding]:
    """Yield whether the system allows as many open files as the bots may need."""
    wanted = config.listen.max_connections
    upstreams = (ConnectionSlots(one.upstream.max_connections).all for one in config.served.values())
    limit, room = grantable(wanted, sum(upstreams))
    yield vet_descriptors(limit, room, wanted)


def _beside(file: Path | None, name: str) -> str:
    """Return the path of a file beside the configuration file, relative if in the working directory."""
    folder = Path.cwd() if file is None else file.absolute().parent
    return name if file is not None and folder == Path.cwd() else str(folder / name)


def _to_paste(file: Path | None, table: str, name: str, value: str) -> tuple[str, ...]:
    """Return the lines that make a setting: in the configuration file, or as a variable without a file."""
    if file is None:
        return (f"{PREFIX}{table}__{name}".replace(".", "__").upper() + f"={value}",)
    return f"[{table}]", f"{name} = {toml_text(value)}"


def look_at_journal(
    config: Config, environ: Mapping[str, str], learned: dict[str, Snapshot], configuration: Path | None
) -> Iterator[Finding]:
    """Yield lines on the journal; put its learned limits into `learned`, by place."""
    file = config.journal.file
    if file is None:
        text = "not set: after a crash, no record shows which orders were in flight, and halts are forgotten"
        lines = _to_paste(configuration, "journal", "file", _beside(configuration, "journal.db"))
        yield warn("journal", text, _ADD if configuration else _SET, lines)
        return
    try:
        check_way(file)
        lost = Marks(file, places(config, environ)).lost()
        if file.exists():
            yield from _opened(config, file, learned)
        elif lost is not None:
            yield warn("journal", f"{lost}, is missing: the next start forgets {WHAT_IS_LOST}", LOST_FIX)
        elif os.access(file.parent, os.W_OK | os.X_OK):
            yield ok("journal", f"{file} will be created at the first start")
        else:
            text = f"{file} cannot be created: its folder is not writable"
            yield fail("journal", text, "choose a writable path")
    except JournalError as error:
        yield found_wrong("journal", str(error))
    finding = vet_disk(str(file.parent), shutil.disk_usage(file.parent).free, config.journal.max_size)
    if finding is not None:
        yield finding


def _opened(config: Config, file: Path, learned: dict[str, Snapshot]) -> Iterator[Finding]:
    served = config.served.values()
    insight = look_into(file, {str(one.base_url) for one in served}, System().wall())
    if insight is None:
        yield ok("journal", f"{file} is empty; the first start will create its tables")
        return
    learned.update(insight.limits)
    user = "a gateway is using it" if insight.is_in_use else "no gateway is using it"
    if insight.in_doubt:
        fix = "look each up at the exchange: sealgate orders"
        yield warn("journal", f"{file} is intact; {user}; orders in doubt: {insight.in_doubt}", fix)
    else:
        yield ok("journal", f"{file} is intact; {user}; no orders are in doubt")
    if insight.unread:
        pools = f"{len(insight.unread)} of {len(insight.unread) + len(insight.limits)} pools"
        text = f"the learned limits of {pools} cannot be read"
        yield warn("journal", text, UNREAD_FIX)
    for exchange in served:
        for alias in exchange.keys:
            nonces = Nonces(exchange.venue.signing.nonce, str)
            mark = insight.nonces.get(nonces_place(exchange, alias), 0)
            if nonces.is_number and (ahead_s := nonces.ahead_s(mark, int(System().wall() * 1000))) > FAR_S:
                text = f"the nonces of {alias} are reserved up to {ahead_s:.0f} s ahead of this host's time"
                yield from said_of(exchange.name, [warn("journal", text, FAR_FIX)])


def remembered_limits(
    exchanges: Iterable[ExchangeConfig], learned: Mapping[str, Snapshot]
) -> Iterator[Finding]:
    """Yield the journal's learned limits of each key's pools, in words."""
    for exchange in exchanges:
        for alias in exchange.keys:
            of_key = subjects(exchange, alias)
            for place, kept in learned.items():
                if subject_in(place) not in of_key:
                    continue
                which = f"keys.{alias}" if name_in(place) in ONLY else f"keys.{alias}, {label_of(place)}"
                for words in kept_in_words(kept, 0.0):
                    yield from said_of(exchange.name, [ok("limits", f"{which}: {words} (from the journal)")])


def look_at_reach(config: Config) -> Iterator[Finding]:
    """Yield what an address for other machines lacks: encryption, and an accepted host name."""
    listen = config.listen
    addresses = {"listen.tcp": listen.tcp}
    addresses |= {own.setting: own.address for own in config.own_addresses}
    opened = [setting for setting, one in addresses.items() if one is not None and not one.is_loopback]
    for setting in opened if listen.tls_cert is None else ():
        yield warn(setting, OPEN_WIRE, OPEN_WIRE_FIX)
    if opened and all(is_loopback(host) for host in listen.hosts):
        text = f"{opened[0]} is open to other machines, but listen.hosts names only this one"
        yield warn(
            "listen.hosts",
            f"{text}: bots there get 421",
            ("add the host name that those bots use to listen.hosts"),
        )
    for own in config.own_addresses:
        if own.bot and own.address.host not in listen.hosts:
            text = f"lacks {own.address.host}: a bot that connects to {own.address} under this name gets 421"
            yield warn("listen.hosts", text, f'add "{own.address.host}" to it')
