"""The configuration file as a JSON Schema, for editors: completion, descriptions, and errors underlined.

It is pydantic's own, adapted to TOML editors: draft 4, because Taplo (and so Even Better TOML) reads no later
draft, and without references, which some editors do not follow. The schema is stricter than the program in
one point: it requires numbers to be numbers, while the program also accepts them as text.
"""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from sealgate.config.listing import plain_value
from sealgate.config.tree import Config

DRAFT = "http://json-schema.org/draft-04/schema#"


def json_schema() -> dict[str, Any]:
    """Return the schema of the whole file."""
    schema = Config.model_json_schema(schema_generator=_Draft4)
    definitions = schema.pop("$defs")
    return {"$schema": DRAFT, **_inlined(schema, definitions), "title": "Sealgate's configuration"}


def _inlined(node: Any, definitions: dict[str, Any]) -> Any:
    """Replace each reference by its target; keep the members beside a reference."""
    if isinstance(node, list):
        return [_inlined(member, definitions) for member in node]
    if not isinstance(node, dict):
        return node
    inner = {name: _inlined(member, definitions) for name, member in node.items() if name != "$ref"}
    if "$ref" not in node:
        return inner
    return {**_inlined(definitions[node["$ref"].rpartition("/")[2]], definitions), **inner}


class _Draft4(GenerateJsonSchema):
    def field_is_required(self, *_: object, **__: object) -> bool:
        """Require nothing: the environment may set it."""
        return False

    def field_title_should_be_set(self, _: object) -> bool:
        """Add no titles: they would only repeat the names."""
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Leave out a table's docstring, which is for readers of the code."""
        found = super().model_schema(schema)
        return {name: value for name, value in found.items() if name not in {"title", "description"}}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Leave out null, which TOML does not have."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Write a default as the file does; a table has none, because its members have their own."""
        found, default = self.generate_inner(schema["schema"]), schema.get("default")
        if isinstance(default, BaseModel) or default in (None, "", ()):
            return found
        return {**found, "default": plain_value(default)}

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Refuse names that do not match the pattern of names."""
        found = super().dict_schema(schema)
        return {**found, "additionalProperties": False} if "patternProperties" in found else found

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonSchemaValue:
        """Require unique members, so that the editor underlines a duplicate."""
        found = super().tuple_schema(schema)
        return {**found, "uniqueItems": True} if found["items"].get("type") == "string" else found

    def update_with_validations(
        self, json_schema: JsonSchemaValue, core_schema: CoreSchema, mapping: dict[str, str]
    ) -> None:
        """Write an exclusive bound as draft 4 does: the bound with a boolean beside it."""
        super().update_with_validations(json_schema, core_schema, mapping)
        if "exclusiveMinimum" in json_schema:
            json_schema.update(minimum=json_schema["exclusiveMinimum"], exclusiveMinimum=True)
