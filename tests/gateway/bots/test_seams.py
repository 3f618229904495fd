"""What is behind a request, as far as the bytes tell."""

import pytest

from sealgate.gateway.bots.seams import before_next, behind_body, behind_chunks, behind_request
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


CHUNKED: dict[str, tuple[bytes, Event | None, Event | None]] = {
    "a body": (CHUNKS, None, None),
    "no body": (HEAD + b"0\r\n\r\n", None, None),
    "half a head": (CHUNKS + b"GET", PART, CUT),
    "a trailer": (HEAD + b"2\r\n{}\r\n0\r\nA: 1\r\n\r\n", CUT, CUT),
    "a trailer behind what looks like the end": (HEAD + b"7\r\n\r\n0\r\n\r\n\r\n0\r\nA: 1\r\n\r\n", CUT, CUT),
    "a body that looks like the end": (HEAD + b"7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", None, CUT),
    "an extension": (HEAD + b"2\r\n{}\r\n0;a\r\n\r\n", CUT, CUT),
    "chunks behind it": (CHUNKS + CHUNKS, None, CUT),
    "the end alone": (b"\r\n0\r\n\r\n", None, None),
    "too little to tell": (b"\n0\r\n\r\n", CUT, CUT),
}


@pytest.mark.parametrize(("piece", "found", "found_with_loss"), CHUNKED.values(), ids=CHUNKED)
def test_behind_chunks(piece: bytes, found: Event | None, found_with_loss: Event | None) -> None:
    assert behind_chunks(piece, may_lose=False) is found
    assert behind_chunks(piece, may_lose=True) is found_with_loss


@pytest.mark.parametrize("size", range(1, len(CHUNKS)))
def test_an_end_is_found_however_it_is_cut(size: int) -> None:
    before, ends = b"", list[int]()
    for start in range(0, len(CHUNKS), size):
        data = CHUNKS[start : start + size]
        if behind_chunks(before + data, may_lose=False) is None:
            ends.append(start + len(data))
        before = before_next(before, data)
    assert ends == [len(CHUNKS)]
