import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.limits.quotas import Quota, parse_quota_fields

NOW = 1_700_000_000.0


LEFT = Quota(math.inf, left=50.0, reset_s=30.0)
FIELDS = [
    ({}, ()),
    ({"ratelimit-policy": '"a";q=100;w=60, "b";q=5;w=1'}, (Quota(100, 60.0), Quota(5, 1.0))),
    ({"ratelimit-policy": '"a";q=100'}, ()),
    ({"ratelimit-policy": '"a";q=100;w=60\n"b";q=5;w=1'}, (Quota(100, 60.0), Quota(5, 1.0))),
    ({"x-ratelimit-remaining": "50\n49", "x-ratelimit-reset": "30"}, (LEFT,)),
    ({"ratelimit-policy": '"a";q=9;qu="content-bytes";w=1,"b";q=5;w=1;qu=requests'}, (Quota(5, 1.0),)),
    ({"ratelimit-policy": '"a";q=9;w=1;qu="concurrent-requests"', "ratelimit": '"a";r=0;t=30'}, ()),
    ({"ratelimit-policy": '"of all, and each";q=100;w=60'}, (Quota(100, 60.0),)),
    ({"ratelimit-policy": '"a";q=0;w=60'}, ()),
    ({"ratelimit-policy": '"a";q=1;w=0'}, ()),
    ({"ratelimit-policy": f'"a";q=1;w={3600}'}, (Quota(1, 3600.0),)),
    ({"ratelimit-policy": f'"a";q=1;w={3600 + 1}'}, ()),
    ({"ratelimit": '"a";r=50;t=30'}, (LEFT,)),
    ({"ratelimit": '"a";r=50'}, ()),
    ({"ratelimit": f'"a";r=50;t={3600}'}, (Quota(math.inf, left=50.0, reset_s=3600.0),)),
    ({"ratelimit": f'"a";r=50;t={3600 + 1}'}, ()),
    ({"ratelimit-policy": '"a";q=123456789;w=60'}, (Quota(123456789, 60.0),)),
    ({"ratelimit-policy": '"a";q=1234567890;w=60'}, ()),
    (
        {"ratelimit-remaining": "50", "ratelimit-reset": str(3600)},
        (Quota(math.inf, left=50.0, reset_s=3600.0),),
    ),
    ({"ratelimit-remaining": "50", "ratelimit-reset": "30"}, (LEFT,)),
    ({"x-ratelimit-remaining": "50", "x-ratelimit-reset": "1700000030"}, (LEFT,)),
    (
        {"x-ratelimit-remaining": "50", "x-ratelimit-reset": "1699999999"},
        (Quota(math.inf, left=50.0, reset_s=0.0),),
    ),
    ({"x-ratelimit-remaining": "many", "x-ratelimit-reset": "30"}, ()),
    ({"x-ratelimit-remaining": "50", "x-ratelimit-reset": "nan"}, ()),
    (
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "0.5"},
        (Quota(math.inf, left=0.0, reset_s=0.5),),
    ),
    ({"x-ratelimit-remaining": "-1", "x-ratelimit-reset": "30"}, ()),
    ({"x-ratelimit-remaining": "50", "x-ratelimit-reset": "1700000030000"}, (LEFT,)),
    ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1e300"}, ()),
    ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "90000000"}, ()),
    ({"ratelimit": f'"a";r=1;t={10**8}'}, ()),
    ({"ratelimit": f'"a";r={"9" * 400};t=1'}, ()),
    ({"ratelimit": f'"a";r=1;t={"9" * 5000}'}, ()),
    ({"ratelimit-policy": f'"a";q={"9" * 400};w=1'}, ()),
]


@pytest.mark.parametrize(("fields", "expected"), FIELDS)
def test_fields_say_what_they_say(fields: dict[str, str], expected: tuple[Quota, ...]) -> None:
    found = parse_quota_fields(fields, NOW)
    assert tuple(replace(one, name="") for one in found) == expected


NAMES = ["ratelimit", "ratelimit-policy", "ratelimit-remaining", "ratelimit-reset", "x-ratelimit-reset"]


@given(st.dictionaries(st.sampled_from(NAMES), st.text('"a;=,rqtw019.-e ', max_size=40)))
def test_no_field_breaks_the_parser(fields: dict[str, str]) -> None:
    for quota in parse_quota_fields(fields, NOW):
        assert quota.n > 0
        assert quota.window_s > 0


def test_each_count_that_is_stated_has_a_name_of_its_own() -> None:
    fields = {
        "ratelimit": '"second";r=5;t=1, "day" ;r=500;t=3000',
        "ratelimit-remaining": "1",
        "ratelimit-reset": "2",
        "x-ratelimit-remaining": "3",
        "x-ratelimit-reset": "4",
    }
    names = {one.left: one.name for one in parse_quota_fields(fields, NOW)}
    assert names == {5.0: '"second"', 500.0: '"day"', 1.0: "ratelimit-", 3.0: "x-ratelimit-"}


def test_of_a_field_without_end_the_first_limits_count() -> None:
    policies = ",".join(f'"{number}";q={number};w={number}' for number in range(1, 3000))
    found = parse_quota_fields({"ratelimit-policy": policies}, 0.0)
    assert [one.n for one in found] == [float(number) for number in range(1, 21)]
