"""aiohttp's flow control, as the connections of both sides use it."""

from aiohttp.base_protocol import BaseProtocol


class Flow(BaseProtocol):
    """A connection whose reading a parser may pause."""

    @property
    def is_read(self) -> bool:
        """Whether reading is not paused."""
        return not (self._reading_paused or self._buffer_paused)

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001, FBT002 - aiohttp's interface
        """Read on, if reading was paused; aiohttp calls this at the end of every body."""
        if self._reading_paused:
            super().resume_reading(resume_parser)
