"""Bodies whose end is open, and codings that nobody asked for (RFC 9112, sections 6 and 7)."""

from rig.bad_requests.case import Bad, in_chunks, post

_LONG = b"x" * 20_000

_FRAMED = {
    "length and chunked": post(
        b"Content-Length: 2", b"Transfer-Encoding: chunked", body=b"2\r\n{}\r\n0\r\n\r\n"
    ),
    "chunked and length": post(
        b"Transfer-Encoding: chunked", b"Content-Length: 2", body=b"2\r\n{}\r\n0\r\n\r\n"
    ),
    "two equal lengths": post(b"Content-Length: 2", b"Content-Length: 2", body=b"{}"),
    "two lengths": post(b"Content-Length: 2", b"content-length: 9", body=b"{}"),
    "list of lengths": post(b"Content-Length: 2, 2", body=b"{}"),
    "length with a space": post(b"Content-Length: 1 2", body=b"{}" * 6),
    "length with an underscore": post(b"Content-Length: 1_0", body=b"{}" * 5),
    "length in other digits": post(b"Content-Length: \xd9\xa2", body=b"{}"),
    "length of 2^64 + 2": post(b"Content-Length: 18446744073709551618", body=b"{}"),
    "empty length": post(b"Content-Length:"),
    "length spelled with _": post(b"Content_Length: 2"),
    "coding spelled with _": post(b"Transfer_Encoding: chunked"),
    "length spelled with a dot": post(b"Content.Length: 2"),
    "coding spelled with a plus sign": post(b"Transfer+Encoding: chunked"),
    "coding spelled with a dot beside a length": post(
        b"Content-Length: 2", b"Transfer.Encoding: chunked", body=b"{}"
    ),
    "length spelled with _ beside the real one": post(b"Content-Length: 2", b"Content_Length: 9", body=b"{}"),
    "coding spelled with _ beside a length": post(
        b"Content-Length: 2", b"transfer_encoding: chunked", body=b"{}"
    ),
    "space before the colon of the length": post(b"Content-Length : 2", body=b"{}"),
    "space before the colon of the coding": post(b"Transfer-Encoding : chunked", body=b"0\r\n\r\n"),
    "tab before the colon of the coding": post(b"Transfer-Encoding\t: chunked", body=b"0\r\n\r\n"),
    "folded coding": post(b"Transfer-Encoding:", b" chunked", body=b"0\r\n\r\n"),
    "vertical tab before chunked": post(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"),
    "NUL after chunked": post(b"Transfer-Encoding: chunked\0", body=b"0\r\n\r\n"),
    "chunked on two lines": post(
        b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"
    ),
    "gzip and chunked on two lines": post(
        b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"
    ),
    "chunked with a NUL byte of UTF-16": post(b"Transfer-Encoding: c\0hunked", body=b"0\r\n\r\n"),
}

_CHUNKS = {
    "no size": b"\r\n{}\r\n0\r\n\r\n",
    "size that is none": b"zz\r\n{}\r\n0\r\n\r\n",
    "size with 0x": b"0x2\r\n{}\r\n0\r\n\r\n",
    "size with a plus": b"+2\r\n{}\r\n0\r\n\r\n",
    "size with a minus": b"-2\r\n{}\r\n0\r\n\r\n",
    "size with a space before": b" 2\r\n{}\r\n0\r\n\r\n",
    "size with a space behind": b"2 \r\n{}\r\n0\r\n\r\n",
    "size with an underscore": b"0_2\r\n{}\r\n0\r\n\r\n",
    "size of 65 bits": b"10000000000000002\r\n{}\r\n0\r\n\r\n",
    "size ended by LF": b"2\n{}\r\n0\r\n\r\n",
    "size ended by CR": b"2\r{}\r\n0\r\n\r\n",
    "data without its end": b"2\r\n{}0\r\n\r\n",
    "data longer than its size": b"1\r\n{}\r\n0\r\n\r\n",
    "data shorter than its size": b"3\r\n{}\r\n0\r\n\r\n",
    "data ended by LF": b"2\r\n{}\n0\r\n\r\n",
    "extension with a bare LF": b"2;a\n{}\r\n0\r\n\r\n",
    "extension with a line end in quotes": b'2;a="\r\n{}\r\n0\r\n\r\n',
    "extension with a bare CR": b"2;a\rb\r\n{}\r\n0\r\n\r\n",
    "extension with a NUL": b"2;a\0b\r\n{}\r\n0\r\n\r\n",
    "trailer that is no field": b"2\r\n{}\r\n0\r\nno field\r\n\r\n",
    "trailer that is a length": b"2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n",
    "trailer that is a coding": b"2\r\n{}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "folded trailer": b"2\r\n{}\r\n0\r\nX-A: 1\r\n 2\r\n\r\n",
}

_TOO_LARGE = {
    "trailer of 20 kB": b"2\r\n{}\r\n0\r\nX-A: " + _LONG + b"\r\n\r\n",
    "2000 trailers": b"2\r\n{}\r\n0\r\n" + b"X-A: 1\r\n" * 2000 + b"\r\n",
}

_UNKNOWN = ("gzip, chunked", "x-own, chunked")

CASES = (
    {f"framing: {name}": Bad(raw, 400, "bad_request") for name, raw in _FRAMED.items()}
    | {f"chunk: {name}": Bad(in_chunks(raw), 400, "bad_request") for name, raw in _CHUNKS.items()}
    | {f"chunk: {name}": Bad(in_chunks(raw), 431, "headers_too_large") for name, raw in _TOO_LARGE.items()}
    | {
        f"coding: {coding}": Bad(
            post(b"Transfer-Encoding: " + coding.encode(), body=b"0\r\n\r\n"), 501, "coding_refused"
        )
        for coding in _UNKNOWN
    }
    | {
        "body of 5 MB": Bad(post(b"Content-Length: 5000000"), 413, "body_too_large"),
        "body of 15 digits": Bad(post(b"Content-Length: " + b"9" * 15), 413, "body_too_large"),
        "chunks of 2 MB": Bad(
            in_chunks(b"100000\r\n" + b"x" * 0x100000 + b"\r\n" + b"1\r\nx\r\n0\r\n\r\n"),
            413,
            "body_too_large",
        ),
    }
)
