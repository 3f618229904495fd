import pytest

from sealgate.config.names import SettingPath
from sealgate.config.problems import nearest


@pytest.mark.parametrize(
    ("unknown", "meant"),
    [
        (("listn",), ("listen",)),
        (("BASE_URL",), ("base_url",)),
        (("listen", "tpc"), ("listen", "tcp")),
        (("keys", "main", "secrets"), ("keys", "main", "secret")),
        (("keys", "secret", "api_kye"), ("keys", "secret", "api_key")),
        (("bots", "keys", "tokn"), ("bots", "keys", "token")),
        (("routes", 3, "need"), ("routes", 3, "needs")),
        (("upstream", "max_wait"), ("limits", "max_wait")),
        (("grace",), ("clock", "grace")),
        (("qqq",), None),
    ],
)
def test_the_setting_that_is_probably_meant(unknown: SettingPath, meant: SettingPath | None) -> None:
    assert nearest(unknown) == meant
