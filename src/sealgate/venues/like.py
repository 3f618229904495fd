"""`like`: a venue's file that starts from another one. Their texts in, one document out."""

from collections.abc import Callable, Mapping
from typing import Any

from sealgate.venues.document import Document, Origin, Path

# Takes what `like` says and the file that says so; returns the name and the text of the file that is meant.
Find = Callable[[str, str], tuple[str, str]]

_FILES = 3  # a file, the one that it is like, and the one that this is like in turn
_ADDS = "+"
_OWN = ("name", "checked", "like")  # what these say, they say of one file


def find_none(like: str, file: str) -> tuple[str, str]:
    """Refuse to look for another file."""
    raise ValueError(f"{like!r} cannot be looked up for {file}; write the whole file")


def read_document(file: str, text: str, find: Find) -> Document:
    """Read a file, over the file that it is like. Raises VenueError.

    `find` raises ValueError with the cause and the fix where there is no such file.
    """
    files = [Document(file, text)]
    while (like := files[-1].data.get("like")) is not None:
        last = files[-1]
        if not isinstance(like, str):
            raise last.error(("like",), "like must be a text")
        try:
            found = find(like, last.file)
        except ValueError as error:
            raise last.error(("like",), f"like: {error}") from None
        if found[0] in {one.file for one in files}:
            raise last.error(("like",), f"like = {like!r} leads back to {found[0]}; start from another file")
        if len(files) == _FILES:
            way = " is like ".join([*(one.file for one in files), found[0]])
            raise files[0].error(("like",), f"like goes back too far ({way}); start from {files[2].file}")
        files.append(Document(*found))
    whole = files.pop()
    while files:
        whole = _over(files.pop(), whole)
    return whole


def _over(upper: Document, lower: Document) -> Document:
    """Return the document of a file over that of the file that it is like."""
    origins: dict[Path, Origin] = {(): (upper, ())}

    def merged(own: Mapping[str, Any], own_at: Path, base: Mapping[str, Any], at: Path) -> dict[str, Any]:
        for name in base:
            origins[(*at, name)] = lower, (*at, name)
        table = dict(base)
        for key, value in own.items():
            name, here, there = key.removesuffix(_ADDS), (*own_at, key), (*at, key.removesuffix(_ADDS))
            if key != name and name in own:
                raise upper.error(here, f"{name} replaces and {key} adds; write one of them")
            origins[there] = upper, here
            below = base.get(name)
            # There are four cases: what replaces, or has nothing to add to; tables; lists; what cannot add.
            if key == name or below is None:
                table[name] = value
            elif isinstance(value, dict) and isinstance(below, dict):
                table[name] = merged(value, here, below, there)
            elif isinstance(value, list | str) and isinstance(below, list | str):
                added, kept = _listed(value), _listed(below)
                table[name] = [*added, *kept]  # of rules for replies, the first that matches decides
                for row in range(len(kept)):
                    origins[(*there, len(added) + row)] = lower, (*there, row)
            else:
                raise upper.error(here, f"{key} cannot add to {name} there; write {name}, which replaces it")
        return table

    base = {name: value for name, value in lower.data.items() if name not in _OWN}
    return upper.with_data(merged(upper.data, (), base, ()), origins)


def _listed(value: list[Any] | str) -> list[Any]:
    """Return a list; one text alone is a list of one."""
    return [value] if isinstance(value, str) else value
