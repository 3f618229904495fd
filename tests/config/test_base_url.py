import pytest

from sealgate.config.addresses import BaseUrl, parse_base_url


@pytest.mark.parametrize(
    ("text", "parsed", "written"),
    [
        ("https://api.example.com", BaseUrl("https", "api.example.com", 443, ""), "https://api.example.com"),
        ("https://api.example.com/", BaseUrl("https", "api.example.com", 443, ""), "https://api.example.com"),
        (
            "HTTPS://API.example.com:443",
            BaseUrl("https", "api.example.com", 443, ""),
            "https://api.example.com",
        ),
        (
            "https://x.example:8443/a/b/",
            BaseUrl("https", "x.example", 8443, "/a/b"),
            "https://x.example:8443/a/b",
        ),
        ("http://localhost", BaseUrl("http", "localhost", 80, ""), "http://localhost"),
        ("http://127.0.0.1:8790", BaseUrl("http", "127.0.0.1", 8790, ""), "http://127.0.0.1:8790"),
        ("http://[::1]:8790/x", BaseUrl("http", "::1", 8790, "/x"), "http://[::1]:8790/x"),
    ],
)
def test_parses(text: str, parsed: BaseUrl, written: str) -> None:
    assert parse_base_url(text) == parsed
    assert str(parsed) == written
    assert parse_base_url(written) == parsed


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (5, "plain ASCII"),
        ("https://bücher.example", "xn--"),
        ("https://api.example.com /x", "plain ASCII"),
        ("https://api.exa\tmple.com", "plain ASCII"),
        ("https://api.example.com\n", "plain ASCII"),
        ("", "not an http or https URL"),
        ("api.example.com", "not an http or https URL"),
        ("ftp://api.example.com", "not an http or https URL"),
        ("https://", "no host"),
        ("https:///v1", "no host"),
        ("https://user@api.example.com", "user name or a password"),
        ("https://:@api.example.com", "user name or a password"),
        ("https://api.example.com?", "query"),
        ("https://api.example.com/#x", "fragment"),
        ("https://api.example.com\\@evil.example", "backslash"),
        ("https://[::1", "is not a URL"),
        ("https://exa_mple.com", "no valid host"),
        ("https://api.example.com:0", "port out of range"),
        ("https://api.example.com:65536", "port out of range"),
        ("https://api.example.com:x", "port out of range"),
        ("https://api.example.com/a//b", "path that is not plain"),
        ("https://api.example.com/a/../b", "path that is not plain"),
        ("https://api.example.com/%61", "path that is not plain"),
        ("http://api.example.com", "plain http"),
        ("http://192.168.1.9", "plain http"),
        ("http://localhost.example", "plain http"),
    ],
)
def test_refuses(value: object, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        parse_base_url(value)


@pytest.mark.parametrize(
    ("value", "proposed"),
    [
        ("api.foo.com", "https://api.foo.com"),
        ("api.foo.com:8443/", "https://api.foo.com:8443"),
        ("127.0.0.1:8790", "http://127.0.0.1:8790"),
        ("localhost:8790", "http://localhost:8790"),
        ("[::1]:8790", "http://[::1]:8790"),
        ("10.0.0.5:8790", "https://10.0.0.5:8790"),
        ("api.foo.com:99999", "https://api.example.com"),
        ("[::1::1]:8790", "https://api.example.com"),
        ("htps://api.foo.com", "https://api.example.com"),
        ("user:s3cr3t@api.foo.com", "https://api.example.com"),
        ("api.foo.com/s3cr3t", "https://api.example.com"),
        ("s3cr3t", "https://api.example.com"),
        ("eyJhbGci.eyJzdWIi.S3cr3tS3cr3t", "https://api.example.com"),
        ("", "https://api.example.com"),
    ],
)
def test_without_a_scheme_the_host_is_proposed_with_the_right_one(value: str, proposed: str) -> None:
    with pytest.raises(ValueError, match="URL; write") as caught:
        parse_base_url(value)
    assert str(caught.value).endswith(f'URL; write "{proposed}"')


@pytest.mark.parametrize(
    "value", ["https://u:s3cr3t@x.example", "https://x.example/?s3cr3t", "https://x:s3cr3t"]
)
def test_an_error_does_not_echo_the_url(value: str) -> None:
    with pytest.raises(ValueError, match="; ") as caught:
        parse_base_url(value)
    assert "s3cr3t" not in str(caught.value)
