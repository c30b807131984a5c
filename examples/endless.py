"""What `moot check` is for: this loop has no bound, so nothing promises that it ends. It is refused."""

from dataclasses import dataclass, replace

from moothall import Final, Machine, On, Replied, State, ask


@dataclass(frozen=True)
class Article:
    topic: str
    draft: str = ""


def keep_draft(article: Article, reply: Replied) -> Article:
    return replace(article, draft=reply.text)


def good_enough(article: Article, reply: Replied) -> bool:
    return reply.text == "good"


ENDLESS = Machine(
    "endless", data=Article,
    states=[
        State("drafting",  enter=ask("writer", "Write about {topic}. The last draft: {draft}")),
        State("reviewing", enter=ask("critic", "Judge this draft: {draft}")),
        Final("finished"),
    ],
    moves=[
        On("drafting",  Replied, to="reviewing", do=keep_draft),
        On("reviewing", Replied, to="finished",  when=good_enough),
        On("reviewing", Replied, to="drafting"),
    ],
)
