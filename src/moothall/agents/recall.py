"""What a limited prompt shows of a long conversation: the statements that tell most about a question.

A message is taken apart into statements (sentences). A statement counts for a query by the words they share, rare ones
more than common ones, and by how much it tells: words that stand nowhere else in the conversation (a price, a name, a
date) tell more than a phrase that is said of everything. A question is kept together with the turn that answers it,
so that an answer which does not repeat what it is about is found all the same. Decisions, approvals, rejections and
constraints come first among equals. Lines are told in the order of the conversation, each with who said it, and never
with more characters than allowed.

Similarity is lexical here. Whoever has embeddings gives similarities of its own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from moothall.kernel.frozen import Frozen

KEY_KINDS = ("decision", "approval", "rejection", "constraint")
"""The kinds of items that are never compressed away."""
_FUNCTION_WORDS = """
    a about after all also an and any are as at be been before being but by can could did do does doing done down for
    from get gets got had has have having he her here hers him his how i if in into is it its just let made make may me
    might more most must my no nor not now of off on once one only onto or other our ours out over own per shall she
    should so some such than that the their them then there these they this those to too under until up us was we were
    what when where which while who whom whose why will with would yes yet you your yours
"""
FUNCTION_WORDS = frozenset(re.findall("[a-z]+", _FUNCTION_WORDS))
_WORD = re.compile(r"[^\W_]+(?:[.,:'’-][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+(?=[\"'(\[]?[^\W_])|\n+")
_LEAD_IN = re.compile(r"^([^:.!?\n]{2,60}):\s+")
_SUFFIXES = (
    "ations",
    "ation",
    "ingly",
    "ments",
    "ment",
    "ings",
    "ing",
    "edly",
    "ies",
    "ied",
    "ers",
    "ed",
    "es",
    "er",
    "ly",
    "s",
)


class Item(Frozen):
    """Something that was said or decided: what, of which kind, by whom, at which step and when."""

    content: str
    kind: str = "general"
    who: str = ""
    step: int = 0
    time: float = 0

    @property
    def is_key(self) -> bool:
        """Whether it is of a kind that is never compressed away."""
        return self.kind in KEY_KINDS


class Statement(Frozen):
    """A sentence of an item, or a question with the turn that answers it."""

    text: str
    who: str
    place: int
    """Which item of the conversation it comes from."""
    words: frozenset[str]
    is_key: bool = False
    answer: str = ""
    answered_by: str = ""

    @property
    def line(self) -> str:
        """How it is told."""
        said = f"{self.who}: {self.text}" if self.who else self.text
        if not self.answer:
            return said
        return f"{said} – {self.answered_by}: {self.answer}" if self.answered_by else f"{said} – {self.answer}"


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word without its ending, so that "publish" and "published" are one."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    if word.isalpha() and word.isascii():
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= 3:
                return word[: -len(suffix)].rstrip("ei")
        return word.rstrip("ei") if len(word) > 3 else word
    return word


def content_words(text: str) -> frozenset[str]:
    """The stems of a text that are more than function words."""
    return frozenset(stem(word) for word in _WORD.findall(text) if word.lower() not in FUNCTION_WORDS)


def similarity(query: str, text: str) -> float:
    """How much two texts share, between 0 and 1: the cosine of their content words."""
    left, right = content_words(query), content_words(text)
    return len(left & right) / math.sqrt(len(left) * len(right)) if left and right else 0.0


class Recall(Frozen):
    """A conversation taken apart: its statements in order, and in how many of them each word stands."""

    statements: tuple[Statement, ...]
    frequencies: Mapping[str, int]

    def weight(self, word: str) -> float:
        """How much a word tells: the more, the fewer statements have it."""
        return math.log(1 + len(self.statements) / (self.frequencies.get(word, 0) + 0.5))


def recall_of(items: Sequence[Item]) -> Recall:
    """Take a conversation apart."""
    repeated = _repeated(items)
    statements: list[Statement] = []
    for place, item in enumerate(items):
        following = items[place + 1] if place + 1 < len(items) else None
        for sentence in _sentences(item.content):
            text = _without_lead_in(sentence, repeated)
            if repeated[_plain(text)] > 2:
                continue
            answer = _first_news(following, repeated) if following is not None and text.endswith("?") else ""
            words = content_words(f"{item.who} {text}")
            by = following.who if following is not None and answer else ""
            statements.append(Statement(text, item.who, place, words, item.is_key, answer, by))
    frequencies = Counter(word for statement in statements for word in statement.words)
    return Recall(tuple(statements), frequencies)


def _first_news(item: Item, repeated: Counter[str]) -> str:
    """The first sentence of a turn that is not said all the time."""
    for sentence in _sentences(item.content):
        if repeated[_plain(text := _without_lead_in(sentence, repeated))] <= 2:
            return text[:200]
    return ""


def _sentences(content: str) -> list[str]:
    return [" ".join(part.split()) for part in _SENTENCE_END.split(content) if part.strip()]


def _plain(text: str) -> str:
    return text.lower().rstrip(".!?…: ")


def _repeated(items: Iterable[Item]) -> Counter[str]:
    """How often sentences and their lead-ins are said word by word: what is said all the time tells nothing."""
    counts = Counter[str]()
    for item in items:
        for sentence in _sentences(item.content):
            counts[_plain(sentence)] += 1
            while (lead := _LEAD_IN.match(sentence)) is not None:
                counts[f"{_plain(lead[1])}:"] += 1
                sentence = sentence[lead.end() :]
    return counts


def _without_lead_in(sentence: str, repeated: Counter[str]) -> str:
    while (lead := _LEAD_IN.match(sentence)) is not None and repeated[f"{_plain(lead[1])}:"] > 2:
        sentence = sentence[lead.end() :]
    return sentence


def ranked(recall: Recall, query: str) -> list[Statement]:
    """The statements that have to do with a query, the most telling first; of two equal ones the newer."""
    asked = content_words(query)
    names = _names(query) & asked & recall.frequencies.keys()
    about = [statement for statement in recall.statements if statement.words & (names or asked)]
    scores = {id(statement): _score(statement, asked, names, recall) for statement in about}
    return sorted(about, key=lambda statement: (-scores[id(statement)], -statement.place))


def _names(query: str) -> frozenset[str]:
    """The words of a query that are written as names: capital letters that no sentence asks for."""
    words = _WORD.findall(query)
    return frozenset(stem(word) for word in words[1:] if word[0].isupper() and word != "I")


def _score(statement: Statement, asked: frozenset[str], names: frozenset[str], recall: Recall) -> float:
    shared = sum(recall.weight(word) for word in statement.words & asked)
    news = (statement.words | content_words(statement.answer)) - asked
    telling = sorted(map(recall.weight, news), reverse=True)[:2]
    named = sum(recall.weight(word) for word in statement.words & names)
    return shared + named + SHARE_OF_NEWS * sum(telling) / 2 + (KEY_BONUS if statement.is_key else 0)


SHARE_OF_NEWS = 1.0
KEY_BONUS = 2.0


def context_text(items: Sequence[Item], query: str, *, budget: int) -> str:
    """The part of a conversation that a prompt shows for a query, in at most `budget` characters.

    First what tells most about the query; what room is left goes to the newest turns. Where key items are left out,
    the last line says how many.
    """
    recall = recall_of(items)
    note_room = 60 if any(item.is_key for item in items) else 0
    chosen: dict[str, Statement] = {}
    room = budget - note_room
    newest = sorted(recall.statements, key=lambda statement: -statement.place)
    for statement in (*ranked(recall, query), *newest):
        if statement.line not in chosen and len(statement.line) + 1 <= room:
            chosen[statement.line] = statement
            room -= len(statement.line) + 1
        if room < 20:
            break
    lines = sorted(chosen.values(), key=lambda statement: statement.place)
    told = {statement.place for statement in lines}
    omitted = sum(item.is_key and place not in told for place, item in enumerate(items))
    note = f"({omitted} more decisions are on record; ask for them by name.)\n" if omitted and note_room else ""
    return "\n".join([*(statement.line for statement in lines), note]).strip()[: max(budget, 0)]
