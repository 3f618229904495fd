import pytest

from sealgate.core.refusals import Shape, shape_of


@pytest.mark.parametrize(
    ("secret", "shape"),
    [
        (b"0123456789abcdef0123456789", Shape()),
        (b"ak-public-1", Shape(is_api_key=True)),
        (b"short", Shape(is_shorter=True)),
        (b'"0123456789abcdef"', Shape(is_wrapped=True)),
        (b" 0123456789abcdef", Shape(is_wrapped=True)),
        (b"0123456789abcdef\r", Shape(is_wrapped=True)),
        (b"0123456789\nabcdef", Shape(has_lines=True)),
    ],
)
def test_what_a_secret_looks_like(secret: bytes, shape: Shape) -> None:
    assert shape_of(bytearray(secret), "ak-public-1") == shape
