"""In which order a document does things: small documents about the delicate places, each with the log that it keeps.

The logs were worked out by hand from the algorithm of the Recommendation. A state says "+name" when it is entered and
"-name" when it is left; other words say what else was done, and numbers and names are values of expressions.
"""

from __future__ import annotations

import pytest

from moothall.interop.scxml import read
from moothall.interop.scxml_session import session
from moothall.kernel.events import Named
from moothall.kernel.simulate import Evaluate

NAMESPACE = "http://www.w3.org/2005/07/scxml"


def said(inside: str, events: str, evaluate: Evaluate | None) -> str:
    """What a document logs at the start, when told these events, and until nothing is due any more."""
    running = session(read(f'<scxml xmlns="{NAMESPACE}" version="1.0">{inside}</scxml>'), evaluate=evaluate)
    for event in events.split():
        running.send(Named(event))
    running.settle()
    messages = [append.message for step in running.steps for append in step.appends]
    return " ".join(str(message.get("value", message["label"])) for message in messages)


# the parts of documents


def log(word: str) -> str:
    return f'<log label="{word}"/>'


def value(expression: str) -> str:
    return f'<log label="undefined" expr="{expression}"/>'


def assign(name: str, expression: str) -> str:
    return f'<assign location="{name}" expr="{expression}"/>'


def raised(*names: str) -> str:
    return "".join(f'<raise event="{name}"/>' for name in names)


def enter(*inside: str) -> str:
    return f"<onentry>{''.join(inside)}</onentry>"


def data(**values: str) -> str:
    return f"<datamodel>{''.join(f'<data id={name!r} expr={text!r}/>' for name, text in values.items())}</datamodel>"


def _noisy(kind: str, name: str, inside: tuple[str, ...]) -> str:
    both = f"<onentry>{log(f'+{name}')}</onentry><onexit>{log(f'-{name}')}</onexit>"
    return f'<{kind} id="{name}">{both}{"".join(inside)}</{kind}>'


def state(name: str, *inside: str) -> str:
    return _noisy("state", name, inside)


def parallel(name: str, *inside: str) -> str:
    return _noisy("parallel", name, inside)


def final(name: str, *inside: str) -> str:
    return _noisy("final", name, inside)


def history(name: str, default: str, do: str = "", kind: str = "shallow") -> str:
    return f'<history id="{name}" type="{kind}"><transition target="{default}">{do}</transition></history>'


def starting(target: str, *do: str) -> str:
    return f'<initial><transition target="{target}">{"".join(do)}</transition></initial>'


def row(event: str = "", to: str = "", do: str = "", when: str = "", kind: str = "") -> str:
    given = {"event": event, "target": to, "cond": when, "type": kind}
    return f"<transition{''.join(f' {name}={text!r}' for name, text in given.items() if text)}>{do}</transition>"


def internal(event: str, to: str) -> str:
    return row(event, to, kind="internal")


def send(event: str, more: str = "", inside: str = "") -> str:
    return f'<send event="{event}" {more}>{inside}</send>'


def up(event: str, more: str = "") -> str:
    return send(event, f'target="#_parent" {more}')


def invoke(id: str, child: str, more: str = "", inside: str = "") -> str:
    return f'<invoke id="{id}" {more}>{inside}<content><scxml version="1.0">{child}</scxml></content></invoke>'


def kid(*events: str) -> str:
    """A document that sends these events to its parent, and stays."""
    return f'<state id="c"><onentry>{"".join(map(up, events))}</onentry></state>'


ANY = row("*", do=value("_event.name"))
LATER = "delay='1s'"
WRONG = assign("unknown", "1")

R = state("r", state("r1", row("n", "r2")), state("r2"))
Q = state("q", state("q1"), state("q2"))
MEMORY = (
    history("h", "b", log("default")),
    state("a", row("n", "b"), row("in", "h")),
    state("b", row("in", "h")),
    row("x", "o"),
)
OUTSIDE = state("o", row("back", "h"), row("again", "s"))

CASES = {
    # history
    "a shallow history in a parallel state begins its regions anew": (
        parallel("p", history("h", "r1 q1"), R, Q, row("x", "o")) + state("o", row("back", "h")),
        "n x back",
        "+p +r +r1 +q +q1 -r1 +r2 -q1 -q -r2 -r -p +o -o +p +r +r1 +q +q1",
    ),
    "a deep history in a parallel state restores its regions": (
        parallel("p", history("h", "r1 q1", kind="deep"), R, Q, row("x", "o")) + state("o", row("back", "h")),
        "n x back",
        "+p +r +r1 +q +q1 -r1 +r2 -q1 -q -r2 -r -p +o -o +p +r +r2 +q +q1",
    ),
    "a parallel state that leads to its own history is left and restored": (
        parallel("p", history("h", "r1 q1", kind="deep"), R, Q, row("again", "h")),
        "n again",
        "+p +r +r1 +q +q1 -r1 +r2 -q1 -q -r2 -r -p +p +r +r2 +q +q1",
    ),
    "a history is one of several targets": (
        state("o", row("go", "h q2")) + parallel("p", state("r", history("h", "r2"), state("r1"), state("r2")), Q),
        "go",
        "+o -o +p +r +r2 +q +q2",
    ),
    "what a history does by default comes after its state and before what is inside": (
        OUTSIDE + state("s", *MEMORY),
        "back",
        "+o -o +s default +b",
    ),
    "a history that remembers does not do what it does by default": (
        state("s", *MEMORY) + OUTSIDE,
        "x back",
        "+s +a -a -s +o -o +s +a",
    ),
    "a history whose state is not entered does not do what it does by default": (
        state("s", *MEMORY) + OUTSIDE,
        "in",
        "+s +a -a +b",
    ),
    "a history remembers the last time that its state was left and nothing since": (
        state("s", *MEMORY) + OUTSIDE,
        "x again n in",
        "+s +a -a -s +o -o +s +a -a +b -b +a",
    ),
    "a start at a history does first what starting does": (
        state("s", starting("h", log("start")), history("h", "b", log("default")), state("a"), state("b")),
        "",
        "+s start default +b",
    ),
    # into, out of and between regions
    "a row between regions leaves the parallel state": (
        parallel("p", state("r", state("r1", row("e", "q2")), state("r2")), Q),
        "e",
        "+p +r +r1 +q +q1 -q1 -q -r1 -r -p +p +r +r1 +q +q2",
    ),
    "who enters one region enters the others where they begin": (
        state("o", row("e", "q2")) + parallel("p", R, Q),
        "e",
        "+o -o +p +r +r1 +q +q2",
    ),
    "a region that leads to itself leaves the parallel state": (
        parallel("p", state("r", state("r1"), row("e", "r")), Q),
        "e",
        "+p +r +r1 +q +q1 -q1 -q -r1 -r -p +p +r +r1 +q +q1",
    ),
    "an internal row of a region leaves neither the region nor the others": (
        parallel("p", state("r", state("r1"), state("r2"), internal("e", "r2")), Q),
        "e",
        "+p +r +r1 +q +q1 -r1 +r2",
    ),
    "an internal row of a parallel state is external": (
        parallel("p", R, Q, internal("e", "r2")),
        "e",
        "+p +r +r1 +q +q1 -q1 -q -r1 -r -p +p +r +r2 +q +q1",
    ),
    "an internal row to its own state is external": (
        state("s", state("a"), internal("e", "s")),
        "e",
        "+s +a -a -s +s +a",
    ),
    "an internal row to somewhere else is external": (
        state("w", state("s", state("a"), internal("e", "o")), state("o")),
        "e",
        "+w +s +a -a -s +o",
    ),
    "an inner state that leads to the one around it leaves it": (
        state("s", state("a", row("e", "s"))),
        "e",
        "+s +a -a -s +s +a",
    ),
    "a start may have several targets": (
        state("s", starting("q2 r2", log("start")), parallel("p", R, Q)),
        "",
        "+s start +p +r +r2 +q +q2",
    ),
    "a start may name one region and leave the others to themselves": (
        state("s", starting("q2"), parallel("p", R, Q)),
        "",
        "+s +p +r +r1 +q +q2",
    ),
    # conflicts
    "an inner row without a target keeps the outer one from being taken": (
        state("s", state("a", row("e", do=log("in"))), row("e", "o", log("out"))) + state("o"),
        "e",
        "+s +a in",
    ),
    "rows without a target conflict with none": (
        parallel("p", state("r", row("e", do=log("r"))), state("q", row("e", "q", log("q")))),
        "e",
        "+p +r +q -q -r -p r q +p +r +q",
    ),
    "an inner row of an earlier region keeps the row around all regions from being taken": (
        parallel("p", state("r", state("r1", row("e", "r2")), state("r2")), Q, row("e", "o", log("p"))) + state("o"),
        "e",
        "+p +r +r1 +q +q1 -r1 +r2",
    ),
    "an inner row of a later region does so too": (
        parallel("p", Q, state("r", state("r1", row("e", "r2")), state("r2")), row("e", "o", log("p"))) + state("o"),
        "e",
        "+p +q +q1 +r +r1 -r1 +r2",
    ),
    "of two regions that lead outside the earlier one wins": (
        parallel("p", state("r", row("e", "o", log("r"))), state("q", row("e", "u", log("q"))))
        + state("o")
        + state("u"),
        "e",
        "+p +r +q -q -r -p r +o",
    ),
    "a region that leads outside wins over later ones that stay": (
        parallel("p", state("q", row("e", "o")), state("r", state("r1", row("e", "r2", log("r"))), state("r2")))
        + state("o"),
        "e",
        "+p +q +r +r1 -r1 -r -q -p +o",
    ),
    "a region that leads outside loses to an earlier one that stays": (
        parallel("p", state("r", state("r1", row("e", "r2")), state("r2")), state("q", row("e", "o", log("q"))))
        + state("o"),
        "e",
        "+p +r +r1 +q -r1 +r2",
    ),
    "a row around several regions is taken once": (
        parallel("p", state("r"), state("q"), row("e", do=log("p"))),
        "e",
        "+p +r +q p",
    ),
    # ends
    "regions are done in their order and the parallel state after the last": (
        parallel(
            "p",
            state("r", state("r1", row("e", "rf")), final("rf")),
            state("q", state("q1", row("e", "qf")), final("qf")),
            row("done.state.p", do=log("p")),
            row("done.state.q", do=log("q")),
            row("done.state.r", do=log("r")),
        ),
        "e",
        "+p +r +r1 +q +q1 -q1 -r1 +rf +qf r q p",
    ),
    "a parallel state that is done does not make the state around it done": (
        state(
            "w",
            parallel("p", state("r", final("f"))),
            row("done.state.p", do=log("p")),
            row("done.state.w", do=log("w")),
        ),
        "",
        "+w +p +r +f p",
    ),
    "what a final state raises comes before the news that its state is done": (
        state("s", final("f", enter(raised("x"))), row("x", do=log("x")), row("done.state.s", do=log("done"))),
        "",
        "+s +f x done",
    ),
    "at the end everything is left and what was raised is dropped": (
        state("a", row("e", "f", raised("x"))) + final("f"),
        "e",
        "+a -a +f -f",
    ),
    # raised events and rows without an event
    "rows without an event come before what was raised": (
        state("a", enter(raised("x")), row(to="b"), row("x", do=log("early"))) + state("b", row("x", do=log("late"))),
        "",
        "+a -a +b late",
    ),
    "what is raised meanwhile comes after what was raised before": (
        state("a", row("e", do=raised("x", "y")), row("x", do=log("x") + raised("z")), row("y z", do=log("yz"))),
        "e",
        "+a x yz yz",
    ),
    "what is raised while leaving, moving and entering comes in this order": (
        f"<state id='a'><onexit>{raised('x')}</onexit>{row('e', 'b', raised('y'))}</state>"
        + state("b", enter(raised("z")), *(row(name, do=log(name)) for name in "zyx")),
        "e",
        "+b x y z",
    ),
    "an internal event comes before an external one that was sent earlier": (
        state(
            "a",
            enter(send("out"), send("in", 'target="#_internal"')),
            row("in", do=log("in")),
            row("out", do=log("out")),
        ),
        "",
        "+a in out",
    ),
    # what goes wrong
    "an error ends its block and what follows it in the queue stays": (
        state("a", enter(raised("x"), WRONG, log("never")), enter(log("next")), ANY),
        "",
        "+a next x error.execution",
    ),
    "an error in a row does not keep states from being entered": (
        state("a", row("e", "b", WRONG + log("never"))) + state("b", ANY),
        "e",
        "+a -a +b error.execution",
    ),
    "an error inside a branch or a loop ends the whole block": (
        state(
            "a",
            row("e", do=f"<if cond='true'>{WRONG}</if>{log('never')}"),
            row("f", do=f"<foreach array='[1, 2]' item='i'>{log('once')}{WRONG}</foreach>{log('never')}"),
            row("error", do=log("error")),
        ),
        "e f",
        "+a error once error",
    ),
    "a start that goes wrong still enters its target": (
        state("s", starting("a", WRONG, log("never")), state("a"), row("error", do=log("error"))),
        "",
        "+s +a error",
    ),
    "a variable whose value goes wrong exists": (
        data(x="unknown.y") + state("a", row("error", do=value("typeof x"))),
        "",
        "+a undefined",
    ),
    "a parameter that goes wrong is left out and the message is sent": (
        state(
            "a",
            row("e", do=send("f", inside="<param name='k' expr='un.known'/><param name='m' expr='1'/>")),
            row("f", do=value("Object.keys(_event.data)[0]")),
            row("error", do=log("error")),
        ),
        "e",
        "+a error m",
    ),
    "donedata that go wrong are an error before the news": (
        state("s", final("f", "<donedata><param name='k' location='un.known'/></donedata>"), ANY),
        "",
        "+s +f error.execution done.state.s",
    ),
    # what expressions see
    "a state is active while it is left and from when it is entered": (
        f"<state id='a'><onexit>{value('+In(`a`)')}</onexit>{row('e', 'b', value('In(`a`) + In(`b`)'))}</state>"
        + f"<state id='b'>{enter(value('In(`b`) + In(`c`)'))}"
        + f"<state id='c'>{enter(value('In(`b`) + In(`c`)'))}</state></state>",
        "e",
        "1 0 1 2",
    ),
    "regions see each other as they stood before": (
        parallel(
            "p",
            state("r", state("r1", row("e", "r2", when="In(`q1`)")), state("r2")),
            state("q", state("q1", row("e", "q2", when="In(`r1`)")), state("q2")),
        ),
        "e",
        "+p +r +r1 +q +q1 -q1 -r1 +r2 +q2",
    ),
    "a row without an event sees the event before it": (
        state("a", row("e", "b")) + state("b", row(to="c", when="_event.name == `e`")) + state("c"),
        "e",
        "+a -a +b -b +c",
    ),
    "a loop goes over the array as it was": (
        data(list="[1,2,3]")
        + state(
            "a",
            row(
                "e",
                do=f"<foreach array='list' item='i' index='at'><script>list.push(i); list.shift();</script>"
                f"{value('i * 10 + at')}</foreach>{value('list.join()')}",
            ),
        ),
        "e",
        "+a 10 21 32 1,2,3",
    ),
    "a message carries the values of when it was sent": (
        data(x="1")
        + state(
            "a",
            enter(send("e", "delay='1s'", "<param name='x' expr='x'/>"), assign("x", "2")),
            row("e", do=value("_event.data.x + x")),
        ),
        "",
        "+a 3",
    ),
    # messages and time
    "delayed messages arrive in the order of their times and then of their sending": (
        state(
            "a", enter(send("x", "delay='2s'"), send("y", "delay='10ms'"), send("z", "delay='2000ms'"), send("w")), ANY
        ),
        "",
        "+a w y x z",
    ),
    "a cancelled message does not arrive, one that is under way does": (
        state(
            "a",
            enter(send("x", "id='i' delay='1s'"), send("y", "id='j'"), "<cancel sendid='i'/><cancel sendid='j'/>"),
            ANY,
        ),
        "",
        "+a y",
    ),
    "a message outlives the state that sent it": (
        state("a", enter(send("x", "delay='1s'")), row("e", "b")) + state("b", ANY),
        "e",
        "+a -a +b x",
    ),
    # invoked sessions
    "what an invoked session sends comes before its end": (
        state("a", invoke("i", f"<final id='f'>{enter(up('x'))}<onexit>{up('y')}</onexit></final>"), ANY),
        "",
        "+a x y done.invoke.i",
    ),
    "invoked sessions begin in the order of the document, outer states first": (
        state("s", invoke("o", kid("x")), state("t", invoke("i", kid("y")), invoke("j", kid("z"))), ANY),
        "",
        "+s +t x y z",
    ),
    "a state that is entered again invokes again": (
        state("a", invoke("i", kid("x")), row("e", "a"), row("x", do=log("x"))),
        "e",
        "+a x -a +a x",
    ),
    "what a cancelled session had not sent yet is dropped, also what it sends at its end": (
        state(
            "a",
            invoke("i", f"<state id='c'>{enter(up('x', LATER))}<onexit>{up('y')}</onexit></state>"),
            row("e", "b"),
        )
        + state("b", ANY),
        "e",
        "+a -a +b",
    ),
    "internal events are not forwarded": (
        state(
            "a",
            invoke(
                "i", f"<state id='c'>{row('x', do=up('wrong'))}{row('e', do=up('right'))}</state>", "autoforward='true'"
            ),
            row("e", do=raised("x")),
            row("x wrong right", do=value("_event.name")),
        ),
        "e",
        "+a x right",
    ),
    "finalize is for the events of its own session, its end included": (
        state(
            "a",
            invoke("i", f"<final id='f'>{enter(up('x'))}</final>", inside=f"<finalize>{log('final')}</finalize>"),
            invoke("j", kid("y"), inside=f"<finalize>{log('jinal')}</finalize>"),
            ANY,
        ),
        "",
        "+a final x final done.invoke.i jinal y",
    ),
    "a session that cannot be invoked does not keep the next one from it": (
        state("a", "<invoke type='pigeon'/>", invoke("i", kid("x")), ANY),
        "",
        "+a error.execution x",
    ),
}


@pytest.mark.parametrize(("inside", "events", "expected"), CASES.values(), ids=CASES.keys())
def test_a_document_keeps_its_order(inside: str, events: str, expected: str, evaluate: Evaluate | None) -> None:
    if evaluate is None and (" expr=" in inside or " cond=" in inside):
        pytest.skip("it needs a script engine, and none is installed")
    assert said(inside, events, evaluate) == expected
