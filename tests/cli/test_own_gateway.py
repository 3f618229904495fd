"""A command acts on the gateway of its configuration, on the one that the user named, or on none."""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from rig.plain import Ended, Gateway, run, running_exchange, running_gateway
from rig.ports import free_port
from sealgate.cli import main
from sealgate.observe.running import UnixConnection

CONFIG = """\
base_url = "{base_url}"
listen.tcp = "127.0.0.1:{port}"
admin.tcp = ""
[keys.main]
api_key = "ak-public-1"
secret = "env:EXCHANGE_SECRET"
"""
COMMANDS = ("halt", "resume", "reload")


class Machine:
    """A machine on which production runs, at the default socket, which a rehearsal's would have too."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder = folder
        self.base_url = base_url
        self.port = free_port()
        self.environ = {"XDG_RUNTIME_DIR": str(folder / "run")}
        (folder / "run").mkdir()
        self.configure("production", base_url, self.port)

    @property
    def socket(self) -> str:
        return str(self.folder / "run" / "sealgate" / "admin.sock")

    def configure(self, name: str, base_url: str, port: int, more: str = "") -> None:
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / "sealgate.toml").write_text(more + CONFIG.format(base_url=base_url, port=port))

    def run(self, folder: str, *arguments: str) -> Ended:
        (self.folder / folder).mkdir(exist_ok=True)
        return run(*arguments, folder=self.folder / folder, environ=self.environ)

    def is_halted(self) -> bool:
        """Ask with a resume of nothing that is halted, by the configuration's own command."""
        said = self.run("production", "resume", "--bot", "local")
        assert said.code == 0, said
        return "halted: all bots" in said.out


@contextlib.contextmanager
def running_machine(folder: Path) -> Iterator[tuple[Machine, Gateway]]:
    with running_exchange() as base_url:
        machine = Machine(folder, base_url)
        with running_gateway(folder=folder / "production", environ=machine.environ) as gateway:
            yield machine, gateway


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Gateway]]:
    with running_machine(tmp_path_factory.mktemp("machine")) as running:
        yield running


@pytest.fixture
def machine(production: tuple[Machine, Gateway]) -> Machine:
    assert production[0].run("production", "resume").code == 0
    return production[0]


@pytest.fixture
def process(production: tuple[Machine, Gateway], machine: Machine) -> int:
    """Return the process of the gateway, which is halted."""
    assert machine.run("production", "halt").code == 0
    return production[1].process.pid


OTHER_URL, OTHER_PORT = "http://127.0.0.1:9", free_port()
REHEARSALS = {
    "another exchange": (OTHER_URL, None, "", f"(base_url is {OTHER_URL} here, and http"),
    "another address, and a mistake": (
        *(None, OTHER_PORT, "wieght = 2\n"),
        f"(listen.tcp is 127.0.0.1:{OTHER_PORT} here, and 127.0.0.1:",
    ),
}


@pytest.mark.parametrize("rehearsal", REHEARSALS.values(), ids=REHEARSALS)
def test_a_gateway_of_another_configuration_is_named_and_left_alone(
    machine: Machine, process: int, rehearsal: tuple[str | None, int | None, str, str]
) -> None:
    url, port, more, difference = rehearsal
    machine.configure("rehearsal", url or machine.base_url, port or machine.port, more)
    for command in COMMANDS:
        ended = machine.run("rehearsal", command)
        assert ended.code == 1, ended
        assert f"the gateway (process {process}) at {machine.socket} forwards to " in ended.err
        assert f"to {machine.base_url}, for bots at 127.0.0.1:{machine.port}, not this" in ended.err
        assert difference in ended.err
        assert f"pass --socket {machine.socket} to act on it" in ended.err
    assert machine.is_halted()


def test_the_configurations_own_gateway_is_halted_resumed_and_reloaded(machine: Machine) -> None:
    for command, said in zip(COMMANDS, ("halted: all bots", "resumed: all bots", "reloaded"), strict=True):
        ended = machine.run("production", command)
        assert (ended.code, said in ended.out) == (0, True), ended


def test_a_file_to_which_an_exchange_was_added_is_still_the_gateways(machine: Machine) -> None:
    several = f"""\
[listen]
tcp = "127.0.0.1:{machine.port}"
[admin]
tcp = ""
[exchanges.one]
base_url = "{machine.base_url}"
[exchanges.new]
base_url = "http://127.0.0.1:9"
[keys.main]
api_key = "ak-public-1"
secret = "env:EXCHANGE_SECRET"
exchanges = ["one", "new"]
"""
    (machine.folder / "grown").mkdir()
    (machine.folder / "grown" / "sealgate.toml").write_text(several)
    assert machine.run("grown", "halt").code == 0
    assert machine.is_halted()
    assert machine.run("production", "resume").code == 0


def test_a_socket_that_is_named_is_meant_whichever_gateway_is_there(machine: Machine) -> None:
    machine.configure("rehearsal", OTHER_URL, OTHER_PORT)
    for command in COMMANDS:
        ended = machine.run("rehearsal", command, "--socket", machine.socket)
        assert ended.code == 0, ended


def test_with_a_file_that_cannot_be_read_the_message_says_how_to_halt_all_the_same(machine: Machine) -> None:
    machine.configure("edited", machine.base_url, machine.port, 'venue = "ser\n')
    ended = machine.run("edited", "halt")
    assert ended.code == 2, ended
    assert "is not TOML" in ended.err
    assert "pass --socket" in ended.err
    assert f"(by default {machine.socket}" in ended.err
    assert not machine.is_halted()
    ended = machine.run("edited", "halt", "--socket", machine.socket)
    assert ended.code == 0, ended
    assert machine.is_halted()


@pytest.mark.parametrize(
    "mistake", ["", "base_url = 7\n"], ids=["no configuration", "one that does not tell"]
)
def test_if_no_configuration_names_the_gateway_it_is_named_and_left_alone(
    machine: Machine, process: int, mistake: str
) -> None:
    (machine.folder / "elsewhere").mkdir(exist_ok=True)
    (machine.folder / "elsewhere" / "sealgate.toml").write_text(mistake)
    for command in COMMANDS:
        ended = machine.run("elsewhere", command)
        assert ended.code == 2, ended
        assert f"(process {process}) at {machine.socket} forwards to {machine.base_url}, for" in ended.err
        assert (
            f"no configuration names it; nothing has changed; pass --socket {machine.socket} to" in ended.err
        )
    assert machine.is_halted()


def test_a_mistake_hides_no_gateway_whose_socket_is_configured(machine: Machine) -> None:
    text = f'admin.unix = "{machine.socket}"\nbase_url = 7\n'
    (machine.folder / "edited").mkdir(exist_ok=True)
    (machine.folder / "edited" / "sealgate.toml").write_text(text)
    ended = machine.run("edited", "halt")
    assert ended.code == 0, ended
    assert ended.err.endswith("sealgate: this does not survive a restart: no journal.file is set\n")
    assert ended.out.startswith(f"gateway to {machine.base_url} at {machine.socket}\n")
    assert "warning: sealgate.toml: base_url" in ended.err
    assert machine.is_halted()


def test_another_user_is_told_whose_command_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: UnixConnection) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(UnixConnection, "connect", refuse)
    result = CliRunner().invoke(main, ["halt", "--socket", str(tmp_path / "admin.sock")])
    assert result.exit_code == 1
    assert "admin.sock: permission denied; run this as the gateway's user" in result.output
