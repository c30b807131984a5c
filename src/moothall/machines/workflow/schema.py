"""The shape of a workflow file as JSON Schema, and everything about a file that does not have it.

`SCHEMA` is what `moot schema workflow` prints, and what `misfits` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moothall.machines.schema import Plain, Shape, above, count, inner, objects, shape, text
from moothall.machines.workflow.document import Problem

_SCRIPT = "JavaScript, as `() => { … }` or as statements, or py:NAME for a function that the user registered."
_ON_NO_MATCH: Plain = {
    "enum": ["fail", "stop"],
    "description": "What happens where no condition holds: the run fails and says why (default), or it goes to stop.",
}
_PARAMETER: Mapping[str, Plain] = {
    "name": text("Its name in common_data."),
    "type": {"enum": ["string", "number", "object", "array"], "description": "Its type."},
    "description": text("What it is."),
}
_OUTPUT_TYPE: Plain = {
    "enum": ["string", "number", "boolean", "object", "array"],
    "description": "Its type; a run that gives something else has failed.",
}
_DEFINITIONS: Mapping[str, dict[str, Any]] = {
    "Input": shape("What a run is given.", ("name", "type"), _PARAMETER),
    "Output": shape("What a run gives.", ("name",), {**_PARAMETER, "type": _OUTPUT_TYPE}),
    "Message": shape(
        "Something that was said before.",
        ("role", "content"),
        {
            "role": {"enum": ["system", "user", "assistant"], "description": "Who said it."},
            "content": text("What was said."),
        },
    ),
    "Context": shape(
        "A conversation; agents that name the same context share it.",
        ("name",),
        {
            "name": text("Its name."),
            "starting_messages": objects("Message", "What was said before the run begins."),
            "max_length": count("The most characters that are kept; the oldest messages go first. 50000 by default."),
        },
    ),
    "Agent": shape(
        "A role at work in a context.",
        ("agent_role", "context", "role"),
        {
            "agent_role": text("The name of the role."),
            "context": text("The name of its context."),
            "role": {
                "enum": ["user", "assistant"],
                "description": "As whom it speaks there; one that is user sees the others swapped.",
            },
        },
    ),
    "Transition": shape(
        "A way on. The first whose condition holds is taken.",
        ("target", "condition"),
        {
            "target": text("The next state."),
            "condition": text("A JavaScript expression, or py:NAME."),
            "before": text(f"Done when it is taken. {_SCRIPT}"),
        },
    ),
    "Action": shape(
        "What a state does when it is entered.",
        (),
        {
            "function": {
                "enum": ["sendUserMessage", "addUserMessage", "clearConversation", "script"],
                "description": "What the agent does with the input; sendUserMessage by default.",
            },
            "script": text(f"Done first. {_SCRIPT}"),
            "sub_workflow": text("The name of a workflow to run, alone and to its end."),
            "sub_workflow_input": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Its input: the name of its parameter, and an expression.",
            },
        },
    ),
    "Question": shape(
        "A question to a person; the run waits for the answer.",
        ("question",),
        {
            "question": text("An expression, or a text."),
            "schema": {"type": "object", "description": "The JSON Schema of the answer; yes or no by default."},
            "answer": text("The name in common_data under which the answer is kept; `answer` by default."),
            "within": above("The seconds after which the question is over and on_error is taken."),
            "who": text("The only one whose answer counts."),
        },
    ),
    "Retry": shape("How often a call that fails is tried.", ("attempts",), {"attempts": count("All attempts.")}),
    "Limits": shape(
        "The most that may be spent.",
        (),
        {
            "usd": above("Money, in US dollars."),
            "tokens": count("Tokens of models."),
            "calls": count("Calls of models."),
            "seconds": above("Time since the run began."),
            "transitions": count("Steps."),
        },
    ),
    "State": shape(
        "One state.",
        ("name",),
        {
            "name": text("Its name. A run begins in `start` and ends in `stop`."),
            "description": text("What happens there."),
            "agent": text("The role that speaks there."),
            "input": text("What it is told: an expression, or a text. In `stop`: what the run gives."),
            "action": inner("Action", "What is done there."),
            "ask": inner("Question", "What a person is asked there."),
            "transition": objects("Transition", "Where it leads."),
            "states": objects("State", "States inside; the first is entered, and one without transition ends them."),
            "parallel": objects("State", "States inside that are all active at once, each with states of its own."),
            "join": {
                "enum": ["all", "first"],
                "description": "Which end of the parallel ones counts: that of all (default), or the first.",
            },
            "history": {
                "enum": ["none", "shallow", "deep"],
                "description": "Whether the states inside go on where they were left when this one is entered again.",
            },
            "on_entry": text(f"Done when it is entered. {_SCRIPT}"),
            "on_exit": text(f"Done when it is left. {_SCRIPT}"),
            "on_error": text("The state to go to when something fails here; common_data.error then says what."),
            "on_limit": text("The state to go to when a limit is reached here; common_data.limit then says which."),
            "on_no_match": _ON_NO_MATCH,
            "timeout": above("The seconds after which what it waits for has failed."),
            "retry": inner("Retry", "How often a call that fails is tried."),
            "budget": inner("Limits", "What a sub-workflow may spend."),
            "max_visits": count("How often it may be entered."),
        },
    ),
}
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Moothall workflow",
    "anyOf": [{"$ref": "#/$defs/Workflow"}, {"type": "array", "items": {"$ref": "#/$defs/Workflow"}, "minItems": 1}],
    "$defs": {
        "Workflow": shape(
            "A workflow: contexts, agents, and the states that say who speaks next.",
            ("workflow_name", "input", "output", "contexts", "agents", "states"),
            {
                "$schema": text("The address of this schema, for editors."),
                "workflow_name": {
                    "type": "string",
                    "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$",
                    "maxLength": 64,
                    "description": "Its name: letters, digits, underscores and dashes.",
                },
                "description": text("What it is for."),
                "input": inner("Input", "What a run is given."),
                "output": inner("Output", "What a run gives."),
                "variables": {
                    "type": "object",
                    "description": "First values in common_data. max_iterations bounds the visits of every state.",
                },
                "contexts": objects("Context", "The conversations."),
                "agents": objects("Agent", "Who takes part."),
                "states": {**objects("State", "The states."), "minItems": 1},
                "on_error": text("The state to go to when something fails and the state itself does not say."),
                "on_limit": text("The state to go to when a limit is reached and the state itself does not say."),
                "on_no_match": _ON_NO_MATCH,
                "max_tool_rounds": count("How often an agent may have tools called before it has to go on. 50."),
                "budget": inner("Limits", "What a run may spend."),
            },
        ),
        **_DEFINITIONS,
    },
}
SHAPE = Shape(SCHEMA["title"], "Workflow", SCHEMA["$defs"])


def misfits(value: Any, name: str = "Workflow", pointer: str = "") -> Iterator[Problem]:
    """Everything about a value that does not have the shape of this name."""
    return SHAPE.misfits(value, name, pointer)


def clean(value: Any, name: str = "Workflow") -> Any:
    """A value of this shape without the keys that nobody reads."""
    return SHAPE.cleaned(value, name)
