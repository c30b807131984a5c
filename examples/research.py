"""Three researchers work at the same time; when all have replied, an editor joins what they found."""

from dataclasses import dataclass, replace

from moothall import Final, Machine, On, Replied, State, ask, run


@dataclass(frozen=True)
class Study:
    topic: str
    found: tuple[str, ...] = ()
    summary: str = ""


def keep(study: Study, reply: Replied) -> Study:
    return replace(study, found=(*study.found, f"{reply.agent}: {reply.text}"))


def last_one(study: Study, reply: Replied) -> bool:
    return len(study.found) == 2


STUDY = Machine(
    "study", data=Study, result=lambda study: study.summary,
    states=[
        State("researching", enter=[ask(who, "What is new about {topic}?") for who in ("press", "papers", "patents")]),
        State("editing",     enter=ask("editor", "Join these: {found}")),
        Final("published"),
    ],
    moves=[
        On("researching", Replied, to="editing",   do=keep, when=last_one),
        On("researching", Replied,                 do=keep, at_most=2),
        On("editing",     Replied, to="published", do=lambda study, reply: replace(study, summary=reply.text)),
    ],
)

if __name__ == "__main__":
    print(run(STUDY, Study("tidal power"), model="rehearsal").result)
