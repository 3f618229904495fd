"""Makes the schemas of this folder anew from the packages that README.md names, which must be installed.

Only the kinds that `deploy/` uses are kept, without descriptions. An unknown name is an error in all of them.
"""

import importlib
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
KUBERNETES = "v1.33.0"  # the first in which sidecars are stable
KINDS = {
    "ConfigMap": "core.v1",
    "Namespace": "core.v1",
    "Deployment": "apps.v1",
    "StatefulSet": "apps.v1",
    "Job": "batch.v1",
    "NetworkPolicy": "networking.v1",
}
_PROSE = ("description", "title")
_REFERENCE = re.compile(r'"\$ref": "([^"]+)"')


def without_prose(node: Any) -> Any:
    """Leave out what is only for readers; a property may itself be called description."""
    if isinstance(node, list):
        return [without_prose(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        name: without_prose(value)
        for name, value in node.items()
        if not (name in _PROSE and isinstance(value, str)) and not name.startswith("x-kubernetes")
    }


def closed(node: Any) -> Any:
    """Forbid names that an object does not list, as an API server that is asked to be strict does."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    inner = {name: closed(value) for name, value in node.items()}
    if isinstance(node.get("properties"), dict):
        inner.setdefault("additionalProperties", False)
    return inner


def compose() -> Any:
    """Return the schema of compose files."""
    file = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    return without_prose(json.loads(file.read_text()))


def kubernetes() -> Any:
    """Return the schemas of our kinds, by name, with what they refer to."""
    folder = files("kubernetes_validate") / "kubernetes-json-schema" / f"{KUBERNETES}-local-strict"
    known = json.loads((folder / "_definitions.json").read_text())["$defs"]
    kept: dict[str, Any] = {}
    wanted = [f"io.k8s.api.{group}.{kind}" for kind, group in KINDS.items()]
    while wanted:
        name = wanted.pop()
        if name not in kept:
            text = json.dumps(without_prose(known[name]))
            wanted += [reference.rsplit("/", 1)[-1] for reference in _REFERENCE.findall(text)]
            kept[name] = json.loads(re.sub(r'"\$ref": "[^"]*/', '"$ref": "#/$defs/', text))
    return {"$defs": kept}


def pod_monitor() -> Any:
    """Return the schema of the Prometheus operator's PodMonitor."""
    models = importlib.import_module("cloudcoil.models.prometheus_operator.v1")
    return closed(without_prose(models.PodMonitor.model_json_schema(by_alias=True)))


def main() -> None:
    """Write the files."""
    for name, make in (("compose", compose), ("kubernetes", kubernetes), ("pod-monitor", pod_monitor)):
        text = json.dumps(make(), sort_keys=True, separators=(",", ":"))
        (FOLDER / f"{name}.json").write_text(f"{text}\n")


if __name__ == "__main__":
    main()
