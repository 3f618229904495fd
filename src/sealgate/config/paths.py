"""A setting's path in the tree, and the two ways to write it: as TOML does, as the environment does."""

import json
import re

SettingPath = tuple[str | int, ...]

PREFIX = "SEALGATE_"

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def dotted(path: SettingPath) -> str:
    """Write a path as TOML does: `keys.main.secret`, `routes[0].match`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{_key(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def variable(path: SettingPath) -> str:
    """Write a path as the environment does: `SEALGATE_KEYS__MAIN__SECRET`."""
    return PREFIX + "__".join(str(part).upper() for part in path)


def _key(part: str) -> str:
    return part if _BARE_KEY.fullmatch(part) else json.dumps(part)
