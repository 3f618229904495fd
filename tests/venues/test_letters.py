"""Spellings of a name that some server takes for the name."""

import pytest

from sealgate.venues.letters import plain_letters


@pytest.mark.parametrize(
    "spelled", ["sign", "SIGN", "s\u0131gn", "\uff53\uff49\uff47\uff4e", "si\u200bgn", "\u017fign"]
)
def test_another_spelling_of_a_name_is_the_name(spelled: str) -> None:
    assert plain_letters(spelled) == "sign"


def test_a_mark_over_a_letter_is_left_out_only_where_that_is_asked_for() -> None:
    assert plain_letters("si\u0307gn") == "si\u0307gn"
    assert plain_letters("si\u0307gn", ("Cf", "Mn")) == "sign"
