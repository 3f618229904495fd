"""Configuration: TOML, environment and flags in, one frozen tree out.

`load_config` is the only way in. The tree is validated whole, so that the gateway never meets a bad value
later on, and it holds references to secrets, never secrets (gateway/keys/sources.py reads those). A setting
that has no effect is not accepted.

docs/configuration.md lists all settings.
"""

from sealgate.config.addresses import Address
from sealgate.config.load import check_whole, load_config
from sealgate.config.model import Config, Listen
from sealgate.config.problems import ConfigError

__all__ = ["Address", "Config", "ConfigError", "Listen", "check_whole", "load_config"]
