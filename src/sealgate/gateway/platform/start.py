"""The error of a gateway that cannot start here."""


class StartError(Exception):
    """Something of this machine keeps it from starting. `str()` is one line: cause and fix."""
