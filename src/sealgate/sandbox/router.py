"""Routes, and finding one by the raw path: segments are compared as they came and only then decoded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel

from sealgate.sandbox.access import Access
from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.message import Call
from sealgate.sandbox.models.wire import Nothing


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path: who may call it, what it reads and gives, which rows may refuse it.

    The docstring of `call` is its summary in the OpenAPI document. `counts`: against the rate limit.
    """

    method: str
    template: str
    access: Access
    takes: type[BaseModel]
    gives: type[BaseModel]
    call: Callable[[Call[Any]], BaseModel]
    refusals: Sequence[str] = ()
    counts: bool = True

    @property
    def reads_body(self) -> bool:
        """Whether the input comes in the body; else it comes in the query."""
        return self.method in {"POST", "PUT", "PATCH", "WS"} and self.takes is not Nothing


@dataclass(frozen=True, slots=True)
class Found:
    """A route and the values of its path parameters."""

    route: Route
    params: Mapping[str, str]


class Router:
    """Paths without parameters in a table, which goes first; the few others in a list."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._fixed: dict[str, dict[str, Route]] = {}
        self._patterns: list[tuple[list[str], dict[str, Route]]] = []
        for route in routes:
            self._methods(route.template)[route.method] = route

    def _methods(self, template: str) -> dict[str, Route]:
        if "{" not in template:
            return self._fixed.setdefault(template, {})
        segments = template.split("/")
        for known, methods in self._patterns:
            if known == segments:
                return methods
        self._patterns.append((segments, {}))
        return self._patterns[-1][1]

    def find(self, method: str, path: str) -> Found:
        """Find the route; raise `ApiError` with 404, or 405 with Allow. HEAD is answered as GET is."""
        methods, params = self._look_up(path)
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            raise ApiError("method_refused", headers={"Allow": _allow(methods)})
        return Found(route, params)

    def _look_up(self, path: str) -> tuple[dict[str, Route], Mapping[str, str]]:
        if path in self._fixed:
            return self._fixed[path], {}
        segments = path.split("/")
        for template, methods in self._patterns:
            params = _match(template, segments)
            if params is not None:
                return methods, params
        raise ApiError("not_found")


def _match(template: list[str], segments: list[str]) -> dict[str, str] | None:
    if len(template) != len(segments):
        return None
    params = {}
    for name, segment in zip(template, segments, strict=True):
        if name.startswith("{") and segment:
            params[name[1:-1]] = unquote(segment)
        elif name != segment:
            return None
    return params


def _allow(methods: Mapping[str, Route]) -> str:
    also = {"HEAD"} if "GET" in methods else set()
    return ", ".join(sorted({*methods, *also}))
