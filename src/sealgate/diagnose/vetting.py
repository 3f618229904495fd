"""What is good enough: the bounds by which a check calls a clock, a certificate, a disk fine or not.

Times are epoch seconds, sizes bytes.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus

from sealgate.diagnose.diagnosis import Facts, Others, WholeReply, causes_of
from sealgate.exchange.refused_reads import ASK_WHETHER_SERVED, refused_unsigned
from sealgate.keys.key_audit import cannot_trade
from sealgate.keys.key_records import DAY_S, KeyRecord, KeyState, ListedKey
from sealgate.machine.findings import RENEW, Finding, Level, blamed, error_words, fail, ok, page_text, warn
from sealgate.venues.replies import Means, Verdict

_CERTIFICATE_WARN_S = 14 * DAY_S  # those of today live for 90 days and less, and are renewed before a third
_HOST_OFF_S = 1.0  # harmless to the gateway, but the log's times, and certificates, go by it
_LEAST_DISK = 16 * 1024**2
# OpenSSL's X509_V_ERR_…, x509_vfy.h
_CERTIFICATE_EXPIRED, _CERTIFICATE_EARLY = 10, 9
_CERTIFICATE_NAME = frozenset({62, 64})  # of a host, of an address
_CERTIFICATE_UNKNOWN = frozenset({18, 19, 20, 21})


def vet_clock(offset_s: float, error_s: float, recv_window_ms: int) -> Finding:
    """Judge the clock as `/time` shows it: `offset_s` is upstream minus this host, true to `error_s`."""
    bound_ms = max(1, math.ceil(error_s * 1000))
    text = f"the exchange's time is known to ±{bound_ms} ms"
    if error_s * 2000 > recv_window_ms:
        fix = "use a machine with a faster connection to the exchange, or a larger recv_window_ms"
        return fail("clock", f"{text}, not precise enough for a recv_window of {recv_window_ms} ms", fix)
    if abs(offset_s) > _HOST_OFF_S + error_s:
        side = "behind" if offset_s > 0 else "ahead"
        fix = "set this machine's clock (NTP): the log's times go by it"
        return warn(
            "clock",
            f"{text}; this machine's clock is {abs(offset_s):.1f} s {side}, which the gateway corrects",
            fix,
        )
    return ok("clock", f"{text}; this machine's clock is off by {round(offset_s * 1000):+d} ms")


def vet_keep_alive(announced_s: float | None, keep_alive_s: float) -> Finding | None:
    """Judge how long idle connections are kept by what the exchange announces, None where it is in order."""
    if announced_s is None or announced_s > keep_alive_s:
        return None
    text = f"the exchange closes idle connections after {announced_s:g} s, this is {keep_alive_s:g} s"
    fix = "lower this; until then the gateway goes by what the exchange says"
    return warn("upstream.keep_alive", text, fix)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was sent without a signature, such as "GET /time", and the reply."""

    request: str
    status: int
    verdict: Verdict

    def __str__(self) -> str:
        return f"{self.request} was answered {error_words(self.status, self.verdict.words).rstrip('.')}"

    @property
    def is_as_documented(self) -> bool:
        """Whether the venue's file knows such a reply: then it is most likely the exchange's."""
        return self.verdict.means is Means.DONE or bool(self.verdict.topic)


def vet_paths(clock: Finding, time: Asked, read: Asked, base_url: str, home: str) -> Iterator[Finding]:
    """Yield the lines of an exchange that has no such path of the time: `clock` alone would say too little.

    `read` is another path, asked for without a signature; `home` says where the exchange is, "" if unknown.
    """
    if read.status == HTTPStatus.NOT_FOUND:
        fix = (
            f"compare base_url with the exchange's documents{home}; then upstream.prefix, clock.path, --path"
        )
        yield fail("base_url", f"{base_url}: {time}, and {read}; is it the exchange's?", fix)
        yield clock
        return
    fix = f"compare base_url with the exchange's documents{home}; if it is right, correct clock.path"
    if read.is_as_documented:
        fix = "base_url seems to be right: look the path of the time up, and set clock.path"
    yield replace(clock, text=f"{time}, though {read}", fix=fix)


def vet_certificate(not_after: float, now: float) -> Finding:
    """Judge a certificate that was accepted, by its end."""
    left_s = not_after - now
    text = f"the certificate is valid until {day(not_after)}"
    if left_s < _CERTIFICATE_WARN_S:
        fix = "the exchange must renew it; see its status page"
        return warn("TLS", f"{text}, in {left_s / DAY_S:.0f} days", fix)
    return ok("TLS", text)


_SOON_S = 14 * 86400.0  # a certificate that is renewed by hand needs days of warning


def vet_own_certificate(starts: float, ends: float, now: float) -> Finding:
    """Judge the certificate that bots see, by its life; those that are renewed each day end soon, and may."""
    if now < starts:
        fix = f"this machine's clock says {day(now)}: set it if that is wrong, else wait"
        return fail("listen.tls_cert", f"the certificate is valid only from {day(starts)} on", fix)
    fix = "renew it; a running gateway loads the new files by itself"
    if now >= ends:
        return fail("listen.tls_cert", f"the certificate expired on {day(ends)}", fix)
    life = ends - starts
    text = f"the certificate matches its key, and is valid until {day(ends)}"
    return (
        warn("listen.tls_cert", text, fix)
        if ends - now < min(max(life / 10, _SOON_S), life / 3)
        else ok("listen.tls_cert", text)
    )


def refused_certificate(code: int, host: str, message: str, now: float) -> Finding:
    """Say why a certificate was refused: `code` and `message` are OpenSSL's."""
    if code in (_CERTIFICATE_EXPIRED, _CERTIFICATE_EARLY):
        state = "has expired" if code == _CERTIFICATE_EXPIRED else "is not valid yet"
        fix = f"this machine's clock says {day(now)}: set it if that is wrong, else wait for the exchange"
        return fail("TLS", f"the certificate of {host} {state}", fix)
    if code in _CERTIFICATE_NAME:
        fix = "correct the host in base_url: never send a key there as it is"
        return fail("TLS", f"the certificate is not for {host}", fix)
    if code in _CERTIFICATE_UNKNOWN:
        fix = "name its authority in upstream.ca_file if you know it, else do not trust this network"
        return fail("TLS", f"the certificate of {host} is signed by an unknown authority", fix)
    return fail("TLS", f"the certificate of {host} is refused ({message})", "see upstream.ca_file")


def vet_listed(area: str, key: ListedKey, may: frozenset[str], server_now: float) -> Finding:
    """Judge a key by the exchange's own list; `may` is what bots may do with it."""
    finding = vet_record(area, key.record, server_now)
    if finding.level is Level.OK and cannot_trade(key.permissions, may):
        fix = "give it the permission in the app, or take trade away here (bots.*.may)"
        return warn(area, "the key may not trade, though bots here may: their orders will be refused", fix)
    return finding


def vet_record(area: str, record: KeyRecord, server_now: float) -> Finding:
    """Judge a key by its record."""
    end = "without expiry" if record.expires_at is None else f"until {day(record.expires_at)}"
    state = record.state(server_now)
    if state is KeyState.ENDED:
        return fail(area, f"the key has expired ({end})", RENEW)
    if state is KeyState.INACTIVE:
        return fail(area, "the exchange lists the key as inactive", RENEW)
    if state is KeyState.ENDS_SOON:
        return warn(area, f"the session token works; the key expires soon: {end}", RENEW)
    return ok(area, f"the session token works; the key is active, {end}")


def vet_disk(folder: str, free: int, wanted: int) -> Finding | None:
    """Judge the space for the journal, None where there is enough."""
    text = f"{free // 1024**2} MiB are free in {folder}"
    if free < _LEAST_DISK:
        return fail("journal", text, "free space on that disk: orders are refused when it is full")
    if free < wanted:
        return warn("journal", f"{text}, less than journal.max_size", "free space, or lower journal.max_size")
    return None


def vet_descriptors(limit: int, room: int, wanted: int) -> Finding:
    """Judge the open files that the system grants: `room` bots of `wanted` can be connected."""
    if room < wanted:
        fix = "raise it (ulimit -n, LimitNOFILE=), or lower listen.max_connections"
        return warn("open files", f"the limit is {limit}: {room} bots can connect, not {wanted}", fix)
    return ok("open files", f"the limit is {limit}, enough for {wanted} bots")


def day(seconds: float) -> str:
    """Return the date in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


@dataclass(frozen=True, slots=True)
class Read:
    """A signed read with one key, and what is known of it.

    `reply` is None where none came: `trouble` says why.
    """

    api_key: str
    facts: Facts
    reply: WholeReply | None
    trouble: str = ""

    @property
    def area(self) -> str:
        """What its line is about."""
        return f"keys.{self.facts.alias}"


def judge_reads(reads: Sequence[Read], *, is_public: bool) -> Iterator[Finding]:
    """Yield a line for each key. `is_public`: the path is answered without a signature, too."""
    accepted = tuple(read.facts.alias for read in reads if _is_accepted(read) and not is_public)
    refused = tuple(read.facts.alias for read in reads if _is_signature_refused(read))
    for read in reads:
        others = Others(accepted, tuple(alias for alias in refused if alias != read.facts.alias))
        if read.reply is None:
            yield fail(
                read.area, f"no answer to a signed read: {read.trouble}", "see above, and run it again"
            )
        else:
            yield _judge(
                replace(read, facts=replace(read.facts, others=others)), read.reply, is_public=is_public
            )


def limited(area: str, status: int, verdict: Verdict, retry_after_s: float | None) -> Finding:
    """Return the line of a 429, a ban or a country that is not served, after which nothing more is sent."""
    if verdict.means is Means.COUNTRY:
        cause, fix = refused_unsigned(status, verdict)
        return fail(area, f"{cause}; nothing more was asked", fix)
    wait = f"wait {retry_after_s:.0f} s" if retry_after_s is not None else "wait a while"
    if verdict.means is Means.BANNED:
        said = error_words(status, verdict.words)
        text = f"it shuts out this address or key ({said}), so nothing more was asked"
        return fail(area, text, f"{wait}, and run it again; if it stays, {ASK_WHETHER_SERVED}")
    return warn(
        area, "the rate limit is exceeded (429), so nothing more was asked", f"{wait}, and run it again"
    )


def _judge(read: Read, reply: WholeReply, *, is_public: bool) -> Finding:
    area = read.area
    if reply.verdict.means is not Means.DONE:
        words = reply.verdict.words or page_text(reply.body)
        said = error_words(reply.status, words, (read.api_key,))
        text, causes = f"a signed read was refused, {said.rstrip('.')}", causes_of(reply, read.facts)
        return blamed(area, text, causes, lists=bool(reply.verdict.others))
    if reply.status >= HTTPStatus.MULTIPLE_CHOICES:
        fix = "write the address that it leads to as base_url: the gateway follows no redirects"
        return fail(area, f"the exchange redirects to another address ({reply.status})", fix)
    if not reply.body.lstrip().startswith((b"{", b"[")):
        return warn(
            area, "a signed read was answered, but not with JSON", "compare base_url with the exchange's"
        )
    if is_public:
        fix = "name one that needs a key: --path"
        return warn(area, f"{read.facts.path} is answered without a key too, which proves nothing", fix)
    text = f"a signed read is accepted ({read.facts.method} {read.facts.path}, {read.facts.round_trip_ms} ms)"
    if read.facts.is_to_trade and read.facts.is_listed is None:
        where = f"only the exchange's list of keys shows ({area}.session)"
        text += f"; whether it may trade, {'the first order shows' if read.facts.venue else where}"
    return ok(area, text)


def _is_accepted(read: Read) -> bool:
    reply = read.reply
    if reply is None or reply.verdict.means is not Means.DONE:
        return False
    return reply.status < HTTPStatus.MULTIPLE_CHOICES


def _is_signature_refused(read: Read) -> bool:
    """Whether the signature is all that can be wrong."""
    if read.reply is None:
        return False
    verdict = read.reply.verdict
    return verdict.means is Means.SIGNATURE and verdict.kind != "headers_missing" and not verdict.others
