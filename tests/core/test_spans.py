import pytest

from sealgate.core.spans import span


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3.0, "0 s"),
        (0.051, "0.05 s"),
        (1.5, "2 s"),
        (11.6, "12 s"),
        (60.0, "60 s"),
        (622.0, "10 min"),
        (7200.0, "2 h"),
        (200_000.0, "2 d"),
    ],
)
def test_a_span_in_words(seconds: float, words: str) -> None:
    assert span(seconds) == words
