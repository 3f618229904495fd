"""Stand-ins for `op`, `vault` and `aws`, as programs: they take the same arguments, and fail alike.

Each behaves as the real command line does with output that is no terminal: what it prints, whether a newline
follows, where it looks for its login, its exit codes (vault: 1 local, 2 remote; aws: 253 configuration, 254
the service). It imports nothing of ours, as it is copied to where it runs. `$HOME/NAME.env` has the names of
the variables that it got.
"""

import argparse
import configparser
import os
import sys
from pathlib import Path
from typing import NoReturn

SECRET = "c4n4ry-0123456789abcdef"
OP_TOKEN, VAULT_TOKEN, VAULT_ADDR = "ops_eyJ0ZXN0", "hvs.CAESIJ", "https://vault.example:8200"


def fail(code: int, text: str) -> NoReturn:
    sys.stderr.write(f"{text}\n")
    raise SystemExit(code)


def op(arguments: list[str]) -> None:
    verb, reference = arguments
    if verb != "read":
        fail(1, f'[ERROR] 2026/11/28 12:00:00 unknown command "{verb}" for "op"')
    if os.environ.get("OP_SERVICE_ACCOUNT_TOKEN") != OP_TOKEN:
        fail(1, "[ERROR] 2026/11/28 12:00:00 No accounts configured for use with 1Password CLI.")
    if reference != "op://bots/main/secret":
        text = f"could not read secret '{reference}': \"bots\" isn't a vault in this account."
        fail(1, f"[ERROR] 2026/11/28 12:00:00 {text} Specify the vault with its ID or name.")
    sys.stdout.write(f"{SECRET}\n")


def vault(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("verbs", nargs=2)
    parser.add_argument("-mount")
    parser.add_argument("-field")
    parser.add_argument("path")
    given = parser.parse_args(arguments)
    if given.verbs != ["kv", "get"]:
        fail(127, "Usage: vault <command> [args]")
    address = os.environ.get("VAULT_ADDR", "https://127.0.0.1:8200")
    if address != VAULT_ADDR:
        fail(2, f'Get "{address}/v1/sys/internal/ui/mounts/kv": dial tcp: connect: connection refused')
    cached = Path.home() / ".vault-token"
    token = os.environ.get("VAULT_TOKEN") or (cached.read_text().strip() if cached.exists() else "")
    if token != VAULT_TOKEN:
        fail(2, f"Error making API request.\n\nURL: GET {address}\nCode: 403. Errors:\n\n* permission denied")
    if (given.mount, given.path) != ("kv", "main"):
        fail(2, f"No value found at {given.mount}/data/{given.path}")
    if given.field != "secret":
        fail(1, f'Field "{given.field}" not present in secret')
    sys.stdout.write(SECRET)  # a newline follows only on a terminal


def aws(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("verbs", nargs=2)
    for name in ("--secret-id", "--query", "--output"):
        parser.add_argument(name, required=True)
    given = parser.parse_args(arguments)
    if given.verbs != ["secretsmanager", "get-secret-value"]:
        fail(252, "aws: [ERROR]: argument command: Found invalid choice")
    profile = _aws_profile(os.environ.get("AWS_PROFILE", "default"))
    key = os.environ.get("AWS_SECRET_ACCESS_KEY") or profile.get("aws_secret_access_key")
    if not key:
        fail(253, 'Unable to locate credentials. You can configure credentials by running "aws configure".')
    if not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or profile.get("region")):
        fail(253, 'You must specify a region. You can also configure your region by running "aws configure".')
    called = "An error occurred ({}) when calling the GetSecretValue operation: {}"
    if os.environ.get("AWS_SESSION_TOKEN") == "expired":
        fail(254, called.format("ExpiredTokenException", "The security token in the request is expired"))
    if given.secret_id != "main":
        text = "Secrets Manager can't find the specified secret."
        fail(254, called.format("ResourceNotFoundException", text))
    sys.stdout.write(f"{SECRET if (given.query, given.output) == ('SecretString', 'text') else None}\n")


def _aws_profile(name: str) -> dict[str, str]:
    files = configparser.ConfigParser()
    files.read([Path.home() / ".aws" / "credentials", Path.home() / ".aws" / "config"])
    return dict(files[name]) if files.has_section(name) else {}


if __name__ == "__main__":
    program = Path(sys.argv[0]).name
    (Path.home() / f"{program}.env").write_text("\n".join(os.environ))
    {"op": op, "vault": vault, "aws": aws}[program](sys.argv[1:])
