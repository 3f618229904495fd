"""The types of settings, which pydantic checks and describes to editors.

A type is one of pydantic's with constraints, and up to four marks of ours: `From` reads a value from another
form, `Words` replaces pydantic's errors, `Anchored` resolves a relative path from a folder, and `Masked`
hides parts that may be secret when settings are shown.

The order in an `Annotated` matters. Constraints come first, because pydantic does not describe those after a
validator; then marks that read text; then `Words`, which covers everything before it; last, checks with their
own words.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ByteSize,
    Field,
    GetCoreSchemaHandler,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

from sealgate.config.addresses import (
    Address,
    BaseUrl,
    ProxyUrl,
    parse_address,
    parse_base_url,
    parse_host,
    parse_loopback_address,
    parse_proxy,
    parse_redis,
    parse_source,
    parse_streams_url,
)
from sealgate.config.files import (
    OFF,
    check_ca_file,
    check_journal_file,
    check_pem_file,
    check_socket,
    expand_home,
    from_folder,
    group_number,
)
from sealgate.config.names import LONGEST_NAME, has_dot_segment
from sealgate.config.references import mask_arguments, parse_reference, reference_from_folder
from sealgate.config.venues import parse_venue, venue_from_folder
from sealgate.http.headers import is_settable
from sealgate.limits.quotas import Quota
from sealgate.venues.venue import Venue

NAME = f"^[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}$"
EXCHANGE_NAME = f"^[a-z0-9][a-z0-9_-]{{0,{LONGEST_NAME - 1}}}$"

_NOBODY_AT_ALL = 2**32 - 1  # to chown(2) this means "unchanged"
_OVERFLOW = 65534  # user_namespaces(7): a user that is not mapped into this namespace
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SHOWN = 4  # letters of an API key; people paste the secret in its place
_BYTES = TypeAdapter(ByteSize)


@dataclass(frozen=True, slots=True)
class From:
    """Check a value as the type `form`, then turn it into the annotated type with `make`."""

    form: Any
    make: Callable[[Any], object]

    def __get_pydantic_core_schema__(self, _: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate and describe the form; pass its value to `make`."""
        return core_schema.no_info_after_validator_function(self.make, handler.generate_schema(self.form))


@dataclass(frozen=True, slots=True)
class Words:
    """Replace every error of the marks before this one by "cause; fix"."""

    text: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Give the type a single error."""
        return core_schema.custom_error_schema(handler(source), "words", custom_error_message=self.text)


@dataclass(frozen=True, slots=True)
class Anchored:
    """Resolve a relative path in a configuration file from the file's folder: text, folder -> text."""

    at: Callable[[str, Path], str]


@dataclass(frozen=True, slots=True)
class Masked:
    """Show a value's text without the parts that may be secret."""

    by: Callable[[str], str]


def _like(pattern: str) -> WithJsonSchema:
    """Describe a text to editors by a pattern, although its parser knows more causes of errors."""
    return WithJsonSchema({"type": "string", "pattern": pattern})


# -- numbers: in the environment they are text


def _number(value: object) -> object:
    """Read text as a number; refuse true and false, which pydantic takes for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError  # noqa: TRY004 - pydantic turns a ValueError into a problem
    return float(value) if isinstance(value, str) else value


_NUMBER = BeforeValidator(_number)

Seconds = Annotated[
    float,
    Field(gt=0, allow_inf_nan=False),
    _NUMBER,
    Words("is not a duration; write a number of seconds above 0"),
]
SecondsOrZero = Annotated[
    float,
    Field(ge=0, allow_inf_nan=False),
    _NUMBER,
    Words("is not a duration; write a number of seconds, 0 or more"),
]
Count = Annotated[int, Field(ge=1), _NUMBER, Words("is not a count; write a whole number above 0")]
# A weight above 100 would leave the other bots next to nothing.
Weight = Annotated[
    float, Field(gt=0, le=100), _NUMBER, Words("is not a weight; write a number above 0, at most 100")
]


def _user_of_this_machine(uid: int) -> int:
    if uid == _OVERFLOW:
        raise ValueError(
            f"is {_OVERFLOW}, the id that all users of other containers appear as; give the bot a user here"
        )
    return uid


Uid = Annotated[
    int,
    Field(ge=0, le=_NOBODY_AT_ALL - 1),
    _NUMBER,
    Words("is not a numeric user id; write what `id -u NAME` prints"),
    AfterValidator(_user_of_this_machine),
]
Group = Annotated[
    int,
    From(str | Annotated[int, Field(strict=True)], group_number),
    Words("is not a group on this machine; name one that exists, or write its number"),
]
Size = Annotated[
    ByteSize,
    From(
        Annotated[str, Field(pattern="^ *0*[1-9][0-9]{0,14} *(([KkMmGg][Ii]?)?[Bb])? *$")]
        | Annotated[int, Field(strict=True, ge=1, le=10**15 - 1)],
        _BYTES.validate_python,
    ),
    Words('is not a size above 0; write bytes, or a unit as in "512 KiB" or "1 MB"'),
]


def _amount(written: str | int) -> Decimal:
    amount = Decimal(written)
    if not amount:
        raise ValueError
    return amount


# A float would change the amount as written.
Amount = Annotated[
    Decimal,
    From(
        Annotated[str, Field(pattern=r"^[0-9]{1,40}(\.[0-9]{1,40})?$")]
        | Annotated[int, Field(strict=True, ge=1)],
        _amount,
    ),
    Words('is not an amount above 0; write it as text, as in "0.5"'),
]


def _from_json(text: str, form: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        raise ValueError(f"begins like a JSON {form} but is not valid; check quotes and commas") from None


def _table(value: object) -> object:
    is_json = isinstance(value, str) and value.lstrip().startswith("{")
    return _from_json(str(value), "table") if is_json else value


def _frozen(value: Decimal | dict[str, Decimal]) -> Decimal | Mapping[str, Decimal]:
    return MappingProxyType(value) if isinstance(value, dict) else value


Amounts = Annotated[
    Decimal | Mapping[str, Decimal],
    From(Amount | Annotated[dict[str, Amount], Field(min_length=1)], _frozen),
    Words('is not an amount above 0; write it as text, as in "0.5", or a table such as { BTC = "0.5" }'),
    BeforeValidator(_table),
]

# -- header fields sent with each request


def _header_name(name: str) -> str:
    if not is_settable(name):
        raise ValueError("is a header that the gateway or the bot sets itself; remove it")
    return name


def _different_names(fields: dict[str, str]) -> Mapping[str, str]:
    if len({name.lower() for name in fields}) < len(fields):
        raise ValueError("has the same header twice; remove one")
    return MappingProxyType(fields)


# Without `_`: some servers drop such a field, or treat it like the one with `-`.
_HeaderName = Annotated[
    str,
    Field(pattern="^[A-Za-z0-9-]{1,64}$"),
    Words("is not a header's name; use 1 to 64 letters, digits and -"),
    AfterValidator(_header_name),
]
_HeaderValue = Annotated[
    str,
    Field(pattern="^[!-~]([ -~]{0,1022}[!-~])?$"),
    Words("is not a header's value; write text of up to 1024 printable ASCII characters"),
]
HeaderFields = Annotated[
    Mapping[str, str], From(dict[_HeaderName, _HeaderValue], _different_names), BeforeValidator(_table)
]

# -- names and paths chosen by users

Name = Annotated[
    str, Field(pattern=NAME), Words("is not a usable name; use 1 to 32 letters, digits, _ and -")
]
ApiKey = Annotated[
    str,
    Field(pattern="^[!-~]{0,512}$"),
    Words("is not an API key; use at most 512 printable ASCII characters without spaces"),
    Masked(lambda text: f"{text[:_SHOWN]}…"),
]
KeyUid = Annotated[
    str,
    From(Annotated[str, Field(pattern="^[ -~]{0,512}$")] | Annotated[int, Field(strict=True)], str),
    Words("is not an account's id or memo; use at most 512 printable ASCII characters"),
]
HeaderPrefix = Annotated[
    str,
    Field(pattern="^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$"),  # RFC 9110 section 5.6.2
    Words('cannot begin a header\'s name; use letters, digits and -, as in "X-MINE-"'),
]
JsonPointer = Annotated[
    str,
    Field(pattern="^(/([^~/]|~[01])*)*$"),  # RFC 6901 section 3
    Words('is not a JSON pointer; write "/data/serverTime", or "" to search for it'),
]


def _without_dots(path: str) -> str:
    if has_dot_segment(path):
        raise ValueError
    return path


# A path has only one reading: plain segments between single slashes, none of them `.` or `..`.
_WITHOUT_DOTS = AfterValidator(_without_dots)
_NOT_PLAIN = Words('is not a plain path; begin it with "/" and use letters, digits and -._~')
PathPrefix = Annotated[
    str,
    Field(pattern="^/+$|^(/[A-Za-z0-9._~-]+)+/*$"),
    _WITHOUT_DOTS,
    AfterValidator(lambda path: path.rstrip("/")),
    _NOT_PLAIN,
]
OptionalPath = Annotated[str, Field(pattern="^(/[A-Za-z0-9._~-]+)*$"), _WITHOUT_DOTS, _NOT_PLAIN]
RouteMatch = Annotated[
    str,
    Field(pattern=r"^(GET|POST|PUT|PATCH|DELETE) (/([A-Za-z0-9._~-]+|\{[A-Za-z0-9_]+\}))+$"),
    _WITHOUT_DOTS,
    Words('is not METHOD and path; write "POST /prefix/orders/{id}/query"'),
]

EnvironmentName = Annotated[
    str,
    Field(pattern="^([a-z0-9][a-z0-9_-]{0,31})?$"),
    Words('is not the name of an environment; write one that the venue\'s file has, such as "test"'),
]

# -- lists: in the environment, JSON or comma-separated text


def _members(value: object) -> object:
    """Return the members of a JSON array in text, or of comma-separated text."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return _from_json(value, "array")
    return [member.strip() for member in value.split(",") if member.strip()]


def _different(value: object) -> object:
    members = _members(value)
    if isinstance(members, list | tuple) and any(one in members[:at] for at, one in enumerate(members)):
        raise ValueError("has the same member twice; remove one")
    return members


LIST = BeforeValidator(_members)
_DIFFERENT = BeforeValidator(_different)
_AT_LEAST_ONE = Field(min_length=1)

Permission = Literal["read", "trade", "keys"]
Permissions = Annotated[frozenset[Permission], _AT_LEAST_ONE, _DIFFERENT]
Aliases = Annotated[tuple[Name, ...], _AT_LEAST_ONE, _DIFFERENT]
# It is the first segment of a bot's path, and is compared byte for byte.
ExchangeName = Annotated[
    str,
    Field(pattern=EXCHANGE_NAME),
    Words("is not the name of an exchange; use 1 to 32 of a-z, 0-9, _ and -, a letter or digit first"),
]
ExchangeNames = Annotated[tuple[ExchangeName, ...], _AT_LEAST_ONE, _DIFFERENT]
PoolName = Annotated[
    str,
    Field(pattern=EXCHANGE_NAME),
    Words("is not the name of a pool; use 1 to 32 of a-z, 0-9, _ and -, a letter or digit first"),
]
Lanes = Annotated[frozenset[Literal["cancel", "order", "read"]], LIST, _DIFFERENT]


def _host(text: str) -> str:
    return parse_host(text.removeprefix("[").removesuffix("]"))


Hosts = Annotated[tuple[Annotated[str, AfterValidator(_host)], ...], _AT_LEAST_ONE, _DIFFERENT]
_Variable = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\*?$"),
    Words("is not the name of a variable; write a name, or a common beginning, as in VAULT_*"),
]
Variables = Annotated[tuple[_Variable, ...], _DIFFERENT]


def _symbol(text: str) -> str:
    if not text.isprintable():
        raise ValueError
    return text


_Symbol = Annotated[
    str, Field(min_length=1), AfterValidator(_symbol), Words("is not a symbol; write it as the exchange does")
]
Symbols = Annotated[tuple[_Symbol, ...], _AT_LEAST_ONE, _DIFFERENT]


def _quota(text: str) -> Quota:
    """Read requests per time; a unit alone means one of it ("20/s")."""
    requests, _, window = text.replace(" ", "").partition("/")
    count = window.rstrip("mhs")
    quota = Quota(int(requests), float(count or 1) * _SECONDS[window.removeprefix(count)])
    if not quota.n or not quota.window_s:
        raise ValueError
    return quota


_Quota = Annotated[
    Quota,
    From(
        Annotated[str, Field(pattern=r"^ *[0-9]{1,9} */ *([0-9]{1,6}(\.[0-9]{1,3})?)? *(ms|s|m|h) *$")],
        _quota,
    ),
    Words('is not a limit; write requests per time, as in "1200/60s"'),
]
Quotas = Annotated[tuple[_Quota, ...], LIST]

# -- places: addresses, files, references to secrets; "" is none


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


_EMPTY_IS_NONE = BeforeValidator(_none_if_empty)
OptionalQuota = Annotated[_Quota | None, _EMPTY_IS_NONE]


def _expanded(value: object) -> object:
    return expand_home(value) if isinstance(value, str) else value


_HOME = BeforeValidator(_expanded)
_FILE = Anchored(from_folder)

OptionalGroup = Annotated[Group | None, _EMPTY_IS_NONE]
_ADDRESS = Annotated[str, _like(r"^$|^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}$")]
_Address = Annotated[Address, From(_ADDRESS, parse_address)]
OptionalAddress = Annotated[_Address | None, _EMPTY_IS_NONE]
_LoopbackAddress = Annotated[Address, From(_ADDRESS, parse_loopback_address)]
OptionalLoopbackAddress = Annotated[_LoopbackAddress | None, _EMPTY_IS_NONE]
SourceAddress = Annotated[
    Annotated[str, AfterValidator(parse_source), _like("^$|^[0-9A-Fa-f:.]+$")] | None, _EMPTY_IS_NONE
]
ExchangeUrl = Annotated[BaseUrl, From(Annotated[str, _like(r"^https?://[^@?#\s]+$")], parse_base_url)]
_HOST_AND_PORT = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}"
_Proxy = Annotated[
    ProxyUrl,
    From(Annotated[str, _like(rf"^$|^(http|socks5h?)://([^/:?#@\s]+@)?{_HOST_AND_PORT}/?$")], parse_proxy),
]
OptionalProxy = Annotated[_Proxy | None, _EMPTY_IS_NONE]
OptionalStreams = Annotated[
    Annotated[BaseUrl, From(Annotated[str, _like(r"^$|^wss?://[^@?#/\s]+/?$")], parse_streams_url)] | None,
    _EMPTY_IS_NONE,
]
VenueName = Annotated[
    Venue, From(Annotated[Any, WithJsonSchema({"type": "string"})], parse_venue), Anchored(venue_from_folder)
]
PemFile = Annotated[Annotated[Path, _HOME, AfterValidator(check_pem_file)] | None, _EMPTY_IS_NONE, _FILE]
CaFile = Annotated[Annotated[Path, _HOME, AfterValidator(check_ca_file)] | None, _EMPTY_IS_NONE, _FILE]
JournalFile = Annotated[
    Annotated[Path, _HOME, AfterValidator(check_journal_file)] | None, _EMPTY_IS_NONE, _FILE
]
OptionalSocket = Annotated[Annotated[Path, _HOME, AfterValidator(check_socket)] | None, _EMPTY_IS_NONE, _FILE]
_SocketOrOff = Annotated[
    Path | str, From(str, lambda text: text if text == OFF else check_socket(Path(expand_home(text))))
]
AdminSocket = Annotated[
    _SocketOrOff | None,
    _EMPTY_IS_NONE,
    Anchored(lambda text, folder: text if text == OFF else from_folder(text, folder)),
]
Reference = Annotated[
    str,
    AfterValidator(parse_reference),
    _like("^(file|env|cmd|systemd|keyring):."),
    Anchored(reference_from_folder),
    Masked(mask_arguments),
]
Redis = Annotated[
    str,
    AfterValidator(parse_redis),
    _like("^$|^(rediss?|unix)://[^ ]+$|^(file|env|cmd|systemd|keyring):."),
    Anchored(reference_from_folder),
    Masked(mask_arguments),
]
