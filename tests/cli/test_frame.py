import errno
import os
import socket
import subprocess
import sys
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator

import click
import pytest
from click.testing import CliRunner

from sealgate import __version__
from sealgate.cli import COMMANDS, main
from sealgate.cli.frame import Program, config_option
from sealgate.config import ConfigError
from sealgate.keys.files import SecretError
from sealgate.machine.process import StartError
from sealgate.machine.terminal import plain_cause

HEAVY = ("aiohttp", "asyncio", "prometheus_client", "pydantic", "rich", "structlog")


def raising(error: BaseException) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


@click.group(cls=Program, table={})
def program() -> None:
    """Stand in for the whole program, with a command that fails in one way each."""


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], tuple[int, str]]:
    """Return a function that runs a command which raises an error, and returns exit code and stderr."""

    def run(error: BaseException) -> tuple[int, str]:
        command = click.Command("fails", callback=raising(error))
        monkeypatch.setattr(program, "get_command", lambda _ctx, _name: command)
        result = CliRunner().invoke(program, ["fails"])
        return result.exit_code, result.stderr

    return run


def test_help_and_version_import_nothing_heavy() -> None:
    code = (
        "import sys; from sealgate.cli import main\n"
        "for option in ('--help', '-h', '--version'): main([option], standalone_mode=False)\n"
        f"print('heavy:', *sorted(set(sys.modules) & set({HEAVY!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy:"


def test_help_lists_each_command_with_its_line_of_the_table() -> None:
    lines = CliRunner().invoke(main, ["--help"]).stdout.splitlines()
    listed = dict(line.split(maxsplit=1) for line in lines[lines.index("Commands:") + 1 :])
    assert listed == {name: text for name, (_, text) in COMMANDS.items()}


def test_version() -> None:
    result = CliRunner().invoke(main, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"sealgate {__version__}\n")


@pytest.mark.parametrize(
    ("typed", "told"),
    [("tokn", "No such command 'tokn'. Did you mean 'token'?"), ("qqq", "No such command 'qqq'.\n")],
)
def test_an_unknown_command_names_the_nearest(typed: str, told: str) -> None:
    result = CliRunner().invoke(main, [typed])
    assert result.exit_code == 2
    assert told in result.stderr


def test_an_unknown_option_names_the_nearest() -> None:
    result = CliRunner().invoke(main, ["check", "--ofline"])
    assert result.exit_code == 2
    assert "Did you mean '--offline'?" in result.stderr


ERRORS: dict[str, tuple[BaseException, str]] = {
    "configuration": (
        ConfigError(["a.toml: listn: unknown setting", "SEALGATE_X: unknown setting"]),
        "sealgate: error: a.toml: listn: unknown setting\nsealgate: error: SEALGATE_X: unknown setting\n",
    ),
    "secret": (
        SecretError("env:S", "the variable is not set", "set S"),
        "sealgate: error: env:S: the variable is not set; set S\n",
    ),
    "start": (
        StartError("cannot listen on 127.0.0.1:1: another program listens there; set listen.tcp"),
        "sealgate: error: cannot listen on 127.0.0.1:1: another program listens there; set listen.tcp\n",
    ),
    "occupied port": (
        OSError(errno.EADDRINUSE, "address already in use"),
        "sealgate: error: address already in use; stop the program that uses it, or choose another port\n",
    ),
    "privileged port": (
        PermissionError(errno.EACCES, "permission denied"),
        "sealgate: error: permission denied; choose a port above 1023, or give this user the permission\n",
    ),
    "file": (
        FileNotFoundError(errno.ENOENT, "No such file or directory", "body.json"),
        "sealgate: error: body.json: No such file or directory\n",
    ),
    "without a number": (OSError("name resolution failed"), "sealgate: error: name resolution failed\n"),
}


@pytest.mark.parametrize(("error", "told"), ERRORS.values(), ids=ERRORS)
def test_an_error_that_the_user_can_fix_is_told_without_a_traceback(
    fail: Callable[[BaseException], tuple[int, str]], error: BaseException, told: str
) -> None:
    assert fail(error) == (2, told)


def in_a_shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose name is `$S`, as a shell redirects it."""
    whole = ["sh", "-c", f'S="{sys.executable} -m sealgate"; {line}']
    # With that variable, which images like to set, nothing is left in a buffer for the end.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(whole, capture_output=True, text=True, check=False, env=environ)


@pytest.mark.parametrize("arguments", ["token new", "sandbox --listen 127.0.0.1:0"])
def test_output_that_finds_no_space_is_told_in_one_line(arguments: str) -> None:
    done = in_a_shell(f"$S {arguments} > /dev/full")
    assert done.returncode == 2
    assert done.stderr == "sealgate: error: No space left on device; free space on the disk of its output\n"


def test_a_cause_that_finds_no_space_leaves_its_exit_code() -> None:
    assert in_a_shell("$S --nothing 2> /dev/full").returncode == 2


@pytest.mark.parametrize("line", ["--help <&-", "token new >&-", "config schema 2>&-"])
def test_closed_standard_streams_lead_nowhere(line: str) -> None:
    done = in_a_shell(f"$S {line}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_a_check_with_closed_standard_streams(closed: str) -> None:
    """It opens sockets, files and an event loop, none of which may get their numbers."""
    key = "SEALGATE_KEYS__MAIN__API_KEY=a SEALGATE_KEYS__MAIN__SECRET=env:X X=correct-horse-battery-staple"
    done = in_a_shell(f"export SEALGATE_BASE_URL=http://127.0.0.1:9 {key}; $S check {closed}")
    assert (done.returncode, done.stderr) == (1, ""), "the exchange is not there"


def test_clicks_own_ways_out_stay_as_they_are(fail: Callable[[BaseException], tuple[int, str]]) -> None:
    assert fail(click.exceptions.Exit(0)) == (0, "")
    assert fail(click.exceptions.Exit(1)) == (1, "")
    assert fail(click.Abort()) == (1, "Aborted!\n")
    assert fail(click.ClickException("no"))[0] == 1
    assert fail(click.UsageError("no"))[0] == 2


def test_a_fault_of_the_program_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    command = click.Command("fails", callback=raising(ZeroDivisionError()))
    monkeypatch.setattr(program, "get_command", lambda _ctx, _name: command)
    assert isinstance(CliRunner().invoke(program, ["fails"]).exception, ZeroDivisionError)


def test_the_configuration_option_hands_over_a_path() -> None:
    @click.command()
    @config_option
    def command(config_file: object) -> None:
        click.echo(repr(config_file))

    run = CliRunner().invoke
    assert run(command, []).stdout == "None\n"
    assert run(command, ["--config", "a.toml"]).stdout == "PosixPath('a.toml')\n"
    assert run(command, ["--config", "/"]).exit_code == 2


def commands_of(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each command that can be run, with its words; a group that runs by itself is one, too."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands_of(command, (*path, name))


@pytest.mark.parametrize("command", [pytest.param(one, id=" ".join(path)) for path, one in commands_of(main)])
def test_every_command_accepts_a_configuration_file(command: click.Command) -> None:
    taking = [one for one in command.params if "--config" in one.opts]
    assert [(one.metavar, one.nargs) for one in taking] == [("FILE", 1)]


def test_a_command_that_reads_no_configuration_ignores_the_file() -> None:
    for arguments in (["venues"], ["venues", "list"], ["venues", "show", "okx"], ["config", "schema"]):
        plain = CliRunner().invoke(main, arguments)
        told = CliRunner().invoke(main, [*arguments, "--config", "nowhere.toml"])
        assert (told.exit_code, told.stdout) == (0, plain.stdout)
    assert CliRunner().invoke(main, ["token", "new", "--config", "nowhere.toml"]).exit_code == 0
    assert CliRunner().invoke(main, ["completion", "--config", "nowhere.toml", "bash"]).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["serve", "--prot"], "No such option '--prot'. There are --config, --listen, --admin, --base-url,"),
        (["serve", "--lsten"], "No such option '--lsten'. Did you mean '--listen'?"),
        (["sandbox", "--prot"], "No such option '--prot'.\n"),
        (["keys", "--prot"], "No such option '--prot'.\n"),
        (["completion", "--prot"], "No such option '--prot'. There is --config.\n"),
    ],
)
def test_an_option_that_does_not_exist_names_those_that_do(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


CAUSES = {
    "asyncio's sentence": (
        OSError(errno.EADDRNOTAVAIL, "error while attempting to bind on address ('192.0.2.1', 1): …"),
        "cannot assign requested address",
    ),
    "a port in use": (OSError(errno.EADDRINUSE, "Address already in use"), "another program listens there"),
    "no such host": (socket.gaierror(-2, "Name or service not known"), "name or service not known"),
    "a time-out": (TimeoutError("timed out"), "timed out"),
    "nothing said": (OSError(), "oserror"),
}


@pytest.mark.parametrize(("error", "cause"), CAUSES.values(), ids=CAUSES)
def test_plain_cause(error: OSError, cause: str) -> None:
    assert plain_cause(error) == cause


def new_token() -> str:
    result = CliRunner().invoke(main, ["token", "new"])
    assert result.exit_code == 0
    assert result.stdout.endswith("\n")
    return result.stdout[:-1]


def test_a_token_has_256_bits_and_needs_no_quoting() -> None:
    token = new_token()
    assert len(urlsafe_b64decode(token + "=")) == 32
    assert token.replace("-", "").replace("_", "").isalnum()


def test_no_token_comes_twice() -> None:
    assert len({new_token() for _ in range(20)}) == 20


@pytest.mark.parametrize(
    "words", [("demo", "--seconds", "nan"), ("discover", "--every", "nan"), ("sandbox", "--ban-s", "nan")]
)
def test_a_time_that_is_no_number_is_refused(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "'nan' is not a finite number" in result.output
