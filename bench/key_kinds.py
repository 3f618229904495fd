"""What a kind of key costs: instructions of a request, and what signing does to another bot's latency.

    scripts/bench key_kinds [--cpu | --pauses]

One venue takes all kinds; requests are the plain ones of rows.py. With --pauses a bot whose key is an HMAC
secret sends orders at a steady pace, while another one sends 100 a second with a key of each kind in turn;
the order of the kinds is drawn from the seed. What is compared are the first bot's percentiles, with an HMAC
key of the other one and with each other kind, in rounds that follow each other.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from bench.instructions import (
    SERVE_SLOWLY,
    compiled_module,
    counting,
    exchange_counted,
    shares,
)
from bench.orders import order, token
from bench.pages import table
from bench.process import Way, wait_until_it_answers
from bench.programs import (
    COMPILED,
    GATEWAY,
    SERVE,
    WHEEL,
    measure,
    running_upstream,
    serving,
    setting_environ,
)
from bench.rivals import SECRET, Setting
from rig.private_keys import new_key, private

_VENUE = """\
name = "kinds"
like = "service"
["signing+".kinds]
hmac = {}
ed25519 = { encoding = "base64|pct" }
rsa = { encoding = "base64|pct" }
es256 = { encoding = "base64" }
"""
KINDS = ("hmac", "ed25519", "es256", "rsa 2048", "rsa 3072", "rsa 4096")
_RATE, _GAP_S = 100, 0.004  # orders a second with the key of each kind; the first bot's gap
_WARM_UP_S = 0.5


def secret_of(kind: str) -> bytes:
    """Return a secret as a file has it."""
    if kind == "hmac":
        return SECRET.encode()
    name, _, bits = kind.partition(" ")
    return private(new_key(name, int(bits or 2048)))


def environ_of(way: str, setting: Setting, folder: Path, secrets: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables of a gateway with a key and a bot for each of `secrets`: kinds by alias."""
    (folder / "kinds.toml").write_text(_VENUE)
    environ = dict(setting_environ(way, setting, folder))
    environ["SEALGATE_VENUE"] = str(folder / "kinds.toml")
    for number, (alias, kind) in enumerate(secrets.items()):
        file = folder / f"{alias}.secret"
        file.touch(mode=0o600)
        file.write_bytes(secret_of(kind))
        environ[f"SEALGATE_KEYS__{alias.upper()}__API_KEY"] = f"ak-{alias}"
        environ[f"SEALGATE_KEYS__{alias.upper()}__SECRET"] = f"file:{file}"
        environ[f"SEALGATE_BOTS__B{number}__TOKEN"] = f"env:TOKEN{number}"
        environ[f"SEALGATE_BOTS__B{number}__KEYS"] = alias
        environ[f"TOKEN{number}"] = token(number)
    for name in ("SEALGATE_BOTS__BENCH__TOKEN", "BENCH_TOKEN", "BENCH_SECRET"):
        del environ[name]
    return environ


def instructions(way: str, kind: str) -> float:
    """Return the thousands of instructions of a request."""
    with TemporaryDirectory() as name, running_upstream() as upstream:
        folder, setting = Path(name), Setting(f"127.0.0.1:{upstream.port}")
        environ = environ_of(way, setting, folder, {"main": kind})
        with serving(folder, environ, (*counting(folder, 12), *SERVE_SLOWLY)) as gateway:
            wait_until_it_answers(gateway.port)
            exchange_counted(gateway, repeat(order()))
        return sum(shares(folder / "counts", compiled_module()).values())


@contextmanager
def running_gateway(way: str, kind: str, own: str = "hmac") -> Iterator[Way]:
    """Run a gateway with two keys, of the kind `own` for the first bot and of `kind` for the second."""
    with TemporaryDirectory() as name, running_upstream() as upstream:
        folder, setting = Path(name), Setting(f"127.0.0.1:{upstream.port}")
        environ = environ_of(way, setting, folder, {"main": own, "other": kind})
        with serving(folder, environ, SERVE) as gateway:
            wait_until_it_answers(gateway.port)
            yield gateway


async def latencies(port: int, seconds: float, rate: int) -> list[float]:
    """Return what orders of the first bot took, in ms, while the second one sends `rate` a second."""
    took: list[float] = []
    ends = time.perf_counter() + _WARM_UP_S + seconds

    async def trade(bot: int, gap_s: float, took: list[float]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        due = began = time.perf_counter()
        while (now := time.perf_counter()) < ends:
            await asyncio.sleep(max(0.0, due - now))
            due += gap_s
            since = time.perf_counter()
            writer.write(order(bot))
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(head.decode("latin-1"))
            fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:-2])
            await reader.readexactly(int(fields[b"content-length"]))
            if since > began + _WARM_UP_S:
                took.append((time.perf_counter() - since) * 1e3)
        writer.close()

    others: list[float] = []
    async with asyncio.TaskGroup() as bots:
        bots.create_task(trade(0, _GAP_S, took))
        for _ in range(4):  # connections, so that a slow one does not lower the rate
            bots.create_task(trade(1, 4 / rate, others))
    return took


def pauses(way: str, options: argparse.Namespace) -> str:
    """Return a table of the first bot's percentiles; differences are to the HMAC round before."""
    chance = Random(options.seed)
    found: dict[str, list[tuple[float, float, float]]] = {}
    kinds = [kind for kind in options.only or KINDS if kind != "hmac"]
    for _ in range(options.rounds):
        for kind in chance.sample(kinds, len(kinds)):
            told: dict[str, tuple[float, float]] = {}
            for one in chance.sample(("hmac", kind), 2):
                with running_gateway(way, one) as gateway:
                    took = sorted(asyncio.run(latencies(gateway.port, options.seconds, _RATE)))
                told[one] = statistics.median(took), took[int(len(took) * 0.99)]
            (median, p99), (own_median, own_p99) = told["hmac"], told[kind]
            found.setdefault(kind, []).append((own_p99, own_p99 - p99, own_median - median))
            print(f"{kind}: p99 {own_p99:.2f} ms, with hmac {p99:.2f}", file=sys.stderr)
    rows = [
        (kind, *(f"{statistics.median(column):.2f}" for column in zip(*found[kind], strict=True)))
        for kind in kinds
    ]
    return table(("kind of the other key", "p99, ms", "p99 above hmac", "median above hmac"), rows)


def cpu_time(way: str, options: argparse.Namespace) -> str:
    """Return a table of the processor time of a request, the kernel's included."""
    found: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for kind in options.only or KINDS:
            with running_gateway(way, "hmac", kind) as gateway:
                figures = measure(gateway, 16, options.seconds)
            found.setdefault(kind, []).append(figures["cpu_us"])
    medians = {kind: statistics.median(times) for kind, times in found.items()}
    rows = [(kind, f"{time:.0f}", f"{time / medians['hmac']:.2f}") for kind, time in medians.items()]
    return table(("kind", "CPU us", "to hmac"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="What kinds of keys cost.")
    parser.add_argument("--cpu", action="store_true", help="processor time, not instructions")
    parser.add_argument("--pauses", action="store_true", help="latency of another bot, not instructions")
    parser.add_argument("--only", nargs="+", choices=KINDS, help="these kinds, hmac among them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each gateway")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    way = COMPILED if WHEEL.is_dir() else GATEWAY
    if options.cpu:
        print(cpu_time(way, options))
        return
    if options.pauses:
        print(pauses(way, options))
        return
    rows = []
    for name in (GATEWAY, COMPILED) if WHEEL.is_dir() else (GATEWAY,):
        totals: dict[str, float] = {}
        for kind in options.only or KINDS:
            totals[kind] = instructions(name, kind)
            print(f"{name}, {kind}: {totals[kind]:.0f}", file=sys.stderr)  # as it takes minutes
        rows += [
            (name, kind, f"{total:.0f}", f"{total / totals['hmac']:.2f}") for kind, total in totals.items()
        ]
    print(table(("way", "kind", "thousand instructions", "to hmac"), rows, words=2))


if __name__ == "__main__":
    main()
