"""The OpenAPI document says what is served, and follows the options."""

from typing import Any

import pytest

from sandbox.client import Bot, bot_at_sandbox
from sealgate.sandbox.catalogue import CATALOGUE


async def _document(bot: Bot) -> Any:
    answer = await bot.send("GET", "/openapi.json")
    assert answer.status == 200
    return answer.body


async def test_it_is_openapi_3_1() -> None:
    async with bot_at_sandbox() as bot:
        assert (await _document(bot))["openapi"] == "3.1.0"


async def test_every_route_is_described_and_every_description_is_served() -> None:
    async with bot_at_sandbox() as bot:
        paths = (await _document(bot))["paths"]
        described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
        assert described == {(route.method, route.template) for route in bot.sandbox.exchange._routes}
        assert len(described) > 30


async def test_operations_have_names_of_their_own_and_summaries() -> None:
    async with bot_at_sandbox() as bot:
        operations = [
            found for methods in (await _document(bot))["paths"].values() for found in methods.values()
        ]
        assert len({found["operationId"] for found in operations}) == len(operations)
        assert all(found["summary"].endswith(".") for found in operations)


async def test_a_created_key_is_described_with_its_secret_and_a_listed_one_without() -> None:
    async with bot_at_sandbox() as bot:
        schemas = (await _document(bot))["components"]["schemas"]
        assert "api_secret" in schemas["CreatedKey"]["properties"]
        assert "api_secret" not in schemas["KeyRecord"]["properties"]


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


async def test_every_row_of_the_catalogue_is_documented_for_some_route() -> None:
    general = {"method_refused", "fault"}
    async with bot_at_sandbox() as bot:
        text = str(await _document(bot))
        absent = {
            slug for slug, row in CATALOGUE.items() if row.detail.split("'")[0].split('"')[0] not in text
        }
        assert absent <= general
