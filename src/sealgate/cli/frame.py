"""The parts that all commands share: lazy loading, one-line errors, standard streams, common options."""

import errno
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sealgate.machine.terminal import leave_with_error

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from sealgate.config import Address
    from sealgate.venues.venue import Venue

_FEW = 8  # options that fit into a line
_FIXES = {
    errno.EADDRINUSE: "stop the program that uses it, or choose another port",
    errno.EADDRNOTAVAIL: "choose an address of this machine",
    errno.ENOSPC: "free space on the disk of its output",
    errno.EACCES: "choose a port above 1023, or give this user the permission",
}
_STREAMS = range(3)


class FiniteRange(click.FloatRange):
    """A range that excludes `nan`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse a value that is not a finite number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class AddressParam(click.ParamType["Address"]):
    """`HOST:PORT`, or `[HOST]:PORT` for IPv6."""

    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> "Address":
        """Parse the address as the configuration does."""
        from sealgate.config.addresses import parse_address

        try:
            return parse_address(str(value))
        except ValueError as error:
            self.fail(f"{value} {error}", param, ctx)


_Command = TypeVar("_Command", bound=Callable[..., Any])


class Program(click.Group):
    """A group whose commands are rows of a table: name -> (module, help). Only the called one is imported."""

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.table = table

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete commands from the table, without importing any; complete options as click does."""
        from click.shell_completion import CompletionItem

        options = super(click.Group, self).shell_complete(ctx, incomplete) if incomplete[:1] == "-" else []
        rows = self.table.items()
        return [
            *(CompletionItem(name, help=text) for name, (_, text) in rows if name.startswith(incomplete)),
            *options,
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the most similar command if the given one does not exist."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=self.table, ctx=ctx
            ) from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the names in the table's order."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's interface
        """Import a command's module."""
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute or "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's interface
        """List the commands from the table, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the program, even if standard streams are closed or full."""
        open_closed_streams()
        try:
            return super().main(*args, **options)
        except OSError:  # there was no space for the error on stderr
            sys.exit(2)
        finally:
            drop_unwritable_output()

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Read the arguments; --help and --version print at once, which may fail."""
        with errors_in_one_line():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command inside the one place that reports errors."""
        with errors_in_one_line(), _options_named():
            return super().invoke(ctx)


@contextmanager
def _options_named() -> Iterator[None]:
    """List a command's options, if they are few, when an unknown option resembles none of them."""
    try:
        yield
    except click.NoSuchOption as error:
        params = error.ctx.command.params if error.ctx else []
        known = [option for one in params if isinstance(one, click.Option) for option in one.opts]
        if error.possibilities or not 0 < len(known) <= _FEW:
            raise
        verb = "is" if len(known) == 1 else "are"
        raise click.UsageError(f"{error.message} There {verb} {', '.join(known)}.", error.ctx) from None


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Turn an error that the user can fix into `sealgate: error: …` and exit code 2, without a traceback."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise  # click's own, which click reports
    except _explained_already() as error:
        leave_with_error(str(error))
    except OSError as error:
        leave_with_error(_explained(error))


def _explained_already() -> tuple[type[Exception], ...]:
    """Return the errors whose text already has cause and fix."""
    # Python evaluates this only after an exception, so --help does not pay for the imports.
    from sealgate.config import ConfigError
    from sealgate.keys.files import SecretError
    from sealgate.machine.process import StartError
    from sealgate.orders.journal import JournalError

    return ConfigError, SecretError, JournalError, StartError


def _explained(error: OSError) -> str:
    """Return the cause and, if there is one, the fix. asyncio puts the address into the cause."""
    cause = error.strerror or str(error)
    where = f"{os.fspath(error.filename)}: " if isinstance(error.filename, str) else ""
    fix = _FIXES.get(error.errno or 0) if error.filename is None else None
    return f"{where}{cause}" + (f"; {fix}" if fix else "")


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def config_option(command: _Command) -> _Command:
    """Add `--config FILE`, which arrives as the argument `config_file`, for `load_config`."""
    text = "Configuration file. Default: $SEALGATE_CONFIG, else ./sealgate.toml if it exists."
    return _config_option(text, is_used=True)(command)


def exchange_option(text: str) -> Callable[[_Command], _Command]:
    """Add `--exchange NAME`, which arrives as the argument `exchange_name`."""
    return click.option("--exchange", "exchange_name", metavar="NAME", help=text)


def unused_config_option(command: _Command) -> _Command:
    """Add `--config FILE` to a command that reads no configuration, so that every command accepts it."""
    return _config_option("Accepted, as by every command, but not read.", is_used=False)(command)


def _config_option(text: str, *, is_used: bool) -> Callable[[_Command], _Command]:
    return click.option(
        "--config",
        "config_file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        expose_value=is_used,
        help=text,
    )


def open_closed_streams() -> None:
    """Open /dev/null in place of each standard stream that is closed.

    Otherwise the next file or socket would get the stream's number, and messages for people would be written
    into it; libuv aborts.
    """
    for number in _STREAMS:
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest free number, which is the stream's; child programs inherit it.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    # Python has None in their place.
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def drop_unwritable_output() -> None:
    """Drop output that cannot be written: at exit Python would try again, and exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def found_venue(name: str) -> "Venue":
    """Return the venue with this name or in this file; exit with code 2 if there is none."""
    from sealgate.config.venues import parse_venue

    try:
        return parse_venue(name)
    except ValueError as error:
        leave_with_error(str(error))
