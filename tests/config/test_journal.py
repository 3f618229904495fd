from pathlib import Path

import pytest

from sealgate.config import Config, ConfigError, load_config

ONE_KEY = {
    "SEALGATE_BASE_URL": "https://api.example.com",
    "SEALGATE_KEYS__MAIN__API_KEY": "ak-1",
    "SEALGATE_KEYS__MAIN__SECRET": "env:EXCHANGE_SECRET",
}


def load(**settings: str) -> Config:
    given = {f"SEALGATE_JOURNAL__{name.upper()}": value for name, value in settings.items()}
    return load_config(None, environ=ONE_KEY | given)


def test_nothing_is_kept_unless_a_file_is_named() -> None:
    journal = load().journal
    assert journal.file is None
    assert (journal.keep, journal.max_size, journal.on_failure) == (86_400.0, 64 * 1024**2, "refuse")


def test_the_journals_settings(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    journal = load(file=str(file), keep="3600", max_size="1 GiB", on_failure="continue").journal
    assert (journal.file, journal.keep, journal.max_size) == (file, 3600.0, 1024**3)
    assert journal.on_failure == "continue"


@pytest.mark.parametrize(
    ("name", "value"), [("keep", "0"), ("keep", "1 day"), ("max_size", "0"), ("on_failure", "ignore")]
)
def test_what_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"SEALGATE_JOURNAL__{name.upper()}: "):
        load(**{name: value})
