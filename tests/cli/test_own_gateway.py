"""A command acts on the gateway of its configuration, on the one that the user named, or on none."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from rig.plain import Ended, Gateway, run, running_exchange, running_gateway
from rig.ports import free_port

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

    def run(self, folder: str, *arguments: str, answer: str | None = None) -> Ended:
        (self.folder / folder).mkdir(exist_ok=True)
        return run(*arguments, folder=self.folder / folder, environ=self.environ, answer=answer)

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


def refuses(machine: Machine, folder: str, process: int, difference: str) -> None:
    """Show that no command of a folder's configuration acts, and that each says who was found."""
    for command in COMMANDS:
        ended = machine.run(folder, command)
        assert ended.code == 1, ended
        assert f"at {machine.socket} answers the gateway (process {process}) to " in ended.err
        assert f"to {machine.base_url}, for bots at 127.0.0.1:{machine.port}, not this" in ended.err
        assert difference in ended.err
        assert "give --socket" in ended.err


def test_a_gateway_of_another_exchange_is_named_and_left_alone(tmp_path: Path) -> None:
    with running_machine(tmp_path) as (machine, gateway):
        assert machine.run("production", "halt").code == 0
        machine.configure("rehearsal", "http://127.0.0.1:9", machine.port)
        refuses(machine, "rehearsal", gateway.process.pid, "(base_url is http://127.0.0.1:9 here)")
        assert machine.is_halted()


def test_a_gateway_at_another_address_is_named_and_left_alone(tmp_path: Path) -> None:
    with running_machine(tmp_path) as (machine, gateway):
        assert machine.run("production", "halt").code == 0
        port = free_port()
        machine.configure("rehearsal", machine.base_url, port)
        there = f"(listen.tcp is 127.0.0.1:{port} here, and 127.0.0.1:{machine.port} there)"
        refuses(machine, "rehearsal", gateway.process.pid, there)
        assert machine.is_halted()


def test_a_mistake_in_the_configuration_lets_no_command_act_on_another(tmp_path: Path) -> None:
    with running_machine(tmp_path) as (machine, gateway):
        assert machine.run("production", "halt").code == 0
        machine.configure("rehearsal", "http://127.0.0.1:9", machine.port, "wieght = 2\n")
        refuses(machine, "rehearsal", gateway.process.pid, "(base_url is http://127.0.0.1:9 here)")
        assert machine.is_halted()


def test_the_configurations_own_gateway_is_halted_resumed_and_reloaded(tmp_path: Path) -> None:
    with running_machine(tmp_path) as (machine, _):
        for command, said in zip(
            COMMANDS, ("halted: all bots", "resumed: all bots", "reloaded"), strict=True
        ):
            ended = machine.run("production", command)
            assert (ended.code, said in ended.out) == (0, True), ended


def test_a_socket_that_is_named_is_meant_whichever_gateway_is_there(tmp_path: Path) -> None:
    with running_machine(tmp_path) as (machine, _):
        machine.configure("rehearsal", "http://127.0.0.1:9", free_port())
        for command in COMMANDS:
            ended = machine.run("rehearsal", command, "--socket", machine.socket)
            assert ended.code == 0, ended


def test_without_a_configuration_where_nobody_can_be_asked_it_names_the_gateway_and_does_nothing(
    tmp_path: Path,
) -> None:
    with running_machine(tmp_path) as (machine, gateway):
        assert machine.run("production", "halt").code == 0
        for command in COMMANDS:
            ended = machine.run("elsewhere", command)
            assert ended.code == 2, ended
            assert (
                f"the gateway (process {gateway.process.pid}) to {machine.base_url}, for bots at "
                in ended.err
            )
            assert "give --yes" in ended.err
        assert machine.is_halted()


def test_without_a_configuration_yes_names_the_gateway_and_acts(tmp_path: Path) -> None:
    with running_machine(tmp_path) as (machine, gateway):
        ended = machine.run("elsewhere", "halt", "--yes")
        assert (ended.code, "halted: all bots" in ended.out) == (0, True), ended
        assert f"the gateway (process {gateway.process.pid}) to {machine.base_url}" in ended.err
        assert machine.is_halted()


def test_without_a_configuration_a_person_is_asked(tmp_path: Path) -> None:
    with running_machine(tmp_path) as (machine, _):
        ended = machine.run("elsewhere", "halt", answer="n")
        assert ended.code == 1, ended
        assert f"to {machine.base_url}" in ended.err
        assert "Halt its orders?" in ended.said
        assert not machine.is_halted()
        ended = machine.run("elsewhere", "halt", answer="y")
        assert ended.code == 0, ended
        assert machine.is_halted()
