"""Trailers of a chunked body: aiohttp's parser (3.14.5) puts the last one into the head that comes next."""

from sealgate.gateway.bots.parser import Messages

LAST_CHUNK = b"\r\n0\r\n\r\n"  # and no trailers


def are_as_written(messages: Messages, data: bytes) -> bool:
    """Whether the last heads of a piece have as many fields as lines, so that none got a trailer as well."""
    start = len(data)
    for message, _ in reversed(messages):
        line = f"{message.method} {message.path} HTTP/".encode("utf-8", "surrogateescape")
        start = data.rfind(line, 0, start)
        end = data.find(b"\r\n\r\n", start)
        if start < 0:
            return True
        if data.count(b"\r\n", start, end) != len(message.raw_headers):
            return False
    return True
