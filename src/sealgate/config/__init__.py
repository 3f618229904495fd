"""Settings in, one frozen tree out. `load_config` is the entrance, `Config` the result.

Pure:
names  paths of settings, as TOML and the environment write them, and the reserved names
added  the text of a file with an exchange added

Shell:
settings       one model per table of the file; a new setting is a field here
tree           the whole configuration, `Config`, and the settings in effect for one exchange
pools          the pools of an exchange's rate limits, from the venue's file and the configuration
values         the types of its fields: the accepted values, and our words for errors
load           finds the file, reads the sources, checks the whole
sources        the file, the environment, flags
consistency    rules across tables
problems       the errors of a configuration, one line each
addresses      listen addresses, base URLs, proxies
references     references to secrets (`file:`, `env:`, …)
files          files named in the configuration
venues         the setting `venue`, and the built-in venue files
venue_names    other names of exchanges, and what to write instead
listing        all settings as a flat list
effective      each setting with its source: `config show`
first_file     the short file that `config init` writes
first_read     the first request to send through a gateway
starter        the commented file with every setting
editor_schema  the JSON Schema for editors
"""

from sealgate.config.addresses import Address, OwnAddress
from sealgate.config.load import check_whole, load_config
from sealgate.config.problems import ConfigError
from sealgate.config.settings import Listen
from sealgate.config.tree import Config, ExchangeConfig

__all__ = [
    "Address",
    "Config",
    "ConfigError",
    "ExchangeConfig",
    "Listen",
    "OwnAddress",
    "check_whole",
    "load_config",
]
