"""The pages of who operates it: their blocks are run, with stand-ins for the programs that change a machine.

Paths such as /etc are below a folder. What the stand-ins were told is then held to the files of `deploy/`.
"""

import os
import re
import shlex
import shutil
import stat
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from rig.image import DOCKERFILE, ROOT, mapped, steps
from rig.schemas import DEPLOY, documents
from sealgate.cli import main

OPERATING, *GUIDES = [
    (ROOT / f"docs/{name}.md").read_text() for name in ("operating", "containers", "kubernetes", "systemd")
]
RELEASE = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## A release")[2]
SH = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS = ["".join(SH.findall(section)) for page in (*GUIDES, RELEASE) for section in page.split("\n## ")]
STANDINS = ("docker", "kubectl", "systemctl", "systemd-creds", "systemd-sysusers", "chown", "curl", "python3")
TOLD = 'echo "$(basename "$0") $*" >>"$TOLD"\n'
STANDIN = f"#!/bin/sh\n{TOLD}"
TOKEN = "example-token-of-a-bot-0123456789"
SUDO = '#!/bin/sh\nif [ "$1" = -u ]; then shift 2; fi\nexec "$@"\n'
[STACK] = documents((DEPLOY / "compose/compose.yaml").read_text())
[EXCHANGES] = documents((DEPLOY / "compose/exchanges.yaml").read_text())
UNIT = (DEPLOY / "systemd/sealgate.service").read_text()
DROP_IN = (DEPLOY / "systemd/exchanges.conf").read_text()


@dataclass(frozen=True)
class Desk:
    """A copy of the project that somebody works in, and what they told the stand-ins."""

    folder: Path
    told: list[list[str]]

    def calls(self, program: str) -> list[list[str]]:
        return [words[1:] for words in self.told if words[0] == program]


def program(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Run all blocks, one after the other, those of a section beginning in the project's folder."""
    folder = tmp_path_factory.mktemp("desk")
    shutil.copytree(DEPLOY, folder / "deploy", ignore=shutil.ignore_patterns("secrets", "gateway.env"))
    for name in STANDINS:
        program(folder / "bin" / name, STANDIN)
    program(folder / "bin/docker", f'{STANDIN}case "$*" in *"token new") echo {TOKEN} ;; esac\n')
    program(folder / "bin/sudo", SUDO)
    program(folder / "scripts/release", STANDIN)
    for name in ("pip", "sealgate"):
        program(folder / f"opt/sealgate/bin/{name}", STANDIN)
    text = "".join(f'cd "$HERE"\n{blocks}' for blocks in SECTIONS)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-euc", mapped(text, folder)],
        cwd=folder,
        env={"PATH": path, "TOLD": str(folder / "told"), "HERE": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = (folder / "told").read_text().replace(f"{folder}/", "/").splitlines()
    return Desk(folder, [shlex.split(line) for line in lines])


def sealgate_calls(desk: Desk) -> Iterator[list[str]]:
    yield from desk.calls("sealgate")
    for call in desk.calls("docker"):
        if call[:3] == ["run", "--rm", "sealgate"]:
            yield call[3:]
        elif call[:2] == ["compose", "exec"]:
            yield call[4:]


def test_the_secrets_are_as_the_gateway_wants_them(desk: Desk) -> None:
    folder = desk.folder / "deploy/compose"
    stacks = (STACK["secrets"], {name: EXCHANGES["secrets"][name] for name in ("binance", "bybit")})
    files = {name: folder / secret["file"] for secrets in stacks for name, secret in secrets.items()}
    texts = {name: file.read_text() for name, file in files.items()}
    pasted = dict.fromkeys(("main", "binance", "bybit"), "PASTE_THE_SECRET\n")
    assert texts == {**pasted, "grid": f"{TOKEN}\n"}
    assert files.keys() >= EXCHANGES["secrets"].keys()
    assert {stat.S_IMODE(file.stat().st_mode) for file in files.values()} == {0o600}
    [user] = [step.text for step in steps(DOCKERFILE.read_text()) if step.name == "USER"]
    assert desk.calls("chown") == [
        [user, *(secret["file"] for secret in secrets.values())] for secrets in stacks
    ]
    [env] = STACK["services"]["gateway"]["env_file"]
    assert (folder / env["path"]).read_text() == "SEALGATE_KEYS__MAIN__API_KEY=PASTE_THE_KEY\n"
    [env] = EXCHANGES["services"]["gateway"]["env_file"]
    named = [line.partition("=")[0] for line in (folder / env).read_text().splitlines()]
    assert named == [f"SEALGATE_KEYS__{name.upper()}__API_KEY" for name in stacks[1]]


def test_compose_is_told_of_services_that_there_are(desk: Desk) -> None:
    calls = [call[1:] for call in desk.calls("docker") if call[0] == "compose"]
    *calls, with_exchanges = calls
    named = {call[-1] for call in calls[:2]} | {call[1] for call in calls if call[0] == "exec"}
    assert named <= set(STACK["services"])
    assert len(calls) == 4
    assert with_exchanges[:2] == ["--file", "exchanges.yaml"]


def test_commands_of_the_program_are_what_it_takes(desk: Desk) -> None:
    calls = list(sealgate_calls(desk))
    assert [call[0] for call in calls] == ["healthcheck", "--version", "token", "halt"]
    for name, *arguments in (call for call in calls if call != ["--version"]):
        command = main.get_command(click.Context(main), name)
        assert command is not None
        command.make_context(name, arguments)


def test_kubernetes_gets_the_secret_that_the_pod_mounts(desk: Desk) -> None:
    [sidecar] = documents((DEPLOY / "kubernetes/sidecar/sidecar.yaml").read_text())
    [mounted] = [
        volume["secret"] for volume in sidecar["spec"]["template"]["spec"]["volumes"] if "secret" in volume
    ]
    [kustomization] = documents((DEPLOY / "kubernetes/example/kustomization.yaml").read_text())
    namespace, secret, applied, *with_exchanges = desk.calls("kubectl")
    assert namespace[-1] == kustomization["namespace"]
    assert secret[:5] == ["create", "secret", "generic", mounted["secretName"], "--namespace"]
    assert secret[5] == kustomization["namespace"]
    assert "/sealgate/main" in (DEPLOY / "kubernetes/example/sealgate.toml").read_text()
    assert secret[6].startswith("--from-file=main=")
    assert (ROOT / applied[-1] / "kustomization.yaml").is_file()
    secrets, applied = with_exchanges
    assert secrets[:6] == secret[:6]
    text = (DEPLOY / "kubernetes/exchanges/sealgate.toml").read_text()
    assert [f"--from-file={name}={name}.secret" for name in tomllib.loads(text)["keys"]] == secrets[6:]
    assert applied == ["apply", "-k", "deploy/kubernetes/exchanges"]


def test_systemd_gets_the_files_where_it_looks(desk: Desk) -> None:
    sealed = re.findall(r"^LoadCredentialEncrypted=(\w+):(\S+)$", UNIT + DROP_IN, re.MULTILINE)
    assert desk.calls("systemd-creds") == [
        ["encrypt", f"--name={name}", f"{name}.secret", file] for name, file in sealed
    ]
    assert (desk.folder / "etc/systemd/system/sealgate.service.d/exchanges.conf").read_text() == DROP_IN
    assert (desk.folder / "etc/systemd/system/sealgate.service").read_text() == UNIT
    [users] = desk.calls("systemd-sysusers")
    assert "u sealgate" in (desk.folder / users[0].lstrip("/")).read_text()
    [config] = re.findall(r"^ExecStart=.*--config (\S+)$", UNIT, re.MULTILINE)
    assert (desk.folder / config.lstrip("/")).read_text() == (DEPLOY / "systemd/sealgate.toml").read_text()
    assert desk.calls("systemctl") == [
        ["daemon-reload"],
        ["enable", "--now", "sealgate.service"],
        ["daemon-reload"],
        ["restart", "sealgate.service"],
    ]


def test_it_is_installed_as_the_image_is(desk: Desk) -> None:
    """The same two steps, into the folder that the unit starts it from; what compiles is left out."""
    assert desk.calls("python3") == [["-m", "venv", "/opt/sealgate"]]
    runs = [step.text for step in steps(DOCKERFILE.read_text()) if step.name == "RUN"]
    image = [run.partition(" && ")[0].partition(" install ")[2].split() for run in runs[1:]]
    assert [call[1:] for call in desk.calls("pip")] == image


def test_the_rehearsal_of_a_release_is_a_script(desk: Desk) -> None:
    assert desk.calls("release") == [["--rehearse"]]
    assert os.access(ROOT / "scripts/release", os.X_OK)


def test_every_setting_that_is_named_exists() -> None:
    """Of the tables that the page of what goes wrong speaks of."""
    documented = (ROOT / "docs/configuration.md").read_text()
    named = re.findall(r"`((?:listen|limits|upstream|journal|admin)\.\w+)`", OPERATING)
    assert len(set(named)) >= 5
    assert [name for name in named if f"| `{name}`" not in documented] == []
