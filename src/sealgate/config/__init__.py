"""Configuration: TOML, environment and flags in, one frozen tree out.

`load_config` is the only way in. The tree is validated whole, so that the gateway never meets a bad value
later on, and it holds references to secrets, never secrets (gateway/keys/sources.py reads those). A setting
that has no effect is not accepted.

docs/configuration.md lists all settings.
"""

from sealgate.config.address import Address
from sealgate.config.base_url import BaseUrl
from sealgate.config.load import check_whole, load_config
from sealgate.config.model import (
    Admin,
    Bot,
    Clock,
    Config,
    Key,
    Limits,
    Listen,
    Log,
    Route,
    Signing,
    Upstream,
)
from sealgate.config.problems import ConfigError

__all__ = [
    "Address",
    "Admin",
    "BaseUrl",
    "Bot",
    "Clock",
    "Config",
    "ConfigError",
    "Key",
    "Limits",
    "Listen",
    "Log",
    "Route",
    "Signing",
    "Upstream",
    "check_whole",
    "load_config",
]
