"""What is behind a request, as far as the bytes tell."""

from types import SimpleNamespace
from typing import Any

import pytest

from sealgate.gateway.bots.seams import (
    are_as_written,
    before_next,
    behind_body,
    behind_chunks,
    behind_request,
)
from sealgate.gateway.bots.states import CUT, PART, Event

HEAD = b"POST /x HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKS = HEAD + b"2\r\n{}\r\n0\r\n\r\n"

# piece, length of the body -> what is behind, and what is found where the parser may have lost it.
REQUESTS: dict[str, tuple[bytes, int, Event | None, Event | None]] = {
    "a head": (HEAD, 0, None, None),
    "a head with a body": (HEAD + b"{}", 2, None, None),
    "a body like a head": (HEAD + HEAD, len(HEAD), None, None),
    "half a head": (HEAD + b"GET", 0, PART, CUT),
    "half a head behind a body": (HEAD + b"{}GET", 2, PART, CUT),
    "the last byte of a head is missing": (HEAD + HEAD[:-1], 0, PART, CUT),
    "requests before it": (HEAD + b"{}" + HEAD + b"{}", 2, None, CUT),
    "empty lines before it": (b"\r\n\r\n" + HEAD, 0, None, CUT),
    "nothing of it, for the parser held it back": (b"", 0, None, CUT),
    "less than its body": (b"\n\r\n{}", 20, None, CUT),
}


@pytest.mark.parametrize(("piece", "body", "found", "found_with_loss"), REQUESTS.values(), ids=REQUESTS)
def test_behind_a_request(
    piece: bytes, body: int, found: Event | None, found_with_loss: Event | None
) -> None:
    assert behind_request(piece, body, may_lose=False) is found
    assert behind_request(piece, body, may_lose=True) is found_with_loss


@pytest.mark.parametrize(
    ("came", "may_lose", "found"), [(9, False, None), (9, True, None), (10, False, PART), (10, True, CUT)]
)
def test_behind_a_body_that_came_in_pieces(came: int, found: Event | None, *, may_lose: bool) -> None:
    assert behind_body(came, 9, may_lose=may_lose) is found


CHUNKED: dict[str, tuple[bytes, Event | None]] = {
    "a body": (CHUNKS, None),
    "no body": (HEAD + b"0\r\n\r\n", None),
    "half a head": (CHUNKS + b"GET", PART),
    "a trailer": (HEAD + b"2\r\n{}\r\n0\r\nA: 1\r\n\r\n", CUT),
    "a trailer behind what looks like the end": (HEAD + b"7\r\n\r\n0\r\n\r\n\r\n0\r\nA: 1\r\n\r\n", CUT),
    "a body that looks like the end": (HEAD + b"7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", None),
    "an extension": (HEAD + b"2\r\n{}\r\n0;a\r\n\r\n", CUT),
    "chunks behind it": (CHUNKS + CHUNKS, None),
    "the end alone": (b"\r\n0\r\n\r\n", None),
    "too little to tell": (b"\n0\r\n\r\n", CUT),
}


@pytest.mark.parametrize(("piece", "found"), CHUNKED.values(), ids=CHUNKED)
def test_behind_chunks(piece: bytes, found: Event | None) -> None:
    assert behind_chunks(piece) is found


@pytest.mark.parametrize("size", range(1, len(CHUNKS)))
def test_an_end_is_found_however_it_is_cut(size: int) -> None:
    before, ends = b"", list[int]()
    for start in range(0, len(CHUNKS), size):
        data = CHUNKS[start : start + size]
        if behind_chunks(before + data) is None:
            ends.append(start + len(data))
        before = before_next(before, data)
    assert ends == [len(CHUNKS)]


def head(line: str, fields: int) -> Any:
    """Return what the parser makes of a head with so many fields."""
    method, path = line.split(" ")
    return SimpleNamespace(method=method, path=path, raw_headers=((b"a", b"b"),) * fields)


def written(line: str, fields: int, body: bytes = b"") -> bytes:
    return f"{line} HTTP/1.1\r\n".encode() + b"a:b\r\n" * fields + b"\r\n" + body


A, B, C = "GET /a", "GET /a", "PUT /c"
LOOKS_LIKE_B = b"23\r\n\nGET /a HTTP/1.1\r\na:b\r\na:b\r\n\r\n\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("heads", "data", "expected"),
    [
        pytest.param([(A, 2)], written(A, 2), [True], id="as it was written"),
        pytest.param([(A, 3)], written(A, 2), [False], id="with a trailer in it"),
        pytest.param([(A, 2)], b"0\r\n\r\n" + written(A, 2), [True], id="behind the end of a body"),
        pytest.param([(A, 0)], written(A, 0), [True], id="without a field"),
        pytest.param(
            [(A, 1), (B, 2), (A, 3)],
            written(A, 1) + written(B, 2) + written(A, 3),
            [True, True, True],
            id="one line of several heads",
        ),
        pytest.param(
            [(A, 1), (B, 3), (A, 3)],
            written(A, 1) + written(B, 2) + written(A, 3),
            [True, False, True],
            id="of several, one with a trailer",
        ),
        pytest.param(
            [(C, 1), (B, 2)],
            written(C, 1, LOOKS_LIKE_B) + written(B, 1),
            [True, False],
            id="a body that looks like a head with that trailer",
        ),
        pytest.param(
            [(A, 1), (C, 1)],
            written(A, 1).replace(b" ", b"  ") + written(C, 1),
            [False, True],
            id="a line with other blanks",
        ),
        pytest.param([(A, 2)], written(A, 2)[:-1], [False], id="no end of the head"),
        pytest.param([(A, 1)], b"", [False], id="held back since an earlier piece"),
    ],
)
def test_heads_that_are_as_they_were_written(
    heads: list[tuple[str, int]], data: bytes, expected: list[bool]
) -> None:
    assert are_as_written([head(*one) for one in heads], data) == expected
