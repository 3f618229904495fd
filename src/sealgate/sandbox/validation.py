"""Reading inputs: bodies and queries into models, and what is wrong with them into a 422."""

from typing import Any, Literal, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, RootModel, ValidationError

from sealgate.sandbox.catalogue import ApiError

Model = TypeVar("Model", bound=BaseModel)


def read_body(model: type[Model], body: bytes, unknown_fields: Literal["forbid", "ignore"]) -> Model:
    """Parse and validate a JSON body; raise `ApiError` with a 422."""
    try:
        return model.model_validate_json(body, extra=unknown_fields)
    except ValidationError as error:
        # In a choice of models the first step is which of them: a name that only the sources have.
        raise _invalid("body", error, skip=1 if issubclass(model, RootModel) else 0) from None


def read_query(model: type[Model], query: str) -> Model:
    """Validate a query; of a name given twice the last counts, unknown names are passed over."""
    values = dict(parse_qsl(query, keep_blank_values=True))
    try:
        return model.model_validate(values, strict=False, extra="ignore")
    except ValidationError as error:
        raise _invalid("query", error) from None


def invalid_field(where: str, *names: str | int, message: str) -> ApiError:
    """Make a 422 for one field, named from the outside in."""
    return ApiError("validation", detail=[{"loc": [where, *names], "msg": message, "type": "value_error"}])


def _invalid(where: str, error: ValidationError, skip: int = 0) -> ApiError:
    detail: list[dict[str, Any]] = [
        {"loc": [where, *found["loc"][skip:]], "msg": found["msg"], "type": found["type"]}
        for found in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return ApiError("validation", detail=detail)
