"""A bot that only watches: it prints when the list of symbols changes.

TOKEN_FILE=watcher.token python watcher.py http://127.0.0.1:8787 [HOW_OFTEN]
"""

import os
import pathlib
import sys
import time
import urllib.error
import urllib.request

PAUSE_S = 5


def read(gateway, path):
    """Return the status and the text of a reply; the gateway has waited and tried again where that helps.

    While the gateway restarts there is no reply: the status is 0 then.
    """
    request = urllib.request.Request(gateway + path)
    token = pathlib.Path(os.environ["TOKEN_FILE"]).read_text().strip()
    request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=45) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as reply:
        with reply:
            return reply.status, reply.read().decode()
    except OSError as error:
        return 0, f"no reply: {error}"


def main(gateway, how_often="0"):
    """Watch for ever, or so many times."""
    last, turns = None, 0
    while not int(how_often) or turns < int(how_often):
        if turns:
            time.sleep(PAUSE_S)
        turns += 1
        now = read(gateway, "/v1/trade/symbols/list")
        if now != last:
            print(*now, flush=True)
        last = now


if __name__ == "__main__":
    main(*sys.argv[1:])
