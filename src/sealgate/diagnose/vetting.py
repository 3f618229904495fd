"""The bounds by which a check judges clocks, certificates, disks and open files.

Times are epoch seconds, sizes bytes.
"""

import math
from datetime import UTC, datetime

from sealgate.keys.key_audit import OwnKey, audit
from sealgate.keys.key_records import DAY_S, ListedKey
from sealgate.machine.findings import Finding, Level, clause, fail, ok, warn

_CERTIFICATE_WARN_S = 14 * DAY_S  # usual lifetimes are 90 days or less, renewed before the last third
_HOST_OFF_S = 1.0  # harmless to signing, but the log and certificate checks use this clock
_LEAST_DISK = 16 * 1024**2
_KEEPS_FROM_WORKING = {  # kinds of `keys audit` -> their level in a check
    "expired": Level.FAIL,
    "revoked": Level.FAIL,
    "expires_soon": Level.WARN,
    "too_narrow": Level.WARN,
}
_BY_CLOCK = "this machine's clock shows {today}: set it if that is wrong, otherwise wait"
_AUTHORITY = (
    "the certificate of {host} is signed by an unknown authority",
    "if you know this authority, name it in upstream.ca_file; otherwise do not trust this network",
)
_OTHER_NAME = (
    "the certificate is not for {host}",
    "correct the host in base_url; never send a key to this address",
)
# OpenSSL's X509_V_ERR_…, x509_vfy.h -> cause and fix
_REFUSED_CERTIFICATES = {
    9: ("the certificate of {host} is not valid yet", f"{_BY_CLOCK} for the exchange"),
    10: ("the certificate of {host} has expired", f"{_BY_CLOCK} for the exchange"),
    62: _OTHER_NAME,  # a host
    64: _OTHER_NAME,  # an address
    **dict.fromkeys((18, 19, 20, 21), _AUTHORITY),
}


def vet_clock(offset_s: float, error_s: float, recv_window_ms: int) -> Finding:
    """Judge the clock: `offset_s` is the exchange's time minus this machine's, accurate to `error_s`."""
    bound_ms = max(1, math.ceil(error_s * 1000))
    text = f"the exchange's time is accurate to ±{bound_ms} ms"
    if error_s * 2000 > recv_window_ms:
        fix = "use a machine with a faster connection to the exchange, or raise recv_window_ms"
        return fail("clock", f"{text}, not precise enough for a recv_window of {recv_window_ms} ms", fix)
    if abs(offset_s) > _HOST_OFF_S + error_s:
        side = "behind" if offset_s > 0 else "ahead"
        off = f"this machine's clock is {abs(offset_s):.1f} s {side}, which the gateway corrects"
        return warn("clock", f"{text}; {off}", "set this machine's clock (NTP): the log uses it")
    return ok("clock", f"{text}; this machine's clock is off by {round(offset_s * 1000):+d} ms")


def vet_keep_alive(announced_s: float | None, keep_alive_s: float) -> Finding | None:
    """Judge upstream.keep_alive by the exchange's announced time-out; None if it is fine."""
    if announced_s is None or announced_s > keep_alive_s:
        return None
    text = f"the exchange closes idle connections after {announced_s:g} s, but this is {keep_alive_s:g} s"
    fix = f"set it below {announced_s:g}; until then the gateway uses the exchange's value"
    return warn("upstream.keep_alive", text, fix)


def vet_certificate(not_after: float, now: float) -> Finding:
    """Judge the exchange's certificate, which was accepted, by its expiry."""
    left_s = not_after - now
    text = f"the certificate is valid until {day(not_after)}"
    if left_s < _CERTIFICATE_WARN_S:
        fix = "the exchange must renew it; see its status page"
        return warn("TLS", f"{text}, in {left_s / DAY_S:.0f} days", fix)
    return ok("TLS", text)


def vet_own_certificate(starts: float, ends: float, now: float) -> Finding:
    """Judge the certificate for bots, relative to its lifetime: a daily one may expire soon."""
    area, fix = "listen.tls_cert", "renew it; a running gateway loads the new files automatically"
    if now < starts:
        return fail(
            area, f"the certificate is valid only from {day(starts)} on", _BY_CLOCK.format(today=day(now))
        )
    if now >= ends:
        return fail(area, f"the certificate expired on {day(ends)}", fix)
    text, life = f"the certificate matches its key, and is valid until {day(ends)}", ends - starts
    is_soon = ends - now < min(max(life / 10, _CERTIFICATE_WARN_S), life / 3)
    return warn(area, text, fix) if is_soon else ok(area, text)


def refused_certificate(code: int, host: str, message: str, now: float) -> Finding:
    """Return why a certificate was refused; `code` and `message` are OpenSSL's."""
    other = "the certificate of {host} is refused ({message})", "see upstream.ca_file"
    cause, fix = _REFUSED_CERTIFICATES.get(code, other)
    return fail("TLS", cause.format(host=host, message=message), fix.format(today=day(now)))


def vet_listed(area: str, key: ListedKey, may: frozenset[str], server_now: float) -> Finding:
    """Judge a key by its record in the exchange's list; `may` is what bots may do with it.

    It reports those findings of `keys audit` that keep bots from reading or trading.
    """
    for found in audit([key], [OwnKey("", key.api_key, may)], server_now):
        if found.kind in _KEEPS_FROM_WORKING:
            return Finding(
                area, _KEEPS_FROM_WORKING[found.kind], f"the key {found.words}", clause(found.advice)
            )
    expires_at = key.record.expires_at
    end = "without expiry" if expires_at is None else f"until {day(expires_at)}"
    return ok(area, f"the session token works; the key is active, {end}")


def vet_disk(folder: str, free: int, wanted: int) -> Finding | None:
    """Judge the space for the journal; None if there is enough."""
    text = f"{free // 1024**2} MiB are free in {folder}"
    if free < _LEAST_DISK:
        return fail("journal", text, "free space on that disk: orders are refused when it is full")
    if free < wanted:
        return warn("journal", f"{text}, less than journal.max_size", "free space, or lower journal.max_size")
    return None


def vet_descriptors(limit: int, room: int, wanted: int) -> Finding:
    """Judge the system's limit of open files: `room` of `wanted` bots can connect."""
    if room < wanted:
        fix = "raise it (ulimit -n, LimitNOFILE=), or lower listen.max_connections"
        return warn("open files", f"the limit is {limit}: {room} bots can connect, not {wanted}", fix)
    return ok("open files", f"the limit is {limit}, enough for {wanted} bots")


def day(seconds: float) -> str:
    """Return the date in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
