"""An exchange added to the commented file of each venue: the result is valid, and the rest means the same."""

from pathlib import Path

import pytest

from sealgate.config import load_config
from sealgate.config.added import Exchange, with_exchange
from sealgate.config.starter import starter_text
from sealgate.config.venues import built_in_venue, venue_names


@pytest.mark.parametrize("name", venue_names())
def test_a_commented_file_of_any_venue_can_have_another_exchange(name: str, tmp_path: Path) -> None:
    """Its comments stay, and its exchange is as it was."""
    venue, before = built_in_venue(name), tmp_path / "before.toml"
    before.write_text(starter_text(venue))
    other = "kraken" if name != "kraken" else "okx"
    new = Exchange(other, _table_of(other), other)
    after = tmp_path / "after.toml"
    after.write_text(with_exchange(before.read_text(), name, new).text)
    old, config = load_config(before, environ={}), load_config(after, environ={})
    [one], both = old.served.values(), config.served
    assert [*both] == [name, other]
    for setting in ("venue", "environment", "base_url", "upstream", "signing", "clock", "limits", "routes"):
        assert getattr(both[name], setting) == getattr(one, setting)
    lines = after.read_text().splitlines()
    assert [
        line for line in before.read_text().splitlines() if line.startswith("#") and line not in lines
    ] == []


def _table_of(name: str) -> str:
    words = 'passphrase = "file:p"\n' if built_in_venue(name).signing.needs("passphrase") else ""
    return (
        f'[exchanges.{name}]\nvenue = "{name}"\n[keys.{name}]\nexchange = "{name}"\napi_key = "x"\n'
        f'secret = "file:s"\n{words}'
    )
