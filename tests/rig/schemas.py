"""The files of `deploy/`, read and held to the schemas of those who will read them."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
SCHEMAS = Path(__file__).parents[1] / "deploy" / "schemas"


def documents(text: str) -> list[dict[str, Any]]:
    """Return the documents of a YAML text."""
    return [document for document in yaml.safe_load_all(text) if document is not None]


@cache
def _schema(name: str) -> Any:
    return json.loads((SCHEMAS / f"{name}.json").read_text())


def compose_problems(document: object) -> list[str]:
    """Return what the Compose Specification has against a file."""
    return _problems(_schema("compose"), document)


def kubernetes_problems(document: dict[str, Any]) -> list[str]:
    """Return what Kubernetes, or the Prometheus Operator, has against an object."""
    kind = document["kind"]
    if kind == "PodMonitor":
        return _problems(_schema("pod-monitor"), document)
    definitions = _schema("kubernetes")["$defs"]
    [name] = [name for name in definitions if name.startswith("io.k8s.api.") and name.endswith(f".{kind}")]
    return _problems({"$ref": f"#/$defs/{name}", "$defs": definitions}, document)


def _problems(schema: Any, document: object) -> list[str]:
    found = jsonschema_rs.validator_for(schema).iter_errors(document)
    return [f"{'/'.join(map(str, error.instance_path))}: {error.message}" for error in found]
