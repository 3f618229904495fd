"""The OpenAPI 3.1 document, built from the route table and the models that validate."""

import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from sealgate.sandbox.access import (
    KEY_HEADER,
    PASSKEY_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    Access,
)
from sealgate.sandbox.catalogue import CATALOGUE
from sealgate.sandbox.models.streams import Upgrade
from sealgate.sandbox.models.wire import ErrorReply, Nothing, ValidationReply
from sealgate.sandbox.router import Route
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.signature import PREFIX

Mode = Literal["validation", "serialization"]
Schemas = Mapping[Any, Any]  # by (model, mode)

_SIGNED = (
    "headers_missing", "key_invalid", "signature_invalid", "timestamp_outside", "timestamp_invalid",
    "address_mismatch", "permission_missing", "ip_refused",
)  # fmt: skip
_SESSION = ("headers_missing", "session_invalid")

ACCESS_ROWS: Mapping[Access, Sequence[str]] = {
    Access.PUBLIC: (),
    Access.SESSION: _SESSION,
    Access.PASSKEY: (*_SESSION, "passkey_failed"),
    Access.READ: _SIGNED,
    Access.TRADE: _SIGNED,
}
_KEY_SCHEMES = {"apiKey": KEY_HEADER, "timestamp": TIMESTAMP_HEADER, "signature": SIGNATURE_HEADER}
_SIGNED_SECURITY: list[dict[str, list[str]]] = [{name: [] for name in _KEY_SCHEMES}]
SECURITY: Mapping[Access, list[dict[str, list[str]]]] = {
    Access.PUBLIC: [],
    Access.SESSION: [{"session": []}],
    Access.PASSKEY: [{"session": [], "passkey": []}],
    Access.READ: _SIGNED_SECURITY,
    Access.TRADE: _SIGNED_SECURITY,
}


def build_document(routes: Sequence[Route], settings: SandboxSettings, version: str) -> bytes:
    """Write the document as JSON."""
    schemas, definitions = models_json_schema(
        _used_models(routes), ref_template="#/components/schemas/{model}"
    )
    if settings.unknown_fields == "ignore":
        for definition in definitions["$defs"].values():
            definition.pop("additionalProperties", None)
    statuses = {"needs_transfer": settings.needs_transfer_status, "key_unknown": settings.unknown_key_status}
    writer = _Writer(schemas, statuses)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Trading service sandbox", "version": version},
        "paths": writer.paths(routes),
        "components": {"schemas": definitions["$defs"], "securitySchemes": _security_schemes()},
    }
    return json.dumps(document).encode()


def _used_models(routes: Iterable[Route]) -> list[tuple[type[BaseModel], Mode]]:
    found: dict[tuple[type[BaseModel], Mode], None] = {
        (ErrorReply, "serialization"): None,
        (ValidationReply, "serialization"): None,
    }
    for route in routes:
        found[route.takes, "validation"] = None
        found[route.gives, "serialization"] = None
    return list(found)


def _security_schemes() -> dict[str, Any]:
    headers = _KEY_SCHEMES | {"passkey": PASSKEY_HEADER}
    keys = {name: {"type": "apiKey", "in": "header", "name": header} for name, header in headers.items()}
    return {"session": {"type": "http", "scheme": "bearer"}, **keys}


class _Writer:
    """Writes operations; `statuses` are the rows whose status an option sets."""

    def __init__(self, schemas: Schemas, statuses: Mapping[str, int]) -> None:
        self._schemas = schemas
        self._statuses = statuses

    def paths(self, routes: Iterable[Route]) -> dict[str, Any]:
        paths: dict[str, Any] = {}
        for route in routes:
            paths.setdefault(route.template, {})[route.method.lower()] = self._operation(route)
        return paths

    def _operation(self, route: Route) -> dict[str, Any]:
        operation: dict[str, Any] = {
            "operationId": _operation_id(route),
            "summary": inspect.getdoc(route.call),
            "security": SECURITY[route.access],
            "parameters": [*_path_parameters(route), *self._query_parameters(route)],
            "responses": self._responses(route),
        }
        if route.reads_body:
            operation["requestBody"] = {
                "required": True,
                "content": _json(self._schemas[route.takes, "validation"]),
            }
        return operation

    def _query_parameters(self, route: Route) -> list[dict[str, Any]]:
        if route.reads_body or route.takes is Nothing:
            return []
        properties = route.takes.model_json_schema()["properties"]
        return [
            {"name": name, "in": "query", "required": False, "schema": _without_null(schema)}
            for name, schema in properties.items()
        ]

    def _responses(self, route: Route) -> dict[str, Any]:
        responses: dict[str, Any] = {"101": {"description": "Switching Protocols"}}
        if route.gives is not Upgrade:
            content = _json(self._schemas[route.gives, "serialization"])
            responses = {"200": {"description": "OK", "content": content}}
        by_status: dict[int, list[str]] = {}
        for slug in _rows(route):
            by_status.setdefault(self._statuses.get(slug, CATALOGUE[slug].status), []).append(slug)
        for status, slugs in sorted(by_status.items()):
            responses[str(status)] = self._error(status, slugs)
        return responses

    def _error(self, status: int, slugs: list[str]) -> dict[str, Any]:
        model = ValidationReply if status == HTTPStatus.UNPROCESSABLE_ENTITY else ErrorReply
        said = "; ".join(CATALOGUE[slug].detail for slug in slugs)
        return {"description": said, "content": _json(self._schemas[model, "serialization"])}


def _rows(route: Route) -> list[str]:
    rows = [*ACCESS_ROWS[route.access], *route.refusals]
    if route.template.startswith(PREFIX):
        rows.append("rate_limited")
    if route.takes is not Nothing:
        rows.append("validation")
    if "{" in route.template:
        rows.append("not_found")
    return [*rows, "bad_http", "body_too_large", "internal"]


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", route.template)
    schema = {"type": "string", "minLength": 1}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in names]


def _operation_id(route: Route) -> str:
    words = re.sub(r"\W+", "_", route.template.removeprefix(PREFIX)).strip("_")
    return f"{route.method.lower()}_{words}"


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Give the schema without null: a query parameter is there or not."""
    choices = [choice for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
    return choices[0] if len(choices) == 1 else schema


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
