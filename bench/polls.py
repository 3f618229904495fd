"""Measure how many reads are served for each that is sent, when identical reads that wait go as one.

Two bots poll the same three reads and two send orders; together they ask for three times the limit, which
the gateway knows. First in virtual time, with the queue alone, then on real sockets, with sandbox and gateway
as processes of their own.
"""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator

from bench.pacing import address_of, gateway_environ, running_sandbox
from rig.bot import bot_at, request
from rig.herd import ORDER, Address, journal_at, put
from rig.program import running_program
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.pacer import Pacer, PacerSettings
from sealgate.limits.quotas import Quota
from sealgate.venues.routes import Lane

LIMIT = 10  # per second
DEMAND = 3
POLLERS, TRADERS = ("one", "two"), ("three", "four")
STEP_S = 1 / (LIMIT * DEMAND)  # from one request to the next, of the bots in turn
READS = 3
MAX_WAIT_S = 5.0


def turns(seconds: float) -> Iterator[tuple[str, int]]:
    """Return which bot asks next, and how often it has asked before."""
    for round_ in range(round(seconds / STEP_S / 4)):
        for bot in (*POLLERS, *TRADERS):
            yield bot, round_


def in_virtual_time(seconds: float) -> tuple[int, int]:
    """Return how many reads were served, and how many were sent for them."""
    pacer = Pacer(PacerSettings(known=(Quota(LIMIT, 1.0),)), lambda: 0.0)
    served, sent = 0, 0

    def went(claims: Iterable[Claim], now: float) -> None:
        nonlocal served, sent
        for claim in claims:
            pacer.answered(claim, now, LimitReply(Fate.ACCEPTED))
            served, sent = served + claim.is_read, sent + claim.is_read

    for number, (bot, round_) in enumerate(turns(seconds)):
        now, is_read = number * STEP_S, bot in POLLERS
        claim = Claim(
            f"{number}",
            bot,
            Lane.READ if is_read else Lane.ORDER,
            now + MAX_WAIT_S,
            is_read=is_read,
            alike=round_ % READS if is_read else None,
        )
        if pacer.goes_at_once(claim, now):
            went([claim], now)
        else:
            pacer.enter(claim, now)
        release = pacer.release(now)
        went(release.go, now)
        served += len(release.shared)
    return served, sent


async def ask(gateway: Address, bot: str, message: bytes, statuses: Counter[tuple[str, int]]) -> None:
    async with bot_at(*gateway) as connection:
        statuses[bot, (await connection.ask(message)).status] += 1


def message_of(bot: str, round_: int, user: bytes) -> bytes:
    own = b"Authorization: Bearer token-of-" + bot.encode()
    if bot in POLLERS:
        reads = (b"/symbols/list", b"/user/" + user + b"/positions", b"/user/" + user + b"/openOrders")
        return request(b"GET", b"/v1/trade" + reads[round_ % READS], own)
    return request(b"POST", b"/v1/trade/order", own, b"Content-Type: application/json", body=ORDER)


async def sleep_until(moment: float) -> None:
    await asyncio.sleep(moment - asyncio.get_running_loop().time())


async def on_sockets(seconds: float) -> tuple[int, int]:
    """Return the same as counted by bots and by the sandbox."""
    statuses: Counter[tuple[str, int]] = Counter()
    async with running_sandbox() as sandbox:
        where, user = address_of(sandbox["base_url"]), sandbox["user_address"].encode()
        await put(where, b"/_sandbox/limit", {"kind": "sliding_log", "requests": LIMIT, "window_s": 1.0})
        environ = gateway_environ(sandbox) | {
            "SEALGATE_LIMITS__KNOWN": f"{LIMIT}/1s",
            "SEALGATE_LIMITS__MAX_WAIT": str(MAX_WAIT_S),
        }
        for bot in (*POLLERS, *TRADERS):
            environ |= {
                f"TOKEN_{bot.upper()}": f"token-of-{bot}",
                f"SEALGATE_BOTS__{bot.upper()}__TOKEN": f"env:TOKEN_{bot.upper()}",
                f"SEALGATE_BOTS__{bot.upper()}__WEIGHT": "1",
            }
        async with running_program("serve", environ=environ) as program:
            await program.line('"clock_synced"')
            gateway = address_of(json.loads(await program.line("listening"))["bots"])
            before = (await journal_at(where))[-1:]
            async with asyncio.TaskGroup() as group:
                began = asyncio.get_running_loop().time()
                for number, (bot, round_) in enumerate(turns(seconds)):
                    group.create_task(ask(gateway, bot, message_of(bot, round_, user), statuses))
                    await sleep_until(began + number * STEP_S)
            sent = await journal_at(where, before[0].n if before else 0)
    served = sum(count for (bot, status), count in statuses.items() if bot in POLLERS and status == 200)
    return served, sum(entry.method == "GET" and entry.status == 200 for entry in sent)


def show(where: str, served: int, sent: int) -> None:
    print(f"{where:13} {served} reads served, {sent} sent for them: {served / sent:.1f} for each")


def main() -> None:
    parser = argparse.ArgumentParser(description="Reads that are served for each that is sent.")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each part (60)")
    seconds = parser.parse_args().seconds
    show("virtual time", *in_virtual_time(seconds))
    show("real sockets", *asyncio.run(on_sockets(min(seconds, 30.0))))


if __name__ == "__main__":
    main()
