from sealgate.config.settings import all_settings
from sealgate.config.starter import MANUAL


def test_every_setting_is_in_the_manual_and_the_other_way_round() -> None:
    assert list(MANUAL) == [setting.name for setting in all_settings()]
