"""The live page's files: package data, read once, served as they are: nothing is built or fetched."""

from importlib.resources import files
from typing import NamedTuple

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# The only ones that are served: a path of a request never names a file.
_NAMES = (
    "index.html",
    "icon.svg",
    "page.css",
    "charts.css",
    "page.js",
    "stream.js",
    "charts.js",
    "bands.js",
    "lists.js",
    "parts.js",
    "requests.js",
    "words.js",
    "vendor/uPlot.iife.min.js",
    "vendor/uPlot.min.css",
)


class Asset(NamedTuple):
    """One file."""

    media_type: str
    body: bytes


def load_assets() -> dict[str, Asset]:
    """Read them all, by name."""
    folder = files("sealgate.admin").joinpath("page")
    return {
        name: Asset(_TYPES[name.rpartition(".")[2]], folder.joinpath(*name.split("/")).read_bytes())
        for name in _NAMES
    }
