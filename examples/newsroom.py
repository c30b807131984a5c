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


NEWSROOM = Machine(
    "newsroom", data=Article, budget=Budget(usd=0.50), result=lambda article: article.draft,
    states=[
        State("drafting",  enter=ask("writer", "Write a paragraph about {topic}. Notes: {notes}")),
        State("reviewing", enter=ask("critic", "Judge this draft: {draft}", reply=Verdict)),
        State("approving", enter=question("Publish this? {draft}", YesNo, within=days(2))),
        Final("published"), Final("shelved"),
    ],
    moves=[
        On("drafting",  Replied,   to="reviewing", do=lambda article, reply: replace(article, draft=reply.text)),
        On("reviewing", Replied,   to="approving", when=lambda article, reply: reply.value.good),
        On("reviewing", Replied,   to="drafting",  do=lambda article, reply: replace(article, notes=reply.value.notes), at_most=3),
        On("reviewing", otherwise, to="approving"),
        On("approving", Answered,  to="published", when=yes),
        On("approving", otherwise, to="shelved"),
    ],
)

if __name__ == "__main__":
    print(run(NEWSROOM, Article("tides"), model="rehearsal"))
