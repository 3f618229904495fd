"""What is advised by more than one: the same trouble has the same fix, whoever meets it.

Each is a part of a line; `sentence` makes a whole one of it.
"""

REACH = "check base_url, the network and the exchange's status"
RENEW = "make a new key in the app, put it into keys.*, and reload"


def sentence(advice: str) -> str:
    """Return advice as a sentence."""
    return f"{advice[0].upper()}{advice[1:]}."
