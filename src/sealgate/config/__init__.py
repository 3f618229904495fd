"""Settings in, one frozen tree out. `load_config` is the way in, `Config` what comes out.

Pure:
names  paths of settings, as TOML and the environment write them, and the names that nobody may choose
added  the text of a file with an exchange added

Shell:
settings       one model per table of the file; a new setting is a field here
tree           the whole, `Config`, and what holds for one of its exchanges, `ExchangeConfig`
pools          what an exchange counts together, by the venue's file and the configuration
values         the types of its fields: what may be written, with our words if it is something else
load           finds the file, reads the sources, checks the whole
sources        the file, the environment, flags
consistency    rules across tables
problems       the errors of a configuration, one line each
addresses      where to listen, where the exchange is
references     where a secret is (`file:`, `env:`, …)
files          files that the configuration names
venues         the setting `venue`, and the files that come with the program
venue_names    names that no venue has, and what to write instead
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
