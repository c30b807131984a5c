"""A writer drafts and a critic judges: at most three rewrites, and never more than twenty calls."""

from dataclasses import dataclass, replace

from moothall import Budget, Final, Machine, On, Replied, State, ask, otherwise, run


@dataclass(frozen=True)
class Article:
    topic: str
    draft: str = ""
    notes: str = "none yet"


async def writer(prompt: str) -> str:  # your own code: ask any model here
    return "The sea rises and falls twice a day." if "how often" in prompt else "The sea rises and falls."


async def critic(prompt: str) -> str:
    return "good" if "twice a day" in prompt else "say how often"


ARTICLE = Machine(
    "article", data=Article, budget=Budget(calls=20), result=lambda article: article.draft,
    states=[
        State("drafting",  enter=ask(writer, "Write about {topic}. Notes: {notes}")),
        State("reviewing", enter=ask(critic, "Judge this draft: {draft}")),
        Final("finished"),
    ],
    moves=[
        On("drafting",  Replied,   to="reviewing", do=lambda article, reply: replace(article, draft=reply.text)),
        On("reviewing", Replied,   to="finished",  when=lambda article, reply: reply.text == "good"),
        On("reviewing", Replied,   to="drafting",  do=lambda article, reply: replace(article, notes=reply.text), at_most=3),
        On("reviewing", otherwise, to="finished"),
    ],
)

if __name__ == "__main__":
    print(run(ARTICLE, Article("tides")).result)
