"""docs/venues.md, made of the venues' files: what each is, what it was held against, what it cannot do."""

from collections.abc import Iterable

from sealgate.core.venues.venue import Venue

_HEAD = """\
# Venues

<!-- Made of src/sealgate/core/venues/*.toml. Change those, and make it again. -->

A venue is an exchange as data: one TOML file that says how it is signed, what its replies mean and how it
counts. `venue = "NAME"` chooses one of these; `venue = "./mine.toml"` is a file of your own, which
`sealgate venues show NAME` is the start of. Without it the venue is `service`.

"Held against" is what the file was compared with, byte for byte: target, headers and body of random requests
that ccxt signed itself. "Replies" is how many rules say what its errors mean; where there are none, the
status alone decides, and an error in an HTTP 200 passes for a success.

| venue | tier | held against | secret, digest, encoding | replies | counts by | note |
|---|---|---|---|---|---|---|
"""
_TAIL = """
## What has no file, and why

| venue | reason |
|---|---|
| whitebit, zebpay, crypto.com | What they sign is put into the JSON body, which the gateway never touches. |
| indodax, zaif | ccxt puts the nonce behind the form's first parameter; the gateway adds at the ends alone. |
| any with JSON Web Tokens, RSA, Ed25519 or a wallet's signature | The gateway signs with an HMAC key. |
"""


def venues_page(venues: Iterable[Venue]) -> str:
    """Return the page, in the order of tiers and then of names."""
    ordered = sorted(venues, key=lambda venue: (venue.tier != "built-in", venue.tier, venue.name))
    return _HEAD + "".join(map(_row, ordered)) + _TAIL


def _row(venue: Venue) -> str:
    signing = venue.signing
    title = f"[{venue.title}]({venue.docs})" if venue.docs else venue.title
    wants = [name for name in ("passphrase", "uid") if signing.needs(name)]
    needs = f"The key needs `{'` and `'.join(wants)}`." if wants else ""
    cells = (
        f"`{venue.name}`<br>{title}",
        venue.tier,
        venue.checked,
        f"{signing.secret}, {signing.digest}, {signing.encoding}",
        str(len(venue.rules)),
        venue.limits.scope.value,
        " ".join(filter(None, (needs, venue.note))),
    )
    return f"| {' | '.join(cells)} |\n"
