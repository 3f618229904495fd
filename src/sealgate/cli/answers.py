"""The answers that `config init` needs for an exchange: from options, or asked on a terminal.

Each is checked at once, in the words of the configuration or of what reads the secret.
"""

import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from sealgate.cli.questions import Fault, ask, name_of
from sealgate.cli.secret_answers import SecretAnswers, fault_of_secret
from sealgate.config import Config, values
from sealgate.config.first_file import Answers
from sealgate.config.names import STRANGER, STRANGERS_LABEL
from sealgate.config.problems import problems_of
from sealgate.config.venues import DEFAULT_VENUE, parse_venue, venue_names, venue_text_in
from sealgate.machine.terminal import leave_with_error
from sealgate.venues.key_kinds import Kind
from sealgate.venues.venue import Venue

_LIVE = "live"
_WIDTH = 76
_NO_BOT = "-"


class Answering:
    """What is answered, and how: `given` are the options by name, `asks` says that there is a person."""

    def __init__(self, file: Path, given: Mapping[str, str], *, asks: bool, is_forced: bool) -> None:
        self.file, self.given, self.is_forced = file, given, is_forced
        self.secrets = SecretAnswers(file, given, asks=asks, is_forced=is_forced)
        self._asks = asks

    def venue(self) -> Venue:
        """Ask which exchange it is."""
        if not self._asks:
            raise click.UsageError("--venue is missing: a name that `sealgate venues` lists.")
        names = venue_names()

        def fault(answer: str) -> str | None:
            if answer in ("", "?"):
                listed = textwrap.wrap(", ".join(names), _WIDTH, break_on_hyphens=False)
                return "\n  ".join(listed) if answer else "is empty; type its name, or ? for a list"
            try:
                parse_venue(_as_listed(answer))
            except ValueError as error:
                return str(error)
            return None

        venue = parse_venue(_as_listed(ask("Exchange (? lists them)", fault)))
        about = f"{venue.title}. {venue.note}"
        indent = "  "
        lines = textwrap.wrap(
            about, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        )
        click.echo("\n".join(lines))
        return venue

    def of(self, venue: Venue) -> Answers:
        """Answer what the exchange itself needs."""
        environment = self._environment(venue)
        base_url = ""
        if not venue.base_url or "base_url" in self.given:
            kind = Config.model_fields["base_url"].rebuild_annotation()
            base_url = self._answer("--base-url", "Its address (https://…)", _fault_of(kind))
        title = f"{venue.title} ({environment})" if environment else venue.title
        return Answers(title, self._name_of(venue), environment, base_url)

    def key(self, venue: Venue, answers: Answers, alias: str, api_keys: Mapping[str, str]) -> Answers:
        """Answer what a key of the exchange needs. `api_keys` are those of the file, by alias."""
        for name, option, question in (
            ("api_key", "--api-key", "API key"),
            ("uid", "--uid", "The account's id or memo"),
        ):
            if venue.signing.needs(name):
                kind = values.ApiKey if name == "api_key" else values.KeyUid
                value = self._answer(option, question, _fault_of(kind))
                answers = replace(answers, **{name: value})
        answers = self._secret(venue, answers, alias, {**api_keys, alias: answers.api_key})
        if venue.signing.needs("passphrase"):
            question = "Passphrase of the API key (not shown)"
            stored = self.secrets.reference("--passphrase-file", question, f"{alias}.passphrase")
            answers = replace(answers, passphrase=stored)
        return answers

    def key_of(self, old: Config, likely: Sequence[str]) -> str:
        """Answer which key of a file is to be used for the exchange that is added, "" for a new one.

        `likely` are the keys that may be valid there, too; without any, nobody is asked.
        """

        def fault(answer: str) -> str | None:
            is_known = answer in old.keys or (not answer and "key" not in self.given)
            return None if is_known else f"is not a key of {self.file}; write {' or '.join(old.keys)}"

        if not likely and "key" not in self.given:
            return ""
        names = " or ".join(dict.fromkeys(likely))
        return self._answer("--key", f"Key ({names}, which you have, or Enter for a new one)", fault, "")

    def new_bot(self) -> str:
        """Answer what the first bot is called."""
        return self._answer("--bot", "A name for your bot", self._fault_of_bot, "grid")

    def bot_of(self, old: Config) -> str:
        """Answer which bot gets the key of the exchange that is added, "" for none.

        Only a person who is asked gets a bot offered.
        """
        listed = "".join(f"{name}, " for name in old.bots)
        offered = next(iter(old.bots), "") if self._asks else ""

        def fault(answer: str) -> str | None:
            return None if answer in {"", _NO_BOT, *old.bots} else self._fault_of_bot(answer)

        question = f"Bot that may use it ({listed}a new name, or {_NO_BOT} for none)"
        answer = self._answer("--bot", question, fault, offered)
        return "" if answer == _NO_BOT else answer

    def complete(self) -> None:
        """Leave if an answer is missing for which nobody can be asked."""
        if missing := self.secrets.missing:
            leave_with_error(f"nothing was written: without a terminal, also give {', '.join(missing)}")

    def _answer(self, option: str, question: str, fault: Fault, default: str | None = None) -> str:
        """Return the answer of an option, else of a person, else the default; without one, it is needed."""

        def checked(text: str) -> str | None:
            return "is empty; it is needed" if not text and default is None else fault(text)

        given = self.given.get(name_of(option))
        if given is not None:
            if (wrong := checked(given)) is not None:
                leave_with_error(f"{option}: {wrong}")
            return given
        if self._asks:
            return ask(question, checked, default or "")
        if default is None:
            self.secrets.missing.append(option)
        return default or ""

    def _environment(self, venue: Venue) -> str:
        names = [_LIVE, *venue.environments]
        if len(names) == 1 and "environment" not in self.given:
            return ""

        def fault(answer: str) -> str | None:
            return None if answer in names else f"is not one of {venue.title}'s; write {' or '.join(names)}"

        answer = self._answer("--environment", f"Environment ({', '.join(names)})", fault, _LIVE)
        return "" if answer == _LIVE else answer

    def _secret(self, venue: Venue, answers: Answers, alias: str, api_keys: Mapping[str, str]) -> Answers:
        """Answer where the secret is and, of an encrypted private key, where its passphrase is."""
        opening = ""

        def fault(content: bytes) -> str | None:
            nonlocal opening
            is_encrypted = b"ENCRYPTED" in content or "secret_passphrase_file" in self.given
            if is_encrypted and not opening:
                question, name = "Passphrase of the private key (not shown)", f"{alias}.secret-passphrase"
                opening = self.secrets.reference("--secret-passphrase-file", question, name)
            wrong = fault_of_secret(venue, content, api_keys, self.secrets.content(opening))
            if wrong is not None:
                self.secrets.forget(opening)
                opening = ""
            return wrong

        has_secrets, has_private_keys = Kind.HMAC in venue.schemes, {*venue.schemes} != {Kind.HMAC}
        words = "Secret" if has_secrets else "Private key"
        words += " or private key" if has_secrets and has_private_keys else ""
        hint = "its text or its file; not shown" if has_private_keys else "not shown"
        secret = self.secrets.reference(
            "--secret-file", f"{words} ({hint})", f"{alias}.secret", fault, may_be_file=has_private_keys
        )
        return replace(answers, secret=secret, secret_passphrase=opening)

    def _fault_of_bot(self, name: str) -> str | None:
        if (wrong := _fault_of(values.Name)(name)) is not None:
            return wrong
        if name in (STRANGER, STRANGERS_LABEL):
            return "is the name of requests without a valid token; choose another name"
        token = self.file.with_name(f"{name}.token")
        is_taken = os.path.lexists(token) and not self.is_forced
        return f"{token} exists already; choose another name" if is_taken else None

    def _name_of(self, venue: Venue) -> str:
        """Return how the file names the venue, "" for the one that needs no name."""
        return "" if venue.name == DEFAULT_VENUE else venue_text_in(self.file, venue)


def _as_listed(name: str) -> str:
    """Return the name of a venue in the letters that it has in the list."""
    return name.lower() if name.lower() in venue_names() else name


def _fault_of(kind: Any) -> Fault:
    """Return what finds out why a text is no value of a setting's type."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)

    def fault(text: str) -> str | None:
        try:
            adapter.validate_python(text)
        except ValidationError as error:
            return problems_of(error)[0].text
        return None

    return fault
