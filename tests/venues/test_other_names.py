"""Names that people give as `venue` and no file has: the right name, or why the exchange is not served."""

import ccxt  # type: ignore[import-untyped]
import pytest
from click.testing import CliRunner

from sealgate.cli import main
from sealgate.config import ConfigError, load_config
from sealgate.config.venue_names import Served, not_served, other_names, why_not
from sealgate.config.venues import built_in_venue, parse_venue, venue_names

# As hummingbot, freqtrade and NautilusTrader write them, or as a search for the exchange shows them.
ELSEWHERE = (
    "binance_perpetual",
    "binance_us",
    "bybit_perpetual",
    "okx_perpetual",
    "gate_io",
    "gate_io_perpetual",
    "kucoin_perpetual",
    "bitmart_perpetual",
    "hyperliquid_perpetual",
    "dydx_v4_perpetual",
    "coinbase_advanced_trade",
    "ascend_ex",
    "btc_markets",
    "krakenfutures",
    "Crypto.com",
    "crypto_com",
    "huobi",
    "okex",
)
WALLET = "it signs with a wallet, and the gateway holds API keys only"
DIRECTLY = "let the bot connect to it directly"


def told(name: str) -> str:
    """Return what is said of a name, "" where it is a venue."""
    try:
        parse_venue(name)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bitpanda-pro", "'bitpanda-pro' is not a venue; use onetrading"),
        ("hyperliquid", f"'hyperliquid' is not served: {WALLET}; {DIRECTLY}"),
        ("okex", "'okex' is not a venue; use okx"),
        ("huobi", "'huobi' is not a venue; use htx"),
        ("Gate.io", "'Gate.io' is not a venue; use gate"),
        ("mexc_contract", "'mexc_contract' is not a venue; use mexc-contract"),
        ("okx-swap", "'okx-swap' is not a venue; did you mean okx?"),
        ("okx.com", "'okx.com' is not a venue; did you mean okx?"),
        ("HTX.com", "'HTX.com' is not a venue; did you mean htx?"),
        ("bybit.global", "'bybit.global' is not a venue; did you mean bybit?"),
        ("huobi.com", "'huobi.com' is not a venue; did you mean htx?"),
        ("binance.com", "'binance.com' is not a venue; did you mean binance?"),
        ("bnance.com", "'bnance.com' is not a venue; did you mean binance?"),
        ("pionex.com", "'pionex.com' is not a venue; `sealgate venues` lists them"),
        ("okx.us", "'okx.us' is not a venue; use okxus"),
        ("bybit-eu", "'bybit-eu' is not a venue; use bybiteu"),
        ("binance_us", "'binance_us' is not a venue; use binanceus"),
        ("gate.eu", "'gate.eu' is not a venue; use gateeu"),
        ("kucoin_perpetual", "'kucoin_perpetual' is not a venue; use kucoinfutures"),
        ("huobi-swap", "'huobi-swap' is not a venue; use htx-swap"),
        ("weex-futures", "'weex-futures' is not a venue; use weex-contract"),
        ("okxus-swap", "'okxus-swap' is not a venue; did you mean okxus?"),
        ("bnance", "'bnance' is not a venue; did you mean binance?"),
        ("coinbase_advanced_trade", "'coinbase_advanced_trade' is not a venue; use coinbase"),
        ("upbit_sg", "'upbit_sg' is not a venue; use upbit with base_url = \"https://sg-api.upbit.com\""),
        ("bitmax", "'bitmax' is not a venue; use ascendex"),
        ("pionex", "'pionex' is not a venue; `sealgate venues` lists them"),
    ],
)
def test_a_name_is_answered_with_the_exchange_that_is_meant(name: str, text: str) -> None:
    assert told(name) == text


@pytest.mark.parametrize("name", ["binance-futures", "binance-usdm", "binance_perpetual", "BINANCE_FUTURES"])
def test_futures_at_another_host_are_a_venue(name: str) -> None:
    assert told(name) == f"{name!r} is not a venue; use binanceusdm"


def test_a_test_network_is_the_venue_with_the_settings_for_it() -> None:
    use = 'use binanceusdm with base_url = "https://testnet.binancefuture.com"'
    assert told("binance_perpetual_testnet") == f"'binance_perpetual_testnet' is not a venue; {use}"


def test_a_site_of_an_exchange_that_is_not_served_is_answered_with_the_reason() -> None:
    assert "hyperliquid is not served: it signs with a wallet" in told("hyperliquid.xyz")
    assert "bullish is not served: " in told("bullish.com")


def test_a_typo_in_a_name_that_is_not_served_leads_to_no_other_exchange() -> None:
    assert "hyperliquid is not served: it signs with a wallet" in told("hyperliqiud")


@pytest.mark.parametrize("name", [*ccxt.exchanges, *ELSEWHERE])
def test_every_name_that_clients_use_is_known(name: str) -> None:
    text = told(name)
    assert "lists them" not in text
    assert "did you mean" not in text or name.startswith(text.rpartition(" ")[2].strip("?"))


def test_what_is_told_can_be_written() -> None:
    for names, meaning in other_names().rows:
        assert not [name for name in names if name in venue_names()]
        if isinstance(meaning, Served):
            venue = built_in_venue(meaning.venue)
            key = {"api_key": "ak", "secret": "env:S"}
            key |= {one: "env:P" for one in ("passphrase", "uid") if venue.signing.needs(one)}
            settings = {name.replace(".", "__"): value for name, value in meaning.settings.items()}
            settings |= {"venue": venue.name} | {f"keys__main__{name}": value for name, value in key.items()}
            environ = {f"SEALGATE_{name.upper()}": value for name, value in settings.items()}
            assert load_config(None, environ=environ).venue == venue


def test_no_name_means_two_things() -> None:
    names = [*venue_names(), *(name for names, _ in other_names().rows for name in names)]
    plain = [name.replace("-", "") for name in names]
    assert [name for name in plain if plain.count(name) > 1] == []


def test_a_reason_is_given_for_a_name_in_whatever_spelling_and_for_no_other_name() -> None:
    reason = why_not("dYdX_V4")
    assert reason == not_served()["dydx-v4"]
    assert str(reason) == f"{WALLET}; {DIRECTLY}"
    assert [why_not(name) for name in ("binance", "okex", "dydx-v5", "")] == [None] * 4


def test_a_configuration_and_the_commands_say_the_same() -> None:
    with pytest.raises(ConfigError, match=r"SEALGATE_VENUE: 'dydx' is not served: it signs with a wallet"):
        load_config(None, environ={"SEALGATE_VENUE": "dydx"})
    result = CliRunner().invoke(main, ("config", "init", "--venue", "dydx"))
    assert result.exit_code == 2
    assert "'dydx' is not served: it signs with a wallet" in result.stderr
    shown = CliRunner().invoke(main, ("venues", "show", "dydx"))
    assert shown.exit_code == 1
    assert "it signs with a wallet" in shown.stdout
