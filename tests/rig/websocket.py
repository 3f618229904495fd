"""WebSocket as the tests of the gateway write and read it: by hand, strictly, sharing nothing with it."""

import base64
import hashlib

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_CONTROLS = (CLOSE, PING, PONG)
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY = base64.b64encode(b"sixteen letters.")
_SHORT, _MIDDLE = 126, 1 << 16  # lengths from which on a head is longer


class NotFramesError(Exception):
    """The peer wrote something that RFC 6455 does not allow."""


def upgrade(target: str, *fields: str) -> bytes:
    """Write the request that opens a stream; `fields` are whole lines."""
    lines = [f"GET {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: Upgrade", "Upgrade: websocket"]
    lines += ["Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {_KEY.decode()}", *fields, "", ""]
    return "\r\n".join(lines).encode()


def accepted(head: bytes) -> bytes:
    """Write the 101 that answers a request's head, whose key it reads."""
    fields = dict(line.lower().partition(b":")[::2] for line in head.split(b"\r\n"))
    at = head.lower().index(b"sec-websocket-key:") + len(b"sec-websocket-key:")
    key = head[at : at + len(fields[b"sec-websocket-key"])].strip()
    answer = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: %b\r\n\r\n" % answer
    )


def masked(payload: bytes, mask: bytes) -> bytes:
    """Mask a payload, or unmask it."""
    size = len(payload)
    whole = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "little") ^ int.from_bytes(whole, "little")).to_bytes(size, "little")


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, mask: bytes = b"", rsv: int = 0) -> bytes:
    """Write a frame, with whatever opcode and reserved bits; masked if there is a `mask`."""
    size, first, bit = len(payload), fin << 7 | rsv << 4 | opcode, 0x80 if mask else 0
    if size < _SHORT:
        head = bytes((first, bit | size))
    elif size < _MIDDLE:
        head = bytes((first, bit | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((first, bit | 127)) + size.to_bytes(8, "big")
    return head + mask + masked(payload, mask) if mask else head + payload


def close_frame(code: int, reason: str = "", mask: bytes = b"") -> bytes:
    """Write a close frame."""
    return frame(CLOSE, code.to_bytes(2, "big") + reason.encode(), mask=mask)


def code_and_reason(payload: bytes) -> tuple[int, str]:
    """Read a close frame's payload; 1005 where it is empty."""
    return (int.from_bytes(payload[:2], "big"), payload[2:].decode()) if payload else (1005, "")


class FrameReader:
    """Reads frames, all of which are masked or none."""

    def __init__(self, *, is_masked: bool) -> None:
        self._is_masked = is_masked
        self._rest = b""
        self._parts: list[bytes] = []
        self._opcode = 0

    @property
    def is_between_frames(self) -> bool:
        """Whether no part of a frame is left."""
        return not self._rest

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Return the opcodes and payloads of the messages and control frames that these bytes complete."""
        if self._rest:
            data = self._rest + data
        size, at, whole = len(data), 0, []
        while size - at >= 2:
            first, second = data[at], data[at + 1]
            length, start = second & 0x7F, at + 2
            if length >= _SHORT:
                start = at + (4 if length == _SHORT else 10)
                if size < start:
                    break
                length = int.from_bytes(data[at + 2 : start], "big")
                if length < (_SHORT if start == at + 4 else _MIDDLE):
                    raise NotFramesError(f"{length} bytes have a longer head than they need")
            mask = data[start : start + 4] if self._is_masked else b""
            start += 4 if self._is_masked else 0
            end = start + length
            if end > size:
                break
            if bool(second & 0x80) != self._is_masked:
                raise NotFramesError("masked" if second & 0x80 else "not masked")
            payload = data[start:end]
            if self._is_masked:
                payload = masked(payload, mask)
            if (event := self._take(first, payload)) is not None:
                whole.append(event)
            at = end
        self._rest = data[at:]
        return whole

    def _take(self, first: int, payload: bytes) -> tuple[int, bytes] | None:
        opcode, fin = first & 0x0F, first & 0x80
        if first & 0x70:
            raise NotFramesError("a reserved bit")
        if opcode in _CONTROLS:
            if not fin or len(payload) >= _SHORT:
                raise NotFramesError("a control frame in parts, or too long")
            return opcode, payload
        if opcode not in (0, TEXT, BINARY) or (opcode == 0) == (self._opcode == 0):
            raise NotFramesError(f"opcode {opcode} behind {self._opcode}")
        self._opcode = opcode or self._opcode
        if not fin:
            self._parts.append(payload)
            return None
        event = self._opcode, b"".join((*self._parts, payload))
        self._opcode, self._parts = 0, []
        return event
