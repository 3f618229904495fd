from sealgate.config.settings import all_settings


def test_every_setting_says_what_it_is_for() -> None:
    assert [setting.name for setting in all_settings() if not setting.description.endswith(".")] == []
