"""Output of commands for people: tables, and on a terminal a note while a command waits."""

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table


def plain_table(*titles: str) -> Table:
    """Return an empty table with a line below its titles."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for title in titles:
        table.add_column(title)
    return table


def drawn(content: RenderableType) -> str:
    """Return the content as text, as wide as the terminal (without one, $COLUMNS or 80 columns)."""
    console = Console()
    with console.capture() as captured:
        console.print(content)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
