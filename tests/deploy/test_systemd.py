"""The systemd unit: what systemd itself says of it, and that it is of one mind with its configuration."""

import configparser
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from rig.image import Image
from rig.programs import path_of
from rig.schemas import DEPLOY
from sealgate.cli import main
from sealgate.config import load_config

FOLDER = DEPLOY / "systemd"
UNIT = FOLDER / "sealgate.service"
WORST_EXPOSURE = 1.5


def unit() -> configparser.RawConfigParser:
    """Return the unit; of a setting that comes several times, the last."""
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as its documentation says to keep case
    parser.read(UNIT)
    return parser


SERVICE = unit()["Service"]


def systemd(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [path_of(program), *arguments], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.needs("systemd-analyze")
def test_systemd_takes_the_unit(image: Image, tmp_path: Path) -> None:
    """With the program where this machine has it."""
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/sealgate", str(image.path("/opt/sealgate"))))
    (tmp_path / f"{UNIT.name}.d").mkdir()
    (tmp_path / f"{UNIT.name}.d/exchanges.conf").write_text((FOLDER / "exchanges.conf").read_text())
    done = systemd("systemd-analyze", "verify", str(copy))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.needs("systemd-analyze")
def test_little_is_exposed() -> None:
    done = systemd("systemd-analyze", "security", "--offline=true", str(UNIT))
    [exposure] = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert float(exposure) <= WORST_EXPOSURE


@pytest.mark.needs("systemd-sysusers")
def test_the_user_can_be_made() -> None:
    done = systemd("systemd-sysusers", "--dry-run", str(FOLDER / "sealgate.sysusers"))
    assert done.returncode == 0, done.stderr
    assert "Creating user 'sealgate'" in done.stdout + done.stderr


@pytest.mark.parametrize("setting", ["ExecStart", "ExecReload"])
def test_the_command_is_what_the_program_takes(setting: str) -> None:
    _, name, *arguments = shlex.split(SERVICE[setting])
    command = main.get_command(click.Context(main), name)
    assert command is not None
    command.make_context(name, arguments)


@pytest.mark.parametrize(
    ("name", "drop_ins"), [("sealgate.toml", ()), ("exchanges.toml", ("exchanges.conf",))]
)
def test_the_configuration_fits_the_unit(tmp_path: Path, name: str, drop_ins: tuple[str, ...]) -> None:
    text = (FOLDER / name).read_text()
    assert f'"/var/lib/{SERVICE["StateDirectory"]}/' in text
    (tmp_path / "sealgate.toml").write_text(text.replace("/var/lib/sealgate", str(tmp_path)))
    config = load_config(tmp_path / "sealgate.toml", environ={})
    runtime = Path("/run", SERVICE["RuntimeDirectory"])
    assert config.listen.unix is not None
    assert config.listen.unix.parent == runtime
    assert Path(str(config.admin.unix)).parent.parent == runtime  # that folder must be the gateway's alone
    units = "".join((FOLDER / unit).read_text() for unit in (UNIT.name, *drop_ins))
    credentials = re.findall(
        r"^LoadCredentialEncrypted=(\w+):/etc/credstore.encrypted/sealgate\.\1$", units, re.MULTILINE
    )
    assert [key.secret for key in config.keys.values()] == [f"systemd:{name}" for name in credentials]
    drains = config.listen.drain + config.limits.max_wait + config.upstream.total_timeout
    assert float(SERVICE["TimeoutStopSec"]) > drains
    assert int(SERVICE["LimitNOFILE"]) > 2 * (config.listen.max_connections + config.upstream.max_connections)


def test_a_wrong_configuration_is_not_tried_again() -> None:
    """2 is its exit code."""
    assert SERVICE["RestartPreventExitStatus"] == "2"
