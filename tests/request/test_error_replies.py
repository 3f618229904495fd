"""The gateway's own replies in the shape of an exchange's errors."""

import json
from typing import Any

import pytest

from sealgate.errors import Refusal
from sealgate.request.replies import Reply, problem
from sealgate.venues.error_shapes import ErrorClass, ErrorShape

WALL = 1_790_000_000.0
CODED = {ErrorClass.PERMISSION: {"code": -7, "msg": "{reason}: {detail}"}}


def reply(
    shape: ErrorShape | None, slug: str, *, is_unknown: bool = False, detail: str = "So it is."
) -> Reply:
    return problem(Refusal(slug, detail, advice="Mend it."), "id", WALL, shape, is_unknown=is_unknown)


def whole(answer: Reply) -> Any:
    return json.loads(answer.body)


PLAIN = reply(None, "halted")


def test_the_members_are_added_to_the_problem() -> None:
    answer = reply(ErrorShape(CODED, {}, ""), "halted")
    assert whole(answer) == {**whole(PLAIN), "code": -7, "msg": "halted: So it is. Mend it."}
    assert answer.fields == [*PLAIN.fields, (b"X-Gateway-Detail", b"So it is. Mend it.")]
    assert (answer.status, answer.phrase) == (503, "halted: So it is.")


@pytest.mark.parametrize(
    ("template", "alone"),
    [
        ({"status": "error", "why": "{reason}"}, {"status": "error", "why": "halted"}),
        (["error", 7, "{detail}"], ["error", 7, "So it is. Mend it."]),
    ],
)
def test_what_cannot_be_in_one_document_with_the_problem_goes_alone(template: Any, alone: object) -> None:
    answer = reply(ErrorShape({ErrorClass.PERMISSION: template}, {}, ""), "halted")
    assert whole(answer) == alone
    assert dict(answer.fields)[b"Content-Type"] == b"application/json"
    assert dict(answer.fields)[b"X-Gateway-Error"] == b"halted"


def test_a_class_without_a_code_gets_the_problem_alone_with_the_status_of_the_class() -> None:
    shape = ErrorShape(CODED, {ErrorClass.UNKNOWN: 504}, "application/json")
    lost = reply(shape, "upstream_broken", is_unknown=True)
    assert (lost.status, whole(lost)) == (504, whole(reply(None, "upstream_broken")))
    assert dict(lost.fields)[b"Content-Type"] == b"application/json"
    assert reply(shape, "upstream_broken").status == 502


def test_a_detail_is_made_fit_for_a_header_line() -> None:
    shape = ErrorShape(CODED, {ErrorClass.PERMISSION: 200}, "")
    answer = reply(shape, "policy_refused", detail="Ä\r\nX-Evil: 1" + "x" * 2_000)
    assert answer.status == 200
    assert answer.phrase.startswith("policy_refused: ???X-Evil: 1xxx")
    detail = dict(answer.fields)[b"X-Gateway-Detail"]
    assert detail.startswith(b"???X-Evil: 1xxx")
    assert len(detail) == 1_000
