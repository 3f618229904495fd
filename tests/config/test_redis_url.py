import pytest

from sealgate.config.addresses import parse_redis


@pytest.mark.parametrize(
    "text",
    [
        "",
        "redis://127.0.0.1:6379/0",
        "redis://redis.trading.svc",
        "rediss://cache.example:6380/2",
        "unix:///run/redis/redis.sock",
        "env:REDIS_URL",
        "file:/run/secrets/redis",
        "file:/run/secrets/the redis",
        "cmd:get-url --pass hunter2",
    ],
)
def test_is_taken_as_it_stands(text: str) -> None:
    assert parse_redis(text) == text


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (5, "neither a Redis URL nor a reference"),
        ("redis://127.0.0.1 :6379", "is not a URL"),
        ("127.0.0.1:6379", "neither a Redis URL nor a reference"),
        ("http://127.0.0.1:6379", "neither a Redis URL nor a reference"),
        ("redis://", "has no host"),
        ("redis://127.0.0.1:99999", "is not a Redis URL"),
        ("unix://", "names no socket"),
        ("redis://:hunter2@127.0.0.1:6379", "holds a password; put the whole URL into a file"),
        ("redis://bot:hunter2@127.0.0.1:6379", "holds a password"),
        ("unix:///run/redis.sock?db=1&password=hunter2", "holds a password"),
        ("rediss://[::1:6379", "is not a Redis URL"),
        ("redis://127.0.0.1/\n", "is not a URL"),
        ("cmd:'hunter2", "neither a Redis URL nor a reference"),
    ],
)
def test_says_what_is_wrong_and_repeats_nothing(value: object, cause: str) -> None:
    with pytest.raises(ValueError, match=cause) as caught:
        parse_redis(value)
    assert "hunter2" not in str(caught.value)
