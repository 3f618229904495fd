import pytest

from sealgate.config.names import SettingPath
from sealgate.config.settings import find_setting


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (("base_url",), "base_url"),
        (("listen", "tcp"), "listen.tcp"),
        (("keys", "main", "secret"), "keys.*.secret"),
        (("routes", 0, "match"), "routes.*.match"),
    ],
)
def test_the_setting_at_a_path(path: SettingPath, name: str) -> None:
    assert find_setting(path).name == name


@pytest.mark.parametrize("path", [("keys",), ("keys", "main"), ("listen", "tpc"), ("listen", "tcp", "port")])
def test_what_is_no_setting(path: SettingPath) -> None:
    with pytest.raises(KeyError):
        find_setting(path)
