"""`sealgate sign --against FILE`: the first difference from a request that somebody has."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rig import oracle
from sealgate.cli import main

SECRET = "correct-horse-battery-staple"
STAMP = "1790000000000"
TARGET = "/v1/trade/order?a=1"
BODY = b'{"size": "0.10"}'
ENVIRON = {
    "SEALGATE_BASE_URL": "https://exchange.example/api",
    "SEALGATE_KEYS__MAIN__API_KEY": "ak-public-1",
    "SEALGATE_KEYS__MAIN__SECRET": "env:EXCHANGE_SECRET",
    "EXCHANGE_SECRET": SECRET,
}


def signature(message: bytes, secret: str = SECRET) -> str:
    return oracle.hmac_sha256(secret.encode(), message)


RIGHT = signature(b"1790000000000POST/order" + BODY)
NAMES = ("X-SERVICE-APIKEY", "X-SERVICE-TIMESTAMP", "X-SERVICE-SIGNATURE")


def raw(**changes: Any) -> bytes:
    """Return a request that is right but for the changes; None leaves a header out."""
    parts: dict[str, Any] = {
        "method": "POST",
        "target": f"/api{TARGET}",
        "body": BODY,
        "apikey": "ak-public-1",
        "timestamp": STAMP,
        "signature": RIGHT,
        **changes,
    }
    values = (parts["apikey"], parts["timestamp"], parts["signature"])
    fields = [f"{name}: {value}" for name, value in zip(NAMES, values, strict=True) if value is not None]
    head = "\r\n".join([f"{parts['method']} {parts['target']} HTTP/1.1", "Host: exchange.example", *fields])
    body: bytes = parts["body"]
    return head.encode() + b"\r\n\r\n" + body


def against(folder: Path, written: bytes, *arguments: str, **environ: str) -> Result:
    file, body = folder / "request.txt", folder / "body"
    file.write_bytes(written)
    body.write_bytes(BODY)
    asked = ["sign", "POST", TARGET, "--body", str(body), "--against", str(file), *arguments]
    result = CliRunner().invoke(main, asked, env=ENVIRON | environ)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert environ.get("EXCHANGE_SECRET", SECRET) not in result.output
    return result


def test_a_request_that_is_right(tmp_path: Path) -> None:
    result = against(tmp_path, raw())
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        [name, "same"] for name in ("method", "target", "body", *NAMES)
    ]


def test_what_sign_prints_as_curl_is_right(tmp_path: Path) -> None:
    """The file of the body is found beside the command."""
    (tmp_path / "body").write_bytes(BODY)
    asked = ["sign", "POST", TARGET, "--body", str(tmp_path / "body"), "--curl"]
    curl = CliRunner().invoke(main, asked, env=ENVIRON).stdout
    assert against(tmp_path, curl.encode()).exit_code == 0
    beside = curl.replace(str(tmp_path / "body"), "body")
    assert beside != curl
    assert against(tmp_path, beside.encode()).exit_code == 0


# What is changed, the first part that differs, at which byte, and what is noted.
DIFFERENCES: dict[str, tuple[dict[str, Any], str, int | None, str]] = {
    "method": ({"method": "PUT"}, "method", 1, ""),
    "target": ({"target": "/api/v1/trade/order?a=2"}, "target", 22, ""),
    "target, cut": ({"target": "/api/v1/trade/order"}, "target", 19, ""),
    "no base path": ({"target": TARGET}, "target", 1, ""),
    "body written anew": ({"body": b'{"size":"0.10"}'}, "body", 8, ""),
    "body with a line end": ({"body": BODY + b"\n"}, "body", len(BODY), ""),
    "key": ({"apikey": "ak-public-2"}, NAMES[0], 10, ""),
    "no key": ({"apikey": None}, NAMES[0], None, ""),
    "no timestamp": ({"timestamp": None}, NAMES[1], None, f"the file has no {NAMES[1]}"),
    "seconds": ({"timestamp": STAMP[:10]}, NAMES[1], None, "the file's timestamp is not in milliseconds"),
    "no signature": ({"signature": None}, NAMES[2], None, f"the file has no {NAMES[2]}"),
    "capitals": (
        {"signature": RIGHT.upper()},
        NAMES[2],
        None,
        "is made with encoding = HEX, secret_is = utf8",
    ),
    "prefix signed": (
        {"signature": signature(b"1790000000000POST/v1/trade/order" + BODY)},
        *(NAMES[2], None, "and over a path with the prefix"),
    ),
    "seconds signed": (
        {"signature": signature(b"1790000000POST/order" + BODY)},
        *(NAMES[2], None, "and over a timestamp in seconds"),
    ),
    "query signed": (
        {"signature": signature(b"1790000000000POST/order?a=1" + BODY)},
        *(NAMES[2], None, "target = path_and_query"),
    ),
    "another secret": (
        {"signature": signature(b"1790000000000POST/order" + BODY, "x")},
        *(NAMES[2], None, "most likely with another one (the fingerprint of this one is "),
    ),
}


@pytest.mark.parametrize(("changes", "part", "at", "note"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_the_first_difference(
    tmp_path: Path, changes: dict[str, Any], part: str, at: int | None, note: str
) -> None:
    result = against(tmp_path, raw(**changes), "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["first"]) == (1, part)
    found = next(one for one in document["parts"] if one["part"] == part)
    assert found["at"] == at or at is None
    assert note in " ".join(document["notes"])
    assert bool(document["notes"]) is bool(note)
    text = against(tmp_path, raw(**changes)).stdout
    assert text.count("    here  ") == text.count("    file  ") == 1
    assert text.count("note: ") == len(document["notes"])


def test_both_sides_are_shown(tmp_path: Path) -> None:
    result = against(tmp_path, raw(body=b'{"size":"0.10"}\xff'))
    assert result.stdout.splitlines()[2:5] == [
        "body                 differs from byte 8 on (16 bytes here, 16 in the file)",
        """                       here  b'{"size": "0.10"}'""",
        """                       file  b'{"size":"0.10"}\\xff'""",
    ]


def test_a_header_that_is_missing_and_one_that_is_there_twice(tmp_path: Path) -> None:
    missing = against(tmp_path, raw(apikey=None)).stdout
    assert "X-SERVICE-APIKEY     only here\n" in missing
    twice = raw().replace(b"\r\n\r\n", b"\r\nx-service-apikey: other\r\n\r\n", 1)
    assert "b'ak-public-1, other'" in against(tmp_path, twice).stdout


def test_a_timestamp_that_is_given_counts(tmp_path: Path) -> None:
    result = against(tmp_path, raw(), "--timestamp", "1790000000001", "--json")
    assert json.loads(result.stdout)["first"] == "X-SERVICE-TIMESTAMP"


def test_curl_drops_line_ends_of_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(BODY + b"\r\n")
    curl = f"curl https://exchange.example/api{TARGET} -d @text -H '{NAMES[0]}: ak-public-1'"
    assert "body                 same" in against(tmp_path, curl.encode()).stdout


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (b"hello", "holds no request: it begins neither with `curl` nor"),
        (b"curl --form a=b https://x/", "holds no request: the curl option --form is not understood"),
        (b"curl -d @nowhere https://x/", "nowhere: No such file or directory"),
    ],
)
def test_a_file_that_is_no_request(tmp_path: Path, written: bytes, told: str) -> None:
    result = against(tmp_path, written)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("sealgate: error: ")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
