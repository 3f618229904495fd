"""Each way to run it, from its own files to an order: programs of the image, folders for containers.

What Docker, the kubelet and systemd do before a program starts is done by hand here, as they document it.
"""

import contextlib
import json
import os
import tomllib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from rig.container import Container, container, free_ports
from rig.fake_venues import SECRET, Fake, running_fake
from rig.image import Image
from rig.ports import free_port
from rig.program import running_program
from rig.schemas import DEPLOY, documents
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import SandboxSettings

ORDER = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000.0"}
TOKEN = "example-token-of-a-bot-0123456789"
PORTS = (8787, 8788, 8790)
SCRAPER = {"Host": "10.1.2.3:8788"}  # a pod's address, as the kubelet and Prometheus call it


@contextlib.asynccontextmanager
async def client(
    socket: Path | None = None, headers: Mapping[str, str] | None = None
) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.UnixConnector(str(socket)) if socket else None
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield session


async def place(session: aiohttp.ClientSession, url: str) -> tuple[int, str | None, Any]:
    async with session.post(f"{url}/v1/trade/order", json=ORDER) as reply:
        return reply.status, reply.headers.get("X-Gateway-Outcome"), await reply.json()


async def status(url: str, headers: Mapping[str, str]) -> int:
    async with client() as session, session.get(url, headers=headers) as reply:
        return reply.status


def write(file: Path, content: str, mode: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    file.chmod(mode)


@contextlib.asynccontextmanager
async def exchange() -> AsyncIterator[tuple[Sandbox, dict[str, str]]]:
    """Run a sandbox, and return what has to stand in an example's configuration in its place."""
    async with running_sandbox(SandboxSettings(limit_kind="none")) as sandbox:
        place = f'base_url = "{sandbox.base_url}"'
        yield sandbox, {'venue = "bybit"': place, "0123456789abcdef": sandbox.api_key}


@contextlib.asynccontextmanager
async def two_exchanges(config: str) -> AsyncIterator[tuple[tuple[Fake, Fake], dict[str, str]]]:
    """Run Binance and Bybit, and return them with what a configuration's gateway needs to find them."""
    keys = tomllib.loads(config)["keys"].values()
    binance, bybit = (key.get("api_key", f"key-of-{key['exchange']}") for key in keys)
    async with running_fake("binance", binance) as first, running_fake("bybit", bybit) as second:
        places = {
            f"SEALGATE_EXCHANGES__{fake.name.upper()}__BASE_URL": fake.base_url for fake in (first, second)
        }
        yield (first, second), places


async def place_at_both(session: aiohttp.ClientSession, url: str, fakes: tuple[Fake, Fake]) -> None:
    """Place an order at each of two exchanges, by its name in the path."""
    form = {"symbol": "BTCUSDT", "side": "BUY", "type": "MARKET", "quantity": "0.001"}
    order = {"category": "spot", "symbol": "BTCUSDT", "side": "Buy", "orderType": "Market", "qty": "0.001"}
    async with session.post(f"{url}/binance/api/v3/order", data=form) as reply:
        assert (reply.status, reply.headers["X-Gateway-Outcome"]) == (200, "done"), await reply.text()
    async with session.post(f"{url}/bybit/v5/order/create", json=order) as reply:
        assert (reply.status, reply.headers["X-Gateway-Outcome"]) == (200, "done"), await reply.text()
    assert [(len(fake.orders), fake.refused) for fake in fakes] == [(1, []), (1, [])]


# Compose.

COMPOSE = DEPLOY / "compose"
[STACK] = documents((COMPOSE / "compose.yaml").read_text())


def service(name: str, folder: Path, image: Image, ports: Mapping[int, int]) -> Container:
    """Return a service's container with its volumes and configuration; secrets come later."""
    settings = STACK["services"][name]
    made = container(folder / name, image, ports)
    for source, place, *_ in (volume.split(":") for volume in settings["volumes"]):
        if source.startswith("."):
            made.mount(COMPOSE / source, place)
        else:
            made.make(place, 0o700)  # as the image has it
    for place in settings["tmpfs"]:
        made.make(place, 0o1777)
    return made


async def test_compose_from_its_files_to_an_order(image: Image, tmp_path: Path) -> None:
    ports = free_ports(*PORTS)
    sandbox = service("sandbox", tmp_path, image, ports)
    gateway = service("gateway", tmp_path, image, ports)
    services = STACK["services"]
    async with sandbox.running([*image.entrypoint, *services["sandbox"]["command"]]) as exchange_program:
        told = json.loads(await exchange_program.line('"api_secret"'))
        healthy = sandbox.ended(services["sandbox"]["healthcheck"]["test"][1:])
        assert healthy.returncode == 0, healthy.stderr
        for name, secret in (("main", told["api_secret"]), ("grid", TOKEN)):
            write(gateway.path(f"/run/secrets/{name}"), f"{secret}\n", 0o400)
        environ = {"SEALGATE_KEYS__MAIN__API_KEY": told["api_key"]}
        async with gateway.running([*image.entrypoint, *image.command], environ) as program:
            await program.line('"ready"')
            assert gateway.ended(image.health, environ).stdout == "healthy\n"
            # Another container calls it by its name in the network.
            bot = {"Authorization": f"Bearer {TOKEN}", "Host": "gateway:8787"}
            async with client(headers=bot) as session:
                code, outcome, reply = await place(session, f"http://127.0.0.1:{ports[8787]}")
            assert (code, outcome) == (200, "done"), reply
            metrics = f"http://127.0.0.1:{ports[8788]}/metrics"
            assert await status(metrics, {"Host": "gateway:8788"}) == 200
            assert gateway.ended([*image.entrypoint, "halt"], environ).returncode == 0
    assert gateway.path("/var/lib/sealgate/journal.db").exists()


async def test_compose_with_two_exchanges_from_its_files_to_an_order_at_each(
    image: Image, tmp_path: Path
) -> None:
    ports = free_ports(*PORTS)
    made = container(tmp_path, image, ports)
    made.mount(COMPOSE / "exchanges.toml", "/etc/sealgate/sealgate.toml")
    made.make("/var/lib/sealgate", 0o700)
    made.make("/tmp", 0o1777)  # noqa: S108 - mapped
    for name, secret in (("binance", SECRET), ("bybit", SECRET), ("grid", TOKEN)):
        write(made.path(f"/run/secrets/{name}"), f"{secret}\n", 0o400)
    async with two_exchanges((COMPOSE / "exchanges.toml").read_text()) as (fakes, environ):
        environ |= {f"SEALGATE_KEYS__{fake.name.upper()}__API_KEY": fake.api_key for fake in fakes}
        async with made.running([*image.entrypoint, *image.command], environ) as program:
            await program.line('"ready"')
            assert made.ended(image.health, environ).stdout == "healthy\n"
            bot = {"Authorization": f"Bearer {TOKEN}", "Host": "gateway:8787"}
            async with client(headers=bot) as session:
                await place_at_both(session, f"http://127.0.0.1:{ports[8787]}", fakes)
            metrics = f"http://127.0.0.1:{ports[8788]}/metrics"
            async with client() as session, session.get(metrics) as reply:
                text = await reply.text()
    assert {name for name in ("binance", "bybit") if f'exchange="{name}"' in text} == {"binance", "bybit"}


# Kubernetes.

KUBERNETES = DEPLOY / "kubernetes"
[PATCH] = documents((KUBERNETES / "sidecar/sidecar.yaml").read_text())
FOLDER_PART, GATEWAY_PART = PATCH["spec"]["template"]["spec"]["initContainers"]


def volume_of_a_secret(folder: Path, files: Mapping[str, str]) -> None:
    """Fill a folder as the kubelet does, with a link to a link; only root can lend a file to a group."""
    mode = 0o440 if os.geteuid() == 0 else 0o400
    for name, content in files.items():
        write(folder / "..2026" / name, content, mode)
        (folder / name).symlink_to(f"..data/{name}")
    (folder / "..data").symlink_to("..2026")


async def test_kubernetes_from_its_files_to_an_order(image: Image, tmp_path: Path) -> None:
    """An emptyDir is writable for all. The bot is the example's own."""
    ports = free_ports(*PORTS)
    places = {mount["name"]: mount["mountPath"] for mount in GATEWAY_PART["volumeMounts"]}
    async with exchange() as (sandbox, words):
        pod = container(tmp_path, image, ports, words)
        for name in ("sealgate-state", "sealgate-tmp"):
            pod.make(places[name], 0o777)
        pod.mount(KUBERNETES / "example/sealgate.toml", f"{places['sealgate-config']}/sealgate.toml")
        volume_of_a_secret(pod.make(places["sealgate-secrets"]), {"main": sandbox.api_secret})
        made = pod.ended(FOLDER_PART["command"])
        assert made.returncode == 0, made.stderr
        listen = {"SEALGATE_LISTEN__TCP": f"127.0.0.1:{ports[8787]}"}
        async with pod.running([*image.entrypoint, *GATEWAY_PART["args"]], listen) as program:
            await program.line('"ready"')
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                path = GATEWAY_PART[probe]["httpGet"]["path"]
                assert await status(f"http://127.0.0.1:{ports[8788]}{path}", SCRAPER) == 200
            url = f"http://127.0.0.1:{ports[8787]}"
            async with client() as session:
                code, outcome, reply = await place(session, url)
            assert (code, outcome) == (200, "done"), reply
            bot_file = str(KUBERNETES / "example/bot.py")
            asked = {"GATEWAY": url, "CALL": "/v1/trade/symbols/list"}  # as the sandbox has it
            async with running_program(start=("-u", bot_file), environ=asked) as bot:
                assert "BTC" in await bot.line("done ")
    assert pod.path("/var/lib/sealgate/gateway/journal.db").exists()


async def test_kubernetes_with_two_exchanges_from_its_files_to_an_order_at_each(
    image: Image, tmp_path: Path
) -> None:
    ports = free_ports(*PORTS)
    places = {mount["name"]: mount["mountPath"] for mount in GATEWAY_PART["volumeMounts"]}
    [kustomization] = documents((KUBERNETES / "exchanges/kustomization.yaml").read_text())
    [patch] = yaml.safe_load(kustomization["patches"][0]["patch"])
    [call] = patch["value"]
    pod = container(tmp_path, image, ports)
    for name in ("sealgate-state", "sealgate-tmp"):
        pod.make(places[name], 0o777)
    pod.mount(KUBERNETES / "exchanges/sealgate.toml", f"{places['sealgate-config']}/sealgate.toml")
    volume_of_a_secret(pod.make(places["sealgate-secrets"]), {"binance": SECRET, "bybit": SECRET})
    assert pod.ended(FOLDER_PART["command"]).returncode == 0
    async with two_exchanges((KUBERNETES / "exchanges/sealgate.toml").read_text()) as (fakes, environ):
        environ |= {"SEALGATE_LISTEN__TCP": f"127.0.0.1:{ports[8787]}"}
        async with pod.running([*image.entrypoint, *GATEWAY_PART["args"]], environ) as program:
            await program.line('"ready"')
            url = f"http://127.0.0.1:{ports[8787]}"
            async with client() as session:
                await place_at_both(session, url, fakes)
            ready = f"http://127.0.0.1:{ports[8788]}/-/ready"
            assert await status(f"{ready}?exchange=bybit", SCRAPER) == 200
            bot_file = str(KUBERNETES / "example/bot.py")
            told = {"GATEWAY": url, call["name"]: call["value"]}
            async with running_program(start=("-u", bot_file), environ=told) as bot:
                assert "1000.0" in await bot.line("done ")


async def test_the_example_bot_outlives_a_gateway_that_is_away_and_one_that_refuses(
    aiohttp_server: AiohttpServer,
) -> None:
    port = free_port()
    replies = iter([503, 200])

    async def balance(_: web.Request) -> web.Response:
        code = next(replies, 200)
        outcome = "done" if code == 200 else "not_sent"
        return web.Response(status=code, text=f"reply {code}", headers={"X-Gateway-Outcome": outcome})

    app = web.Application()
    app.router.add_get("/v5/account/wallet-balance", balance)
    environ = {"GATEWAY": f"http://127.0.0.1:{port}", "EVERY_S": "0.05"}
    bot_file = str(KUBERNETES / "example/bot.py")
    async with running_program(start=("-u", bot_file), environ=environ) as bot:
        await bot.line("no reply: ")
        await aiohttp_server(app, port=port)
        assert await bot.line("not_sent") == "not_sent 503 reply 503"
        assert await bot.line("done") == "done reply 200"


# systemd.


async def test_systemd_from_its_files_to_an_order(image: Image, tmp_path: Path) -> None:
    """A bot on the Unix socket; then `sealgate halt`, through the socket of the unit's configuration."""
    unit = dict(
        line.split("=", 1)
        for line in (DEPLOY / "systemd/sealgate.service").read_text().splitlines()
        if "=" in line and not line.startswith("#")
    )
    ports = free_ports(*PORTS)
    async with exchange() as (sandbox, words):
        host = container(tmp_path, image, ports, words)
        host.mount(DEPLOY / "systemd/sealgate.toml", "/etc/sealgate/sealgate.toml")
        host.make(f"/run/{unit['RuntimeDirectory']}", int(unit["RuntimeDirectoryMode"], 8))
        host.make(f"/var/lib/{unit['StateDirectory']}", int(unit["StateDirectoryMode"], 8))
        credential, _, _ = unit["LoadCredentialEncrypted"].partition(":")
        write(host.path(f"/run/credentials/{credential}"), sandbox.api_secret, 0o400)
        environ = {
            "CREDENTIALS_DIRECTORY": str(host.path("/run/credentials")),
            "SEALGATE_LISTEN__TCP": f"127.0.0.1:{ports[8787]}",
            "SEALGATE_ADMIN__TCP": f"127.0.0.1:{ports[8788]}",
        }
        async with host.running(unit["ExecStart"].split(), environ) as program:
            await program.line('"ready"')
            async with client(host.path("/run/sealgate/bots.sock")) as session:
                code, outcome, reply = await place(session, "http://localhost")
                assert (code, outcome) == (200, "done"), reply
                config = ("--config", "/etc/sealgate/sealgate.toml")
                halted = host.ended(["/opt/sealgate/bin/sealgate", "halt", *config], environ)
                assert halted.returncode == 0, halted.stderr
                code, _, reply = await place(session, "http://localhost")
                assert (code, reply["reason"]) == (503, "halted")


async def test_systemd_with_two_exchanges_halts_both_at_once(image: Image, tmp_path: Path) -> None:
    ports = free_ports(*PORTS)
    host = container(tmp_path, image, ports)
    host.mount(DEPLOY / "systemd/exchanges.toml", "/etc/sealgate/sealgate.toml")
    host.make("/run/sealgate", 0o711)
    host.make("/var/lib/sealgate", 0o700)
    for credential in ("main", "bybit"):
        write(host.path(f"/run/credentials/{credential}"), SECRET, 0o400)
    async with two_exchanges((DEPLOY / "systemd/exchanges.toml").read_text()) as (fakes, environ):
        environ |= {
            "CREDENTIALS_DIRECTORY": str(host.path("/run/credentials")),
            "SEALGATE_LISTEN__TCP": f"127.0.0.1:{ports[8787]}",
            "SEALGATE_ADMIN__TCP": f"127.0.0.1:{ports[8788]}",
        }
        serve = ["/opt/sealgate/bin/sealgate", "serve", "--config", "/etc/sealgate/sealgate.toml"]
        async with host.running(serve, environ) as program:
            await program.line('"ready"')
            async with client(host.path("/run/sealgate/bots.sock")) as session:
                await place_at_both(session, "http://localhost", fakes)
                halted = host.ended([serve[0], "halt", *serve[2:]], environ)
                assert halted.returncode == 0, halted.stderr
                for path in ("/binance/api/v3/order", "/bybit/v5/order/create"):
                    async with session.post(f"http://localhost{path}", json={}) as reply:
                        assert reply.headers["X-Gateway-Error"] == "halted"
