import pytest

from sealgate.machine.nearest import did_you_mean, nearest


def test_the_nearest_name_or_none() -> None:
    assert nearest("tokn", iter(["uid", "token"])) == "token"
    assert nearest("zzz", ["uid", "token"]) is None
    assert nearest("zzz", ["uid"], 0.0) == "uid"


@pytest.mark.parametrize(("name", "hint"), [("msec", "did you mean ms?"), ("zzz", "it may be ms, us")])
def test_where_no_name_is_near_all_are_told(name: str, hint: str) -> None:
    assert did_you_mean(name, ("ms", "us")) == hint
