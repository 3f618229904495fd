"""The compose stack: valid, closed to other machines, and of one mind with the files that it mounts."""

import json
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from rig.programs import path_of
from rig.schemas import DEPLOY, compose_problems, documents
from sealgate.cli import main
from sealgate.config import load_config

FOLDER = DEPLOY / "compose"
[STACK] = documents((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = STACK["services"]
OURS = ("sandbox", "gateway")
LOAD = {"SEALGATE_KEYS__MAIN__API_KEY": "ak-public-1"}
[EXCHANGES] = documents((FOLDER / "exchanges.yaml").read_text())


def mounts(name: str) -> dict[str, str]:
    """Return the files and volumes that a service mounts, by their place in it."""
    parts = (volume.split(":") for volume in SERVICES[name]["volumes"])
    return {target: source for source, target, *_ in parts}


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def test_it_is_as_the_compose_specification_says() -> None:
    assert compose_problems(STACK) == []


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_closed_in(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert "healthcheck" in service or service["image"] == "sealgate"  # the image's own


@pytest.mark.parametrize("name", SERVICES)
def test_nothing_is_open_to_other_machines(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert port.startswith("127.0.0.1:"), port


@pytest.mark.parametrize("name", [name for name in SERVICES if name not in OURS])
def test_images_of_others_are_pinned(name: str) -> None:
    tag = SERVICES[name]["image"].partition(":")[2]
    assert tag.count(".") == 2


@pytest.mark.parametrize("name", OURS)
def test_commands_are_what_the_program_takes(name: str) -> None:
    command, *arguments = SERVICES[name].get("command", ["serve"])
    found = main.get_command(click.Context(main), command)
    assert found is not None
    found.make_context(command, arguments)


def test_what_is_mounted_is_there() -> None:
    for name, service in SERVICES.items():
        for source in mounts(name).values() if "volumes" in service else ():
            assert (FOLDER / source).exists() if source.startswith(".") else source in STACK["volumes"], (
                source
            )
    # podman-compose leaves out what `configs` has, and says nothing.
    assert mounts("gateway")["/etc/sealgate/sealgate.toml"] == "./sealgate.toml"


def test_secrets_are_files_that_git_does_not_know() -> None:
    files = [secret["file"] for secret in STACK["secrets"].values()]
    assert files == [f"secrets/{name}" for name in SERVICES["gateway"]["secrets"]]
    ignored = (FOLDER / ".gitignore").read_text().splitlines()
    assert ignored == ["/exchanges.env", "/gateway.env", "/secrets/"]
    assert "secrets" not in SERVICES["sandbox"]


def test_the_configuration_names_the_mounted_secrets(tmp_path: Path) -> None:
    text = (FOLDER / "sealgate.toml").read_text().replace("/var/lib/sealgate", str(tmp_path))
    (tmp_path / "sealgate.toml").write_text(text)
    config = load_config(tmp_path / "sealgate.toml", environ=LOAD)
    assert {config.keys["main"].secret, config.bots["grid"].token} == {
        f"file:/run/secrets/{name}" for name in SERVICES["gateway"]["secrets"]
    }
    [alias] = SERVICES["sandbox"]["networks"]["default"]["aliases"]
    assert alias in config.listen.hosts
    published = {port.rpartition(":")[2] for port in SERVICES["sandbox"]["ports"]}
    assert config.listen.tcp is not None
    assert config.admin.tcp is not None
    assert published == {str(config.listen.tcp.port), str(config.admin.tcp.port)}
    listens = SERVICES["sandbox"]["command"][2]
    assert str(config.base_url) == f"http://{listens}"
    drains = config.listen.drain + config.limits.max_wait + config.upstream.total_timeout
    assert seconds(SERVICES["gateway"]["stop_grace_period"]) > drains


def test_the_stack_with_two_exchanges_is_the_same_but_for_them() -> None:
    """Its gateway is in no sandbox's network, so it has the ports itself; what it extends is as it was."""
    assert compose_problems(EXCHANGES) == []
    gateway, of_sandbox = EXCHANGES["services"]["gateway"], SERVICES["gateway"]
    files = ["./exchanges.toml:/etc/sealgate/sealgate.toml:ro", *of_sandbox["volumes"][1:]]
    own = {"volumes": files, "env_file": ["exchanges.env"], "secrets": ["binance", "bybit", "grid"]}
    same = {name: of_sandbox[name] for name in of_sandbox if name not in ("network_mode", "depends_on")}
    assert gateway == {**same, "ports": SERVICES["sandbox"]["ports"], **own}
    for name, service in list(EXCHANGES["services"].items())[1:]:
        assert service == {"extends": {"file": "compose.yaml", "service": name}}
    assert {name: secret["file"] for name, secret in EXCHANGES["secrets"].items()} == {
        name: f"secrets/{name}" for name in gateway["secrets"]
    }
    assert set(EXCHANGES["volumes"]) == set(STACK["volumes"]) - {"sandbox"}


def test_each_exchange_has_a_secret_of_its_own(tmp_path: Path) -> None:
    text = (FOLDER / "exchanges.toml").read_text().replace("/var/lib/sealgate", str(tmp_path))
    (tmp_path / "sealgate.toml").write_text(text)
    names = ("BINANCE", "BYBIT")
    config = load_config(
        tmp_path / "sealgate.toml", environ={f"SEALGATE_KEYS__{name}__API_KEY": name for name in names}
    )
    references = [*(key.secret for key in config.keys.values()), config.bots["grid"].token]
    secrets = EXCHANGES["services"]["gateway"]["secrets"]
    assert references == [f"file:/run/secrets/{name}" for name in secrets]
    assert [list(exchange.keys) for exchange in config.served.values()] == [["binance"], ["bybit"]]
    assert "gateway" in config.listen.hosts


@pytest.mark.needs("promtool")
def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    """The files as they are mounted, with the paths that the configuration names."""
    for target, source in mounts("prometheus").items():
        if source.startswith("."):
            (tmp_path / Path(target).name).write_bytes((FOLDER / source).read_bytes())
    command = [path_of("promtool"), "check", "config", "prometheus.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("rules found") == 2


def test_grafana_finds_its_source_and_its_board() -> None:
    [sources] = documents((FOLDER / "grafana/datasources/prometheus.yml").read_text())
    [source] = sources["datasources"]
    name, _, port = source["url"].removeprefix("http://").partition(":")
    assert SERVICES[name]["ports"] == [f"127.0.0.1:{port}:{port}"]
    [config] = documents((FOLDER / "prometheus.yml").read_text())
    assert source["jsonData"]["timeInterval"] == config["global"]["scrape_interval"]
    [boards] = documents((FOLDER / "grafana/dashboards/sealgate.yml").read_text())
    [provider] = boards["providers"]
    board = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert board.startswith(provider["options"]["path"])
    assert json.loads((FOLDER / mounts("grafana")[board]).read_text())["uid"]
