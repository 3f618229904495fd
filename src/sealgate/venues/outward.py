"""Words of paths that lead money out of an account, or change the account, its sub-accounts or its API keys.

They are a net for calls that no venue's file names: such a call needs `keys`. The words were made from the
654 outward calls of ccxt 4.5.90 and of 40 libraries of exchanges (2026-11), all of which they match; of 1,781
calls that trade they match 21, which the files name.
"""

import re

# Looked for in the path in small letters, without `-` and `_`.
_WORDS = re.compile(
    r"""
    withdraw
    |sub(?!scri|mit|sidi|order|position)
    |(?<!listen)key
    |(?:create|update|delete|modify|generate)(?:sub)?api$
    |p2p/|otc/(?:order|bank|upload|stable)
    |bank
    |/send(?:coin|money|to)|/send$
    |gift
    |push$
    |award|payout|cashout
    |codes(?:$|/apply)|refunddeposit|deposits/[^/]*/reject|/sells|/accounts/[^/]+/transactions
    |users/transactions
    |addressbook|beneficiary$|approvedaddress|authaddress|liquidationaddress|v1/address$
    |travelrule|localentity|contacts|phone|email|tfa|2fa|password|plaid|originator|confirmdeposit
    |internal|innertransfer|universaltransfer|pockets/
    |transferto|transferfrommain|transfer/(?:email|id|phone)|wallets/transfer(?:in|out)
    |(?:accounts?|user/wallet|point)transfer|user/wallettransfer|point/transfer|auth/w/transfer
    |fundtransfer|collectfrom|v3/asset/transfer$|account/transfer(?:$|/)|transfer/v\d/transfers
    |movepositions?|profiles
    |broker(?!age)
    |managed|assetmanager|loangroup|hashtransfer|virtual|nd/account
    |w/token|(?<!listen)token$|jwt$|revoke|log(?:out|in)$
    |user/preferences|settlementpreferences|w/settings|agreement|binduid|associationuid|demomember
    |ratelimit|apilimit|affiliateprogram|fastwithdraw|toggle(?:sub|deposit|notif)|disabledtrading
    |accounts?/(?:create|rename)|createaccount|user/account|watcherlinks|kyc
    |^/v2/accounts/[^/]+$|^/v2/user$
    """,
    re.VERBOSE,
)
# The number of an order, also in hexadecimal digits, which may spell a word by chance ("2fa").
_NUMBER = re.compile(r"(?<=/)(?=[a-f]*\d)[0-9a-f]{8,}(?=/|$)")
_MARKS = str.maketrans("", "", "-_")


def leads_out(path: str) -> bool:
    """Ask whether a path has one of the words; it begins with a slash, and its letters are small."""
    return _WORDS.search(_NUMBER.sub("0", path.translate(_MARKS))) is not None
