"""What all models have in common, and the shape of every error."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Wire(BaseModel):
    """A body or a query: strict types, no unknown fields, never changed once read."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Nothing(Wire):
    """No body and no query parameters."""


class FieldError(Wire):
    """One entry of a 422's `detail`."""

    loc: list[str | int] = Field(description="where: `body` or `query`, then the names of the fields")
    msg: str = Field(description="what is wrong")
    type: str = Field(description="the same for programs")


class ErrorReply(Wire):
    """Every error but 422."""

    detail: str = Field(description="the message of the catalogue")
    timestamp: Any = Field(
        description="the exchange's time: ISO 8601 UTC, or milliseconds by option",
        json_schema_extra={"type": ["string", "integer"]},
    )


class ValidationReply(Wire):
    """A 422: the body or the query failed validation."""

    detail: list[FieldError]
    timestamp: Any = Field(
        description="the exchange's time", json_schema_extra={"type": ["string", "integer"]}
    )
