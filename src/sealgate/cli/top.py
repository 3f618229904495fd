"""`sealgate top`: the live page's figures in a terminal, from the same stream."""

import json
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealgate.cli.admin import GoneError, admin_address, asking
from sealgate.cli.frame import AddressParam, config_option
from sealgate.machine.terminal import leave

if TYPE_CHECKING:
    from sealgate.cli.top_screen import Inspector
    from sealgate.config import Address

_OUTCOMES = click.Choice(("done", "refused", "not_sent", "unknown"))
_PATIENCE_S = 10.0  # pictures come twice a second
_OTHER_WAY = ", or use --admin HOST:PORT"


@click.command("top")
@config_option
@click.option("--once", is_flag=True, help="Print the figures once and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one line per update.")
@click.option(
    "--admin", type=AddressParam(), metavar="HOST:PORT", help="The gateway's admin address (admin.tcp)."
)
@click.option("--exchange", metavar="NAME", default="", help="Show this exchange in full, of several.")
@click.option("--requests", is_flag=True, help="Show the latest requests; in a terminal, press r.")
@click.option("--bot", metavar="BOT", default="", help="Only the latest requests of this bot.")
@click.option("--outcome", type=_OUTCOMES, help="Only the latest requests with this outcome.")
def command(  # noqa: PLR0913 - its options
    config_file: Path | None,
    admin: "Address | None",
    exchange: str,
    bot: str,
    outcome: str | None,
    *,
    once: bool,
    as_json: bool,
    requests: bool,
) -> None:
    """Show limit usage, bots, queues, clock, orders in doubt and recent errors.

    Of several exchanges it shows each at a glance, and the keys of all or of --exchange. It reads admin.tcp
    of the gateway's configuration, or the default address if no configuration is found, until Ctrl-C.
    """
    from sealgate.cli.top_screen import Inspector

    place = (admin, admin.host) if admin else admin_address(config_file, _OTHER_WAY)
    inspector = Inspector(requests or bool(bot or outcome), bot, outcome or "", exchange)
    try:
        with closing(pictures(place, inspector)) as stream:
            _show(stream, inspector, once=once, as_json=as_json)
    except GoneError as error:
        leave(str(error))
    except KeyboardInterrupt:
        pass


def _show(stream: Iterator[dict[str, Any]], inspector: "Inspector", *, once: bool, as_json: bool) -> None:
    from sealgate.cli.tables import drawn
    from sealgate.cli.top_screen import screen

    if as_json:
        for picture in stream:
            latest = {"latest_requests": inspector.matching()} if inspector.is_open else {}
            click.echo(
                json.dumps((shown(picture, inspector.exchange) if inspector.exchange else picture) | latest)
            )
            if once:
                return
    elif once:
        click.echo(drawn(screen(shown(next(stream), inspector.exchange), inspector)))
    else:
        _show_live((shown(picture, inspector.exchange) for picture in stream), inspector)


def shown(picture: dict[str, Any], exchange: str = "") -> dict[str, Any]:
    """Return a picture that can be shown, about one exchange if it is named.

    Raises GoneError for the picture of an older gateway, and for an exchange that is not there.
    """
    if not {"words", "exchanges"} <= picture.keys():
        raise GoneError("the running gateway is older than this command; restart it, or use --json")
    names = [one["name"] for one in picture["exchanges"]]
    if exchange and exchange not in names:
        raise GoneError(f"the gateway has no exchange {exchange}; known: {', '.join(names)}")
    return picture


def _show_live(stream: Iterator[dict[str, Any]], inspector: "Inspector") -> None:
    from rich.console import Console
    from rich.live import Live

    from sealgate.cli.top_screen import has_keyboard, keyboard, screen

    console = Console()
    has_keys = console.is_terminal and has_keyboard()
    if has_keys:  # a shell's script starts what it puts in the background with SIGINT ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
    latest: dict[str, Any] = {}

    def draw() -> None:
        if latest:
            view.update(screen(latest, inspector, has_keys=has_keys), refresh=True)

    def press(key: str) -> None:
        if key == "q":
            os.kill(os.getpid(), signal.SIGINT)
        inspector.press(key)
        draw()

    with (
        Live(console=console, screen=console.is_terminal, auto_refresh=False) as view,
        keyboard(press) if has_keys else nullcontext(),
    ):
        for picture in stream:
            latest = picture
            draw()


def pictures(place: tuple["Address", str], inspector: "Inspector") -> Generator[dict[str, Any], None, None]:
    """Yield each picture as it comes, the first at once. Raises GoneError.

    While the inspector is open, its rows are refreshed before each: the latest requests, the latest first.
    """
    with asking(place, "/events", _PATIENCE_S) as events:
        for line in events:
            if not line.startswith(b"data: "):  # each such line is one whole document here
                continue
            if inspector.wants_rows:
                with asking(place, "/requests.json", _PATIENCE_S) as reply:
                    inspector.rows = json.load(reply)["requests"]
            yield json.loads(line.removeprefix(b"data: "))["now"]
    raise GoneError("the gateway has ended")
