"""The OpenAPI document says what is served, and follows the options."""

from typing import Any

import pytest

from sandbox.client import Bot, bot_at_sandbox
from sealgate.sandbox.catalogue import CATALOGUE


async def _document(bot: Bot) -> Any:
    answer = await bot.send("GET", "/openapi.json")
    assert answer.status == 200
    return answer.body


async def test_every_route_is_described_and_every_description_is_served() -> None:
    async with bot_at_sandbox() as bot:
        document = await _document(bot)
        routes = bot.sandbox.exchange._routes
    assert document["openapi"] == "3.1.0"
    operations = {
        (method.upper(), path): found
        for path, methods in document["paths"].items()
        for method, found in methods.items()
    }
    assert set(operations) == {(route.method, route.template) for route in routes}
    assert len({found["operationId"] for found in operations.values()}) == len(operations) > 30
    assert all(found["summary"].endswith(".") for found in operations.values())
    schemas = document["components"]["schemas"]
    assert "api_secret" in schemas["CreatedKey"]["properties"]
    assert "api_secret" not in schemas["KeyRecord"]["properties"]
    details = {slug: row.detail.split("'")[0].split('"')[0] for slug, row in CATALOGUE.items()}
    absent = {slug for slug, detail in details.items() if detail not in str(document)}
    assert absent <= {"method_refused", "fault"}, "these can come of any route"


STATUSES = [
    ({"needs_transfer_status": 449}, "/v1/trade/order", "post", "449"),
    ({"unknown_key_status": 410}, "/v1/trade/api-keys/{api_key}", "delete", "410"),
    ({"handshake_method": "PUT"}, "/v1/trade/user/handshake", "put", "429"),
]


@pytest.mark.parametrize(("settings", "path", "method", "status"), STATUSES, ids=[row[3] for row in STATUSES])
async def test_options_show(settings: dict[str, Any], path: str, method: str, status: str) -> None:
    async with bot_at_sandbox(**settings) as bot:
        assert status in (await _document(bot))["paths"][path][method]["responses"]


@pytest.mark.parametrize(
    ("choice", "closed"), [("forbid", True), ("ignore", False)], ids=["forbid", "ignore"]
)
async def test_unknown_fields_show(choice: str, *, closed: bool) -> None:
    async with bot_at_sandbox(unknown_fields=choice) as bot:
        schemas = (await _document(bot))["components"]["schemas"]
        assert ("additionalProperties" in schemas["PlaceOrder"]) == closed
