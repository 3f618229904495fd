"""Deposit and withdrawal: in the app only, so a session and a passkey are needed and no API key helps.

The real service wants an EIP-712 signature of the wallet. Here a stand-in takes its place, which anybody
can compute: the SHA-256 of `withdraw:ADDRESS:AMOUNT:NONCE`, in hexadecimal after `0x`.
"""

import hashlib
from decimal import Decimal

from sealgate.sandbox.account import Account, Accounts
from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.market import parse_amount, plain
from sealgate.sandbox.message import Call
from sealgate.sandbox.models.trading import Deposit, WalletReply, Withdraw

MIN_DEPOSIT = Decimal(5)


class WalletDesk:
    """The two calls."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def deposit(self, call: Call[Deposit]) -> WalletReply:
        """Deposit USDC, in the app only."""
        account = self._accounts.of(call.address)
        amount = parse_amount(call.input.amount)
        if amount is None or amount < MIN_DEPOSIT:
            raise ApiError("deposit_small")
        account.usdc += amount
        return _reply(account)

    def withdraw(self, call: Call[Withdraw]) -> WalletReply:
        """Withdraw USDC, in the app only: the nonce must be the next one and the signature must fit."""
        account = self._accounts.of(call.address)
        body = call.input
        signature = wallet_signature(call.address, str(body.amount), body.nonce)
        if body.nonce != account.next_nonce or body.signature != signature:
            raise ApiError("withdrawal_signature")
        amount = parse_amount(body.amount)
        if amount is None or amount > account.free():
            raise ApiError("balance_short")
        account.usdc -= amount
        account.next_nonce += 1
        return _reply(account)


def wallet_signature(address: str, amount: str, nonce: int) -> str:
    """Make the stand-in for a wallet's EIP-712 signature."""
    return "0x" + hashlib.sha256(f"withdraw:{address}:{amount}:{nonce}".encode()).hexdigest()


def _reply(account: Account) -> WalletReply:
    return WalletReply(usdc=plain(account.usdc), next_nonce=account.next_nonce)
