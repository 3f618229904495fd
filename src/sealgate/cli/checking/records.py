"""The journal: whether it can be used, what is in doubt, the space for it, the limits that it remembers."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from sealgate.cli.checking.local import told
from sealgate.config import Config
from sealgate.core.findings import Finding, fail, ok, warn
from sealgate.core.limits.memory import Snapshot, kept_in_words
from sealgate.core.venues.scheme import Nonces
from sealgate.core.vetting import vet_disk
from sealgate.gateway.journal import JournalError
from sealgate.gateway.journal.insight import look_into
from sealgate.gateway.journal.learned import UNREAD_FIX
from sealgate.gateway.journal.nonces import FAR_FIX, FAR_S
from sealgate.gateway.platform.system import System
from sealgate.gateway.runtime.memory import nonces_place, subject


def look_at_journal(config: Config, learned: dict[str, Snapshot]) -> Iterator[Finding]:
    """Yield lines about the journal; put the limits that it remembers into `learned`, by subject."""
    file = config.journal.file
    if file is None:
        yield ok(
            "journal", "none: after a crash nothing tells which orders were in flight (set journal.file)"
        )
        return
    try:
        yield from _opened(config, file, learned) if file.exists() else _to_be_made(file)
    except JournalError as error:
        yield told("journal", str(error))
    finding = vet_disk(str(file.parent), shutil.disk_usage(file.parent).free, config.journal.max_size)
    if finding is not None:
        yield finding


def _to_be_made(file: Path) -> Iterator[Finding]:
    if os.access(file.parent, os.W_OK | os.X_OK):
        yield ok("journal", f"{file} will be created at the first start")
    else:
        yield fail(
            "journal", f"{file} cannot be created: its folder is not writable", "choose a writable path"
        )


def _opened(config: Config, file: Path, learned: dict[str, Snapshot]) -> Iterator[Finding]:
    aliases = {subject(config, alias): alias for alias in config.keys}
    insight = look_into(file, aliases, System().wall())
    if insight is None:
        yield ok("journal", f"{file} has an older format; the next start will convert it")
        return
    learned.update(insight.limits)
    user = "a gateway is using it" if insight.is_in_use else "no gateway is using it"
    if insight.in_doubt:
        fix = "look each up at the exchange: sealgate orders"
        yield warn("journal", f"{file} is intact; {user}; orders in doubt: {insight.in_doubt}", fix)
    else:
        yield ok("journal", f"{file} is intact; {user}; no orders are in doubt")
    if insight.unread:
        keys = ", ".join(aliases[one] for one in insight.unread)
        text = f"the learned limits of {len(insight.unread)} of {len(aliases)} keys cannot be read: {keys}"
        yield warn("journal", text, UNREAD_FIX)
    for alias in config.keys:
        nonces = Nonces(config.venue.signing.nonce, str)
        mark = insight.nonces.get(nonces_place(config, alias), 0)
        if nonces.is_number and (ahead_s := nonces.ahead_s(mark, int(System().wall() * 1000))) > FAR_S:
            text = f"the nonces of {alias} are reserved up to {ahead_s:.0f} s ahead of this host's time"
            yield warn("journal", text, FAR_FIX)


def remembered_limits(config: Config, learned: Mapping[str, Snapshot]) -> Iterator[Finding]:
    """Yield the limits that the journal remembers of each key, in words."""
    for alias in config.keys:
        for words in kept_in_words(learned.get(subject(config, alias), []), 0.0):
            yield ok("limits", f"keys.{alias}: {words} (from the journal)")
