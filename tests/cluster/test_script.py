"""sharing.lua against its model, heartbeat by heartbeat: what it returns, and what it publishes."""

import json
import subprocess
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.backoff import ConstantBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from rig.ports import free_port
from rig.redis import command
from rig.redis_group import RedisGroup
from sealgate.cluster.member import LEADER_LEASE_S, MEMBER_LEASE_S, Heartbeat, HeartbeatReply
from sealgate.cluster.redis_group import SCRIPT, arguments, keys, read_answer

NAME = "{sealgate:test}"
LEASES_US = round(MEMBER_LEASE_S * 1e6), round(LEADER_LEASE_S * 1e6)
END = "the end of a heartbeat"
NOW, YEAR_US = 1_700_000_000_000_000, 366 * 86_400_000_000
Told = list[tuple[str, object]]


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    port = free_port()
    with subprocess.Popen(command(port), stdout=subprocess.DEVNULL) as process:
        client = Redis(port=port, retry=Retry(ConstantBackoff(0.02), 500, (OSError, RedisError)))
        try:
            client.ping()
            yield client
        finally:
            client.close()
            process.terminate()


class Real:
    """The script in Redis, on a time that is brought along."""

    def __init__(self, redis: Redis) -> None:
        redis.flushall()
        self._redis = redis
        self._script = redis.register_script(SCRIPT)
        self._listener = redis.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call] # its own gap
        self._listener.psubscribe("*")
        self._listener.get_message(timeout=10.0)

    def heartbeat(
        self, now: int, me: str, heartbeat: Heartbeat, lease_s: float
    ) -> tuple[HeartbeatReply, Told]:
        found = self._script(keys=keys(NAME), args=arguments(str(now), me, heartbeat, lease_s))
        self._redis.publish(END, "")
        return read_answer(found), list(self._reported())

    def _reported(self) -> Iterator[tuple[str, object]]:
        while True:
            message = self._listener.get_message(timeout=10.0)
            if message is None:
                continue
            channel = message["channel"].decode()
            if channel == END:
                return
            yield channel.removeprefix(f"{NAME}:"), json.loads(message["data"])

    def close(self) -> None:
        self._listener.close()


PLACES = ["all", "https://a.example key 1f | path | POST /v5/order", 'é"\\ | x | 1']
texts = st.sampled_from(["", '{"x":1}'])
heartbeats = st.builds(
    lambda since, me, known, pauses_us, note, announcement, grants, leaves: (
        since,
        me,
        known,
        Heartbeat(0, {place: us / 1e6 for place, us in pauses_us.items()}, note, announcement, tuple(grants)),
        leaves,
    ),
    st.integers(1, 2_000_000) | st.integers(5_000_000, 9_000_000),
    st.sampled_from("abc"),
    st.sampled_from(["true", "none", "old"]),
    st.dictionaries(st.sampled_from(PLACES), st.sampled_from([0, 1, 300_000, 4_000_000]), max_size=2),
    texts,
    texts,
    st.lists(st.tuples(st.sampled_from("abc"), st.just('{"y":2}')), max_size=2),
    st.integers(0, 9).map(lambda number: number == 0),
)


@settings(deadline=None, max_examples=60)
@given(steps=st.lists(heartbeats, max_size=12))
def test_the_script_does_what_the_model_does(
    redis: Redis, steps: list[tuple[int, str, str, Heartbeat, bool]]
) -> None:
    told: Told = []
    model = RedisGroup(lambda channel, text: told.append((channel, json.loads(text))))
    real = Real(redis)
    now = NOW
    for since, me, known, heartbeat, leaves in steps:
        now += since
        epoch = {"true": model.epoch, "none": 0, "old": model.epoch - 1}[known]
        made = Heartbeat(
            max(0, epoch), heartbeat.pauses, heartbeat.note, heartbeat.announcement, heartbeat.grants
        )
        told.clear()
        expected = model.heartbeat(now, me, made, 0 if leaves else LEASES_US[0], LEASES_US[1])
        assert real.heartbeat(now, me, made, 0.0 if leaves else MEMBER_LEASE_S) == (expected, told)
    real.close()


@pytest.mark.parametrize(
    "value", ["inf", "-inf", "nan", "1e300", "x", str(2**62), "-5", str(NOW + 2 * YEAR_US)]
)
def test_what_a_stranger_wrote_does_not_outlive_the_next_visit(redis: Redis, value: str) -> None:
    """No field of the table can stop the gateways for ever: what can be no time counts as nothing."""
    real = Real(redis)
    redis.hset(NAME, "lead", "strange")
    for field in ("lead_until", "epoch"):
        redis.hset(NAME, field, value)
    score = value if value in ("inf", "-inf", "1e300") else str(2**62)
    for key in ("members", "pauses"):
        redis.execute_command("ZADD", f"{NAME}:{key}", score, "strange")  # type: ignore[no-untyped-call] # its own gap
    answer, _ = real.heartbeat(NOW, "me", Heartbeat(0), MEMBER_LEASE_S)
    assert (answer.leader, answer.pauses, answer.replicas) == ("me", {}, 1)
    again, told = real.heartbeat(
        NOW, "me", Heartbeat(answer.epoch, {"all": 3.0}, announcement='{"x":1}'), MEMBER_LEASE_S
    )
    assert (again.leader, again.epoch, again.pauses) == ("me", answer.epoch, {"all": 3.0})
    assert ("all", {"pauses": {"all": 3.0}}) in told
    real.close()


def test_a_place_that_cannot_be_read_is_nobodys(redis: Redis) -> None:
    real = Real(redis)
    for place in (b"\x1b[2J | all", b"x" * 1001):
        redis.zadd(f"{NAME}:pauses", {place: NOW + 1_000_000})
    answer, _ = real.heartbeat(NOW, "me", Heartbeat(0, {"all": 3.0}), MEMBER_LEASE_S)
    assert answer.pauses == {"all": 3.0}
    real.close()


def test_of_too_many_pauses_those_are_kept_that_end_last(redis: Redis) -> None:
    real = Real(redis)
    many = {f"{number} | all": 1.0 + number for number in range(1003)}
    answer, _ = real.heartbeat(NOW, "me", Heartbeat(0, many), MEMBER_LEASE_S)
    assert answer.pauses == {place: pause_s for place, pause_s in many.items() if pause_s > 3.0}
    real.close()


def test_without_a_time_of_its_own_it_takes_that_of_redis(redis: Redis) -> None:
    real = Real(redis)
    script = redis.register_script(SCRIPT)
    args = arguments("", "a", Heartbeat(0), MEMBER_LEASE_S)
    answer = read_answer(script(keys=keys(NAME), args=args))
    seconds, _ = redis.time()
    assert abs(answer.epoch / 1e6 - seconds) < 60
    real.close()
