"""One sender and its viewers; that who does not read loses the oldest is in test_live.py."""

import pytest

from sealgate.admin.live import Broadcast


def test_every_viewer_gets_every_event_from_its_coming_on() -> None:
    broadcast = Broadcast()
    with broadcast.viewing() as first:
        broadcast.publish(("picture", "1"))
        with broadcast.viewing() as second:
            broadcast.publish(("picture", "2"))
            assert broadcast.viewers == 2
        broadcast.publish(("picture", "3"))
    assert [first.get_nowait() for _ in range(first.qsize())] == [("picture", number) for number in "123"]
    assert [second.get_nowait() for _ in range(second.qsize())] == [("picture", "2")]


def test_the_end_reaches_also_who_does_not_read() -> None:
    broadcast = Broadcast()
    with broadcast.viewing() as queue:
        while not queue.full():
            broadcast.publish(("picture", "1"))
        broadcast.publish(None)
        assert [queue.get_nowait() for _ in range(queue.qsize())][-1] is None


def test_who_leaves_by_an_error_is_gone_too() -> None:
    broadcast = Broadcast()
    with pytest.raises(ConnectionError), broadcast.viewing():
        raise ConnectionError
    assert broadcast.viewers == 0
    broadcast.publish(("picture", "1"))
