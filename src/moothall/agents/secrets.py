"""Secrets, replaced in any value by a placeholder that names them: `[secret:OPENAI_API_KEY]`, `[secret:github token]`.

Two kinds are known. A registered secret has a name and a value, and is found as it stands, escaped as JSON, HTML and
addresses escape it, in hexadecimal, and in base64 wherever it stands in what was encoded. The keys of the big
providers are found by their format. The rules:

- What is found is replaced whole. What overlaps is replaced together; a registered name goes before that of a format.
- Placeholders are not looked into, and what is left is looked at again until nothing is found. So cleaning twice is the
  same as cleaning once.
- A value in which nothing is found is returned itself. Numbers, choices (enums, literals) and the names in a machine's
  table are no secrets.
- Every pattern begins at a literal and has bounded or possessive repeats, so that a text costs its length and no more.

A value is first glanced at: whether it is certain that nothing would be found in it. Most values end there. A glance
may see something where there is nothing, but never nothing where `_whole` would find something: whoever teaches
`_whole` another type of values teaches `_glance` the same. A text is first asked for characters and words that secrets
have; most texts end there. A pattern is compiled when a text has its word for the first time; most never are.
"""

from __future__ import annotations

import base64
import json
import re
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, cached_property, lru_cache, partial
from html import escape
from operator import is_
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned, Unusable
from moothall.agents.conversation import Converse
from moothall.errors import Refused
from moothall.kernel.codec import decode, encode
from moothall.kernel.effects import AskPerson, StartChild
from moothall.kernel.events import Answered
from moothall.kernel.foreign import is_model, written_as
from moothall.kernel.frozen import Frozen
from moothall.kernel.generated import defined

SHORTEST = 8
"""The fewest characters of a secret; shorter texts are not looked at."""
LONG = 4096
"""Of longer texts only a few are remembered."""
NAMES = 512
"""How many keys of mappings are remembered to be clean."""
TYPES = 1024
"""Of how many types it is remembered how to look into their values."""
WIDEST = 12
"""How many characters an escape has at most that stands for one."""
HEARD, BEHIND = 4096, 512
"""Of what is heard piece by piece, this much is looked at again; when it is more, this much of it stays."""


class Secret(Frozen):
    """A value that is to be replaced by its name."""

    name: str
    value: str

    def __post_init__(self) -> None:
        if why := unfit(self.value):
            raise Refused(f"secret {self.name}: {why}")

    def __repr__(self) -> str:
        return f"Secret({self.name!r}, …)"


def unfit(value: str) -> str:
    """Why a value cannot be registered; "" where it can."""
    if len(value) < SHORTEST:
        return f"it has fewer than {SHORTEST} characters, and would be found in harmless texts"
    return ""


class Sign(NamedTuple):
    """What gives a secret away: a word that the text must have, the pattern, and what is put in its place.

    Where the pattern has a group, only that is the secret.
    """

    word: str
    pattern: Callable[[], re.Pattern[str]]
    placeholder: str


class Found(NamedTuple):
    """Where a secret begins and ends in a text, how well it is known (0 is best), and what is put in its place."""

    start: int
    end: int
    rank: int
    placeholder: str


class Cleaner:
    """Replaces secrets in texts, and in the texts inside any other value."""

    def __init__(self, secrets: Sequence[Secret] = ()) -> None:
        longest_first = sorted(secrets, key=lambda secret: (-len(secret.value), secret.name))
        signs = [sign for secret in longest_first for sign in _signs_of(secret)] + _provider_signs()
        self._rank = {sign: rank for rank, sign in enumerate(signs)}
        self._by_letter = _by_letter(signs)
        self._short = lru_cache(maxsize=512)(self._cleaned)
        self._long = lru_cache(maxsize=8)(self._cleaned)
        self._names: set[str] = set()
        values = [secret.value for secret in secrets]
        self._reach = max((WIDEST * len(value) for value in values if any(map(str.isspace, value))), default=0)
        self._parted = re.compile(r"\s" if any(not value.isascii() for value in values) else r"\s|[^\x00-\x7f]")

    def __call__(self, value: Any) -> Any:
        """The same value without secrets; itself where there are none."""
        return self._whole(value) if _GLANCES[type(value)](self, value) else value

    def settled(self, text: str, start: int = 0) -> int:
        """Up to where no secret can go on in what follows a text; nothing before `start` is looked at again.

        Keys of known formats have no blanks. A registered secret with blanks is held back as long as it may be.
        """
        end = len(text) - self._reach
        word = max(start, *(text.rfind(blank, start, max(end, start)) + 1 for blank in " \n\t"))
        if "://" in text[word:]:
            return word
        return max((match.end() for match in self._parted.finditer(text, word, max(end, word))), default=word)

    def _whole(self, value: Any) -> Any:
        """The same value without secrets, every piece of it looked at."""
        kind: Any = type(value)
        if kind is str:
            return self._renewed(value) or value
        if kind in _NUMBERS:
            return value
        if kind is dict:
            return self._mapping(value)
        if kind in _SEQUENCES:
            items = [self._whole(item) for item in value]
            return value if all(map(is_, items, value)) else kind(items)
        if (texts := _texts(kind)) is not None:
            return self._fields(value, texts)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, str):
            return self._renewed(str(value)) or value
        return self._foreign(value) if _is_foreign(kind) else value

    def _foreign(self, value: Any) -> Any:
        """A model, a path or the like, looked at as it is written."""
        plain = encode(value)
        clean = self._whole(plain)
        return value if clean is plain else decode(type(value), clean)

    def _renewed(self, text: str) -> str | None:
        """A text without its secrets; None where it has none. Those of late are remembered: many come again."""
        if len(text) < SHORTEST:
            return None
        return self._short(text) if len(text) <= LONG else self._long(text)

    def _mapping(self, value: Mapping[Any, Any]) -> Mapping[Any, Any]:
        keys, items = [self._whole(key) for key in value], [self._whole(item) for item in value.values()]
        if all(map(is_, keys, value)) and all(map(is_, items, value.values())):
            return value
        found: dict[Any, Any] = {}
        for key, new, item in zip(value, keys, items, strict=True):
            found[key if new is key else _free(new, found, value)] = item
        return found

    def _fields(self, value: Any, names: Iterable[str]) -> Any:
        items = {name: getattr(value, name) for name in names}
        changed = {name: new for name, item in items.items() if (new := self._whole(item)) is not item}
        try:
            return replace(value, **changed) if changed else value
        except (TypeError, ValueError) as error:
            what = type(value).__name__
            raise Refused(f"{what} does not take a text in which a secret was replaced: {error}") from error

    def _are_clean(self, names: Collection[Any]) -> bool:
        """Whether these keys are texts without secrets; then they are remembered, for they come again and again."""
        if not all(type(name) is str and self._renewed(name) is None for name in names):
            return False
        if len(self._names) >= NAMES:
            self._names = set()
        if sum(map(len, names)) <= LONG:
            self._names.update(names)
        return True

    def _cleaned(self, text: str) -> str | None:
        """A text without its secrets; None where it has none."""
        signs = [sign for letter, alike in self._by_letter if letter in text for word, sign in alike if word in text]
        if not signs:
            return None
        pieces = self._placeholders.split(text) if "[secret:" in text else [text]
        pieces[::2] = [_replace_found(piece, self._found(piece, signs)) for piece in pieces[::2]]
        new = "".join(pieces)
        return None if new == text else self._cleaned(new) or new

    @cached_property
    def _placeholders(self) -> re.Pattern[str]:
        placeholders = sorted({sign.placeholder for sign in self._rank})
        return re.compile(f"({'|'.join(map(re.escape, placeholders))})")

    def _found(self, piece: str, signs: Sequence[Sign]) -> list[Found]:
        return sorted(
            Found(*match.span(match.lastindex or 0), self._rank[sign], sign.placeholder)
            for sign in signs
            for match in sign.pattern().finditer(piece)
        )


class CleanEar:
    """Passes on what is said piece by piece, without secrets: what may still become one is held back until the end.

    An empty piece says that all begins anew.
    """

    def __init__(self, hear: Callable[[str], None], clean: Cleaner) -> None:
        self._hear, self._clean = hear, clean
        self._text, self._end, self._passed = "", 0, ""

    def __call__(self, piece: str) -> None:
        """Hear the next piece."""
        if not piece:
            self._text, self._end, self._passed = "", 0, ""
            self._hear("")
            return
        self._text += piece
        self._pass_on(self._clean.settled(self._text, self._end))

    def close(self) -> None:
        """All was said: nothing is held back any more."""
        self._pass_on(len(self._text))

    def _pass_on(self, end: int) -> None:
        if end <= self._end:
            return
        cleaned, self._end = self._clean(self._text[:end]), end
        if not cleaned.startswith(self._passed):  # what looked harmless was the beginning of a secret
            self._hear("")
            self._passed = ""
        if piece := cleaned[len(self._passed) :]:
            self._hear(piece)
        self._passed = cleaned
        if end > HEARD:
            self._forget(end)

    def _forget(self, end: int) -> None:
        """Keep the end of what was passed on, unless that would be seen differently without what stands before it."""
        start = self._clean.settled(self._text[: end - BEHIND])
        before, behind = self._clean(self._text[:start]), self._clean(self._text[start:end])
        if start and before + behind == self._passed:
            self._text, self._end, self._passed = self._text[start:], end - start, behind


_NUMBERS = frozenset((type(None), bool, int, float))
_SEQUENCES = frozenset((list, tuple, set, frozenset))


def _free(key: Any, *taken: Mapping[Any, Any]) -> Any:
    """A key that no other has: two that were replaced would else be one."""
    number, free = 1, key
    while any(free in key for key in taken):
        number += 1
        free = f"{key} {number}"
    return free


def _replace_found(text: str, found: Sequence[Found]) -> str:
    """A text with placeholders for what was found, one for all that overlap."""
    parts, done = [], 0
    for place in _join_overlaps(found):
        parts += [text[done : place.start], place.placeholder]
        done = place.end
    return "".join([*parts, text[done:]]) if parts else text


def _join_overlaps(found: Sequence[Found]) -> list[Found]:
    joined: list[Found] = []
    for place in found:
        if joined and place.start < joined[-1].end:
            last = joined.pop()
            best = min(last, place, key=lambda place: place.rank)
            place = Found(last.start, max(last.end, place.end), best.rank, best.placeholder)
        joined.append(place)
    return joined


def _is_foreign(kind: Any) -> bool:
    """Whether values of a type of others may have a text in them."""
    return is_model(kind) or written_as(kind) is not None


@lru_cache(maxsize=TYPES)
def _texts(kind: Any) -> Mapping[str, Any] | None:
    """The fields that may have a text, with their types: not those whose values the definition lists.

    None where there are no fields.
    """
    if issubclass(kind, Enum):
        return {}
    if not is_dataclass(kind):
        return None
    try:
        hints = get_type_hints(kind)
    except (NameError, TypeError):  # only a type checker knows them
        hints = {}
    open_ = {field.name: hints.get(field.name, Any) for field in fields(kind) if field.init}
    tabled = _TABLED.get(kind, ())
    return {name: hint for name, hint in open_.items() if name not in tabled and not _is_closed(hint)}


_TABLED: Mapping[Any, tuple[str, ...]] = {
    AskAgent: ("agent", "shape", "thread", "tools", "id", "role", "level"),
    AskPerson: ("shape", "id"),
    Answered: ("shape", "id"),
    CallTool: ("tool",),
    Converse: ("agent", "shape", "thread", "tools"),
    Replied: ("agent", "shape", "id"),
    Returned: ("tool",),
    StartChild: ("machine",),
    Unusable: ("agent", "id"),
}
"""Names that stand in a machine's table. Others know the same things by them."""


def _is_closed(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal or hint in _NUMBERS or (isinstance(hint, type) and issubclass(hint, Enum)):
        return True
    inner = [argument for argument in get_args(hint) if argument is not Ellipsis]
    if origin in (Union, types.UnionType, list, tuple, set, frozenset, Sequence):
        return bool(inner) and all(map(_is_closed, inner))
    return False


# A glance at a value: something true, unless it is certain that nothing would be found in it.

Glance = Callable[[Cleaner, Any], object]


class _Glances(dict[Any, Glance]):
    """How to glance at the values of a type, for the types that were met of late."""

    def __missing__(self, kind: Any) -> Glance:
        if len(self) >= TYPES:
            self.clear()
        glance = self[kind] = _glance(kind)
        return glance


def _glance(kind: Any) -> Glance:
    """How to glance at the values of a type: as `_whole` looks into them. What is rare is always looked into."""
    if kind is str:
        return Cleaner._renewed
    if kind is dict:
        return _glance_at_mapping
    if kind in _SEQUENCES:
        return _glance_at_items
    if (texts := _texts(kind)) is not None:
        return _glance_at_fields(texts)
    may_have_texts = issubclass(kind, Mapping | str) or _is_foreign(kind)
    return lambda cleaner, value: may_have_texts


def _glance_at_mapping(cleaner: Cleaner, value: dict[Any, Any]) -> object:
    if not (value.keys() <= cleaner._names or cleaner._are_clean(value)):
        return True
    return not _are_numbers(map(type, value.values())) and _glance_at_items(cleaner, value.values())


def _glance_at_items(cleaner: Cleaner, items: Iterable[Any]) -> object:
    """What the first item has that is not certain to have nothing."""
    for item in items:
        if type(item) not in _NUMBERS and (found := _GLANCES[type(item)](cleaner, item)):
            return found
    return None


def _glance_at_fields(texts: Mapping[str, Any]) -> Glance:
    """A glance at one dataclass, written out field by field."""
    parts = []
    for name, hint in texts.items():
        unless_empty = f"value.{name} and " if (get_origin(hint) or hint) in _EMPTY_IF_FALSE else ""
        parts.append(f"{unless_empty}_GLANCES[type(item := value.{name})](cleaner, item)")
    source = f"def glance(cleaner, value): return {' or '.join(parts) or False}"
    made: Glance = defined(source, {"_GLANCES": _GLANCES})
    return made


_GLANCES = _Glances()
_are_numbers = _NUMBERS.issuperset
_EMPTY_IF_FALSE = frozenset((str, dict, Mapping, Sequence, *_SEQUENCES))
"""Types of fields that have nothing in them where they count as false. A dataclass of somebody else's may have."""


# What is looked for first: the letter of a word that ordinary texts have least.

_RAREST_FIRST = "~_=%+\\QZXJKVYUWGPHBFMNLDCORTEISA0123456789/:-zqxjkvbpygfwmucldrhsnioate., "


def _by_letter(signs: Sequence[Sign]) -> tuple[tuple[str, tuple[tuple[str, Sign], ...]], ...]:
    """The signs whose words have a letter, for each letter, with these words."""
    found: dict[str, list[tuple[str, Sign]]] = {}
    for sign in signs:
        letter = next((character for character in _RAREST_FIRST if character in sign.word), "")
        found.setdefault(letter, []).append((sign.word, sign))
    return tuple((letter, tuple(alike)) for letter, alike in found.items())


# Registered secrets and what they look like when something has encoded them.


def _signs_of(secret: Secret) -> Iterator[Sign]:
    placeholder, plain = f"[secret:{secret.name}]", secret.value.encode(errors="surrogateescape")
    yield _sign(secret.value, placeholder)
    for digits in (plain.hex(), plain.hex().upper()):
        yield _sign(digits, placeholder)
    for before in range(3):
        core, is_cut = _core(plain, before)
        edge = f"{_BASE64}?" if before else ""
        yield _sign(core, placeholder, edge, f"{_BASE64}?(?:=|%3[Dd]){{0,2}}" if is_cut else "")


_BASE64 = "[A-Za-z0-9+/_-]"


def _core(plain: bytes, before: int) -> tuple[str, bool]:
    """What base64 always makes of some bytes behind others, and whether the last of them are cut in two."""
    whole, half = divmod((before + len(plain)) * 8, 6)
    encoded = base64.b64encode(bytes(before) + plain).decode()
    return encoded[(0, 2, 3)[before] : whole], bool(half)


def _sign(text: str, placeholder: str, before: str = "", after: str = "") -> Sign:
    """The sign of a text, however its letters are escaped; letters and digits of ASCII never are."""
    word = max(re.findall("[A-Za-z0-9]+", text), key=len, default="")
    return Sign(word, cache(partial(_pattern, text, before, after)), placeholder)


def _pattern(text: str, before: str, after: str) -> re.Pattern[str]:
    parts = re.findall(r"\\+|(?s:.)", text)
    return re.compile(before + "".join(map(_escape_pattern, parts)) + after)


_ALSO = {" ": "+", "+": "-", "/": "_"}
"""What else stands for a character: a blank in addresses, and the other alphabet of base64."""


def _escape_pattern(part: str) -> str:
    """A pattern for one character, or several backslashes, as JSON, HTML or an address escape it, and as it is."""
    if part.isascii() and part.isalnum():
        return part
    letter, times = part[0], len(part)
    units, plain = _halves(letter), letter.encode(errors="surrogateescape")
    forms = {json.dumps(letter)[1:-1], repr(letter)[1:-1], escape(letter), _ALSO.get(letter, letter)}
    forms |= {f"&#{ord(letter)};", f"&#x{ord(letter):x};", f"&#x{ord(letter):X};"}
    forms |= {"".join(f"%{byte:02X}" for byte in plain), "".join(f"%{byte:02x}" for byte in plain)}
    forms |= {"".join(f"\\u{unit:04X}" for unit in units), "".join(f"\\u{unit:04x}" for unit in units)}
    patterns = [f"(?:{re.escape(form)}){{{times}}}" for form in sorted(forms - {letter, letter * 2})]
    if letter == "\\":
        return f"(?:{'|'.join(patterns)}|\\\\{{{times},{8 * times}}})"
    return f"(?:{'|'.join(patterns)}|\\\\{{0,3}}{re.escape(letter)})"


def _halves(letter: str) -> list[int]:
    """A character as UTF-16 has it: those beyond the first plane in two halves."""
    plain = letter.encode("utf-16-be", errors="surrogatepass")
    return [int.from_bytes(plain[at : at + 2], "big") for at in range(0, len(plain), 2)]


# The formats of keys. A token begins where no other goes on, or right behind an escaped character.

_DIGIT = "(?=[A-Za-z_+/.~-]{0,60}[0-9])"
_MIXED = "(?=[A-Za-z_+/.~-]{0,60}[0-9=]|[A-Z_+/.~-]{0,60}[a-z][a-z_+/.~-]{0,60}[A-Z])"
_END = "(?![A-Za-z0-9_-])"


def _begun_pattern(word: str, rest: str = "A-Za-z0-9_-") -> str:
    escapes = (r"\\[bfnrt]", "%[0-9A-Fa-f]{2}", r"\\u[0-9A-Fa-f]{4}")
    return f"{word}(?:(?<![{rest}]{word}){''.join(f'|(?<={escape}{word})' for escape in escapes)})"


_FORMATS: Mapping[str, Mapping[tuple[str, ...], str]] = {
    "anthropic key": {("sk-ant-",): _begun_pattern("sk-ant-") + _DIGIT + "[A-Za-z0-9_-]{16,}+"},
    "openai key": {
        ("sk-",): _begun_pattern("sk-")
        + f"(?:(?:proj|svcacct|admin|service|None|or|test|live)-{_DIGIT}[A-Za-z0-9_-]{{16,}}+"
        + "|(?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{20,}+[A-Za-z0-9_-]*+)",
    },
    "google key": {("AIza",): _begun_pattern("AIza") + "[A-Za-z0-9_-]{35}" + _END},
    "google token": {("ya29.",): _begun_pattern(r"ya29\.") + "[A-Za-z0-9_-]{20,}+"},
    "aws key id": {("AKIA", "ASIA"): _begun_pattern("A[KS]IA") + "[A-Z0-9]{16}(?![A-Za-z0-9])"},
    "aws secret key": {
        ("AKIA", "ASIA"): "A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])(?s:.){0,80}?(?<![A-Za-z0-9/+])([A-Za-z0-9/+]{40})"
        "(?![A-Za-z0-9/+=])",
        ("ecret_access_key", "ecretAccessKey", "ECRET_ACCESS_KEY"): "(?:ecret_access_key|ecretAccessKey|"
        r"ECRET_ACCESS_KEY)[\"'\\]{0,3}\s{0,4}[:=]\s{0,4}[\"'\\]{0,3}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    },
    "github token": {
        ("ghp_", "gho_", "ghs_", "ghu_", "ghr_"): _begun_pattern("gh[opsur]_") + "[A-Za-z0-9]{30,}+",
        ("github_pat_",): _begun_pattern("github_pat_") + "[A-Za-z0-9_]{22,}+",
    },
    "gitlab token": {
        ("glpat-",): _begun_pattern("glpat-") + _DIGIT + r"[A-Za-z0-9_-]{20,}+(?:\.[a-z0-9]{2}\.[a-z0-9]{9})?"
    },
    "slack token": {("xox",): _begun_pattern("xox[abeoprs]-") + _DIGIT + "[A-Za-z0-9-]{10,}+"},
    "stripe key": {("k_live_", "k_test_"): _begun_pattern("[rs]k_(?:live|test)_") + "[A-Za-z0-9]{16,}+"},
    "hugging face token": {("hf_",): _begun_pattern("hf_") + "[A-Za-z0-9]{30,}+"},
    "groq key": {("gsk_",): _begun_pattern("gsk_") + "[A-Za-z0-9]{40,}+"},
    "xai key": {("xai-",): _begun_pattern("xai-") + "[A-Za-z0-9]{40,}+"},
    "azure key": {
        ("AccountKey=", "AccessKey="): "(?:Account|Access)Key=([A-Za-z0-9+/]{40,}+={0,2})",
        ("sig=",): "(?<=[?&;])sig=([A-Za-z0-9%+/_-]{40,}+={0,2})",
        ("JQQJ9",): _begun_pattern("", "A-Za-z0-9") + "[A-Za-z0-9]{52}JQQJ9[A-Za-z0-9]{20,}+",
        ("Q~",): _begun_pattern("", "A-Za-z0-9_~.-")
        + "[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~-]{31,34}(?![A-Za-z0-9_~-])",
    },
    "api key": {
        ("pi-key", "pi-Key", "PI-KEY"): r"(?:pi-[kK]ey|PI-KEY)[\"'\\]{0,3}\s{0,4}[:=]\s{0,4}[\"'\\]{0,3}"
        + f"({_DIGIT}[A-Za-z0-9_-]{{20,}}+)",
    },
    "json web token": {
        ("eyJ",): _begun_pattern("eyJ") + r"[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+",
    },
    "private key": {
        ("PRIVATE KEY",): "-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?!-----)[A-Za-z0-9+/=\s\\:,.()-])*+(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?",
    },
    "authorization": {
        (
            "uthorization",
        ): r"uthorization[\"'\\]{0,3}\s{0,4}[:=]\s{0,4}[\"'\\]{0,3}(?:[Bb]earer|[Bb]asic|[Tt]oken)\s{1,4}"
        + f"({_MIXED}[A-Za-z0-9_.~+/-]{{8,}}+={{0,2}})",
        ("earer",): r"(?:[Bb]earer|BEARER)(?:\s|%20|\+|\\u0020){1,4}[\"'\\]{0,3}"
        + f"({_DIGIT}[A-Za-z0-9_.~+/-]{{16,}}+={{0,2}})",
    },
    "password": {
        ("://",): r"://[^\s/?#:@\"'<>\\]{0,256}+:([^\s/?#@\"'<>\\{$*][^\s/?#@\"'<>\\]{0,255}+)@",
    },
}


@lru_cache(maxsize=1)
def _provider_signs() -> list[Sign]:
    return [
        Sign(word, partial(_compiled, pattern), f"[secret:{name}]")
        for name, formats in _FORMATS.items()
        for words, pattern in formats.items()
        for word in words
    ]


_compiled = cache(re.compile)
"""The pattern of a format, compiled once in a process."""
