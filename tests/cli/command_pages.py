"""docs/commands.md and the manual page, made of what `--help` says. tests/venues/pages.py writes both."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from sealgate.cli import main

MANUAL = Path(__file__).parents[2] / "deploy" / "man" / "sealgate.1"
DATE = "2026-11-28"
PIPE = "\\|"  # within a table

_FILES = (
    (
        "sealgate.toml",
        "The configuration in the working folder, unless --config or SEALGATE_CONFIG names another.",
    ),
    ("$XDG_RUNTIME_DIR/sealgate/admin.sock", "The admin socket, for halt, resume and reload."),
    ("/tmp/sealgate-UID/admin.sock", "The admin socket if XDG_RUNTIME_DIR is not set."),  # noqa: S108 - a name to read
)
_ENVIRONMENT = (
    ("SEALGATE_CONFIG", "The configuration file, unless --config names one."),
    (
        "SEALGATE_TABLE__SETTING",
        "A setting of the configuration, over the file: SEALGATE_LIMITS__MAX_WAIT is limits.max_wait.",
    ),
)
_CODES = (
    ("0", "Success."),
    ("1", "A check or a run failed."),
    ("2", "The command line or the configuration is wrong."),
)
_HEAD = """\
.\\" Made of what --help says, by tests/cli/command_pages.py.
.TH SEALGATE 1 "{date}" "Sealgate" "User Commands"
.SH NAME
sealgate \\- signing gateway for trading bots
.SH SYNOPSIS
.B sealgate
.I COMMAND
.RI [ OPTIONS ]
.SH DESCRIPTION
"""


class Page(NamedTuple):
    """What `--help` says of one command; `name` is "sealgate config init"."""

    name: str
    usage: str
    paragraphs: list[str]
    options: list[tuple[str, str]]


def commands() -> Iterator[Page]:
    """Yield every command, those of a group after it."""
    yield from _below(main, click.Context(main, info_name="sealgate"))


def _below(group: click.Group, context: click.Context) -> Iterator[Page]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        own = click.Context(command, parent=context, info_name=name)
        yield _page(command, own)
        if isinstance(command, click.Group):
            yield from _below(command, own)


def _page(command: click.Command, context: click.Context) -> Page:
    records = (one.get_help_record(context) for one in command.params)
    help_text = (command.help or "").partition("\f")[0]
    return Page(
        context.command_path,
        " ".join((context.command_path, *command.collect_usage_pieces(context))),
        [" ".join(one.split()) for one in help_text.split("\n\n") if one.strip()],
        [(names, " ".join(text.split())) for names, text in filter(None, records)],
    )


def commands_block() -> str:
    """Return the reference for docs/commands.md: an overview, then each command with its options."""
    pages = list(commands())
    rows = [
        f"| [`{page.name}`](#{page.name.replace(' ', '-')}) | {_prose(page.paragraphs[0])} |"
        for page in pages
    ]
    return (
        "\n".join(("| command | does |", "|---|---|", *rows, "", *map(_section, pages))).rstrip("\n") + "\n"
    )


def _section(page: Page) -> str:
    parts = [f"## `{page.name}`", f"```text\n{page.usage}\n```", *map(_prose, page.paragraphs)]
    if page.options:
        rows = [f"| `{names.replace('|', PIPE)}` | {_prose(text)} |" for names, text in page.options]
        parts.append("\n".join(("| option | meaning |", "|---|---|", *rows)))
    return "\n\n".join(parts) + "\n"


def _prose(text: str) -> str:
    """Escape what Markdown would read, except in code."""
    pieces = re.split(r"(`[^`]+`)", text)
    return "".join(one if one.startswith("`") else re.sub(r"([*|])", r"\\\1", one) for one in pieces)


def manual() -> str:
    """Return the manual page, for man(1)."""
    lines = [_HEAD.format(date=DATE), f"{_troff(main.help or '')}\n", ".SH COMMANDS\n"]
    for page in commands():
        usage = page.usage.removeprefix(page.name).strip()
        lines += [f'.SS "{page.name}"\n', f".B {_troff(page.name)}\n", f"{_troff(usage)}\n" if usage else ""]
        for paragraph in page.paragraphs:
            lines += [".PP\n", f"{_troff(paragraph)}\n"]
        lines += _terms(page.options)
    for title, terms in (("FILES", _FILES), ("ENVIRONMENT", _ENVIRONMENT), ("EXIT STATUS", _CODES)):
        lines += [f'.SH "{title}"\n', *_terms(terms)]
    return "".join(lines)


def _terms(terms: tuple[tuple[str, str], ...] | list[tuple[str, str]]) -> list[str]:
    return [f".TP\n.B {_troff(name)}\n{_troff(text)}\n" for name, text in terms]


def _troff(text: str) -> str:
    """Escape what troff would read: backslashes, hyphens of options, and a leading period or quote."""
    escaped = text.replace("`", "").replace("\\", "\\e").replace("-", "\\-")
    lines = re.sub(r"(?<=[.;]) ", "\n", escaped).split("\n")  # a sentence a line
    return "\n".join(f"\\&{line}" if line[:1] in ("'", ".") else line for line in lines)
