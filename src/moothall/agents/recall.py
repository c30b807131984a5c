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
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

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


@lru_cache(maxsize=16_384)
def content_words(text: str) -> frozenset[str]:
    """The stems of a text that are more than function words."""
    return frozenset(stem(word) for word in _WORD.findall(text) if word.lower() not in FUNCTION_WORDS)


def similarity(query: str, text: str) -> float:
    """How much two texts share, between 0 and 1: the cosine of their content words."""
    left, right = content_words(query), content_words(text)
    return len(left & right) / math.sqrt(len(left) * len(right)) if left and right else 0.0


class Recall:
    """A conversation taken apart. It grows item by item, and a question costs what it finds, not what was said."""

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self.items: list[Item] = []
        self._sentences: list[tuple[int, str]] = []
        """Every sentence, with the place of its item."""
        self._having: dict[str, list[int]] = {}
        """The sentences that have a word."""
        self._said: Counter[str] = Counter()
        """How often sentences and their lead-ins were said word by word."""
        self._key_items = 0
        for item in items:
            self.add(item)

    def add(self, item: Item) -> None:
        """Take in what was said next."""
        place = len(self.items)
        self.items.append(item)
        self._key_items += item.is_key
        for sentence in _sentences(item.content):
            for word in content_words(f"{item.who} {sentence}"):
                self._having.setdefault(word, []).append(len(self._sentences))
            self._sentences.append((place, sentence))
            self._said[_plain(sentence)] += 1
            while (lead := _LEAD_IN.match(sentence)) is not None:
                self._said[f"{_plain(lead[1])}:"] += 1
                sentence = sentence[lead.end() :]

    def weight(self, word: str) -> float:
        """How much a word tells: the more, the fewer sentences have it."""
        return math.log(1 + len(self._sentences) / (len(self._having.get(word, ())) + 0.5))

    def ranked(self, query: str) -> list[Statement]:
        """The statements that have to do with a query, the most telling first; of two equal ones the newer."""
        asked = content_words(query)
        names = frozenset(name for name in _names(query) & asked if name in self._having)
        numbers = sorted({number for word in names or asked for number in self._having.get(word, ())})
        scored = [
            (self._score(statement, asked, names), statement)
            for statement in map(self._statement, numbers)
            if statement is not None
        ]
        scored.sort(key=lambda pair: (-pair[0], -pair[1].place))
        return [statement for _, statement in scored]

    def context(self, query: str, *, budget: int) -> str:
        """The part of the conversation that a prompt shows for a query, in at most `budget` characters.

        First what tells most about the query; what room is left goes to the newest turns. Where key items are left
        out, the last line says how many.
        """
        chosen: dict[str, Statement] = {}
        room = budget - (_ROOM_FOR_NOTE if self._key_items else 0)
        last = len(self._sentences) - 1
        newest = map(self._statement, range(last, max(last - _NEWEST, -1), -1))
        for statement in chain(self.ranked(query), newest):
            if room < _SHORTEST_LINE:
                break
            if statement is not None and statement.line not in chosen and len(statement.line) + 1 <= room:
                chosen[statement.line] = statement
                room -= len(statement.line) + 1
        lines = sorted(chosen.values(), key=lambda statement: statement.place)
        told = {statement.place for statement in lines if statement.is_key}
        omitted = self._key_items - len(told)
        note = [f"({omitted} more decisions are on record; ask for them by name.)"] if omitted and lines else []
        return "\n".join([*(statement.line for statement in lines), *note])[: max(budget, 0)]

    def _statement(self, number: int) -> Statement | None:
        """A sentence without what is said all the time; None where nothing else is in it."""
        place, sentence = self._sentences[number]
        text = self._without_lead_in(sentence)
        if self._said[_plain(text)] >= _SAID_ALL_THE_TIME:
            return None
        item = self.items[place]
        following = self.items[place + 1] if text.endswith("?") and place + 1 < len(self.items) else None
        answer = self._first_news(following) if following is not None else ""
        by = following.who if following is not None and answer else ""
        return Statement(text, item.who, place, content_words(f"{item.who} {text}"), item.is_key, answer, by)

    def _first_news(self, item: Item) -> str:
        """The first sentence of a turn that is not said all the time."""
        texts = (self._without_lead_in(sentence) for sentence in _sentences(item.content))
        return next((text[:200] for text in texts if self._said[_plain(text)] < _SAID_ALL_THE_TIME), "")

    def _without_lead_in(self, sentence: str) -> str:
        while (lead := _LEAD_IN.match(sentence)) is not None:
            if self._said[f"{_plain(lead[1])}:"] < _SAID_ALL_THE_TIME:
                break
            sentence = sentence[lead.end() :]
        return sentence

    def _score(self, statement: Statement, asked: frozenset[str], names: frozenset[str]) -> float:
        shared = sum(self.weight(word) for word in statement.words & asked)
        named = sum(self.weight(word) for word in statement.words & names)
        news = (statement.words | content_words(statement.answer)) - asked
        telling = sorted(map(self.weight, news), reverse=True)[:2]
        return shared + named + sum(telling) / 2 + (_KEY_BONUS if statement.is_key else 0)


_SAID_ALL_THE_TIME = 3
_KEY_BONUS = 2.0
_ROOM_FOR_NOTE = 60
_SHORTEST_LINE = 20
_NEWEST = 200
"""How many of the newest sentences may fill the room that is left."""


def _sentences(content: str) -> list[str]:
    return [" ".join(part.split()) for part in _SENTENCE_END.split(content) if part.strip()]


def _plain(text: str) -> str:
    return text.lower().rstrip(".!?…: ")


def _names(query: str) -> frozenset[str]:
    """The words of a query that are written as names: capital letters that no sentence asks for."""
    words = _WORD.findall(query)
    return frozenset(stem(word) for word in words[1:] if word[0].isupper() and word != "I")
