"""The newsroom of `make demo`: a writer, a critic and a person who approves. Agents are names; a model plays them."""

from dataclasses import dataclass, replace

from moothall import (Answered, Budget, Final, Machine, On, Replied, State, YesNo,
                      ask, days, otherwise, question, run, yes)


@dataclass(frozen=True)
class Article:
    topic: str
    draft: str = ""
    notes: str = "none yet"


@dataclass(frozen=True)
class Verdict:
    good: bool
    notes: str


def keep_draft(article: Article, reply: Replied) -> Article:
    return replace(article, draft=reply.text)


def keep_notes(article: Article, reply: Replied[Verdict]) -> Article:
    return replace(article, notes=reply.value.notes)


def good_enough(article: Article, reply: Replied[Verdict]) -> bool:
    return reply.value.good


NEWSROOM = Machine(
    "newsroom", data=Article, budget=Budget(usd=0.50), result=lambda article: article.draft,
    states=[
        State("drafting",  enter=ask("writer", "Write a paragraph about {topic}. Notes: {notes}")),
        State("reviewing", enter=ask("critic", "Judge this draft: {draft}", reply=Verdict)),
        State("approving", enter=question("Publish this? {draft}", YesNo, within=days(2))),
        Final("published"), Final("shelved"),
    ],
    moves=[
        On("drafting",  Replied,   to="reviewing", do=keep_draft),
        On("reviewing", Replied,   to="approving", when=good_enough),
        On("reviewing", Replied,   to="drafting",  do=keep_notes, at_most=3),
        On("reviewing", otherwise, to="approving"),
        On("approving", Answered,  to="published", when=yes),
        On("approving", otherwise, to="shelved"),
    ],
)

if __name__ == "__main__":
    print(run(NEWSROOM, Article("tides"), model="rehearsal"))
