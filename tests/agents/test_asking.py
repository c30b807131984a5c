"""`ask`, `call` and `question` in a table: what they want, and what they refuse when the machine is written."""

import string
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.agents.ask import (
    AskAgent,
    CallTool,
    YesNo,
    ask,
    call,
    days,
    hours,
    minutes,
    question,
    render,
    shape_name,
    tool,
    yes,
)
from moothall.errors import DefinitionError
from moothall.kernel.effects import AskPerson
from moothall.kernel.events import Answered, Expired


@dataclass(frozen=True)
class Author:
    name: str = "Ada"


@dataclass(frozen=True)
class Article:
    topic: str = "tides"
    tags: tuple[str, ...] = ("sea", "moon")
    author: Author = Author()


async def writer(prompt: str) -> str:
    return prompt


def test_asking_wants_the_template_and_only_the_arguments_that_it_names() -> None:
    effect = ask("writer", "Write about {topic}, {topic}, by {author.name}")(Article(), None)
    assert effect == AskAgent(
        "writer", "Write about {topic}, {topic}, by {author.name}", {"topic": "tides", "author.name": "Ada"}
    )


def test_asking_reads_fields_of_plain_dictionaries_too() -> None:
    effect = ask("writer", "{a.b}")({"a": {"b": 3}}, None)
    assert effect.arguments == {"a.b": 3}


@pytest.mark.parametrize(("data", "kind"), [("Mend it", "a text"), (None, "nothing"), ([1], "a list"), (3, "a number")])
@pytest.mark.parametrize("field", ["issue", "title"], ids=["no such name", "the name of a method of texts"])
@pytest.mark.parametrize("make", [lambda field: ask("writer", f"Mend {{{field}}}"), lambda field: call("mend", field)])
def test_a_field_of_data_that_have_none_is_named_with_who_wants_it_and_the_remedy(
    make: Any, field: str, data: Any, kind: str
) -> None:
    action = make(field)
    with pytest.raises((AttributeError, DefinitionError)) as caught:
        action(data, None)
    assert f"{action.label!r} wants the field {field!r}, and the data is {kind}: give a JSON object" in str(
        caught.value
    )


def test_a_field_that_an_object_lacks_is_told_as_python_tells_it() -> None:
    with pytest.raises(AttributeError, match=r"^'Author' object has no attribute 'topic'$"):
        ask("writer", "{author.topic}")(Article(), None)


def test_an_async_function_is_known_by_its_name() -> None:
    asked = ask(writer, "Write")
    assert (asked.agent, asked.function) == ("writer", writer)


def test_the_shape_of_a_reply_is_part_of_the_label_that_the_definition_s_hash_covers() -> None:
    assert ask("critic", "Judge", reply=Author).label == "ask critic -> Author: Judge"
    assert ask("critic", "Judge").label == "ask critic: Judge"


@pytest.mark.parametrize("template", ["{", "}", "{a"])
def test_a_template_with_stray_braces_is_refused_with_the_remedy(template: str) -> None:
    with pytest.raises(DefinitionError, match=r"ask writer: .*write \{\{ and \}\} for braces"):
        ask("writer", template)


@pytest.mark.parametrize("template", ["{}", "{0}", "{a-b}", "{a[0]}", '{"json": 1}'])
def test_a_template_that_names_no_field_is_refused_with_the_remedy(template: str) -> None:
    with pytest.raises(DefinitionError, match=r"names no field of the data; write \{\{ and \}\} for braces"):
        ask("writer", template)


@pytest.mark.parametrize("template", ["{score:.2f}", "{topic!r}", "{topic:>20}"])
def test_a_format_that_would_be_dropped_is_refused(template: str) -> None:
    with pytest.raises(DefinitionError, match=r"alone; formats have no meaning here"):
        question(template)


def test_doubled_braces_are_braces_in_the_text() -> None:
    effect = ask("writer", 'Reply as {{"topic": "{topic}"}}')(Article(), None)
    assert render(effect.template, effect.arguments) == 'Reply as {"topic": "tides"}'


def test_what_is_no_text_is_rendered_as_json() -> None:
    effect = ask("writer", "{tags} {author}")(Article(), None)
    assert render(effect.template, effect.arguments) == '["sea", "moon"] {"name": "Ada"}'


plain_text = st.text(st.characters(exclude_characters="{}"), max_size=30)
fields = st.text(string.ascii_lowercase, min_size=1, max_size=6).filter(str.isidentifier)


@given(st.lists(st.tuples(plain_text, fields, st.text(max_size=20)), max_size=5))
def test_rendering_puts_every_value_in_its_place_and_never_reads_a_value_as_a_template(
    parts: list[tuple[str, str, str]],
) -> None:
    arguments = {name: value for _, name, value in parts}
    template = "".join(f"{text}{{{name}}}" for text, name, _ in parts)
    assert render(template, arguments) == "".join(text + arguments[name] for text, name, _ in parts)


def test_calling_a_tool_wants_the_named_fields_as_arguments() -> None:
    effect = call("publish", "topic", "tags")(Article(), None)
    assert effect == CallTool("publish", {"topic": "tides", "tags": ["sea", "moon"]})
    assert call("publish", "topic", "tags").label == "call publish(topic, tags)"


def test_a_question_carries_its_rendered_prompt_its_schema_and_its_deadline() -> None:
    effect = question("Publish {topic}?", within=days(2))(Article(), None)
    assert effect == AskPerson("Publish tides?", {"type": "boolean"}, "bool", 172_800)


def test_only_a_question_with_a_deadline_can_expire() -> None:
    assert question("Well?").outcomes == (Answered,)
    assert question("Well?", within=1).outcomes == (Answered, Expired)


@pytest.mark.parametrize(("value", "held"), [(True, True), (False, False), ("yes", False), (1, False), (None, False)])
def test_yes_holds_for_the_answer_yes_and_nothing_like_it(value: Any, held: bool) -> None:
    assert yes(None, Answered(value)) is held


@pytest.mark.parametrize("seconds", ["2 days", "10", -1, 0], ids=repr)
def test_a_time_that_is_no_number_of_seconds_is_refused(seconds: Any) -> None:
    for wanted in (
        lambda: ask("writer", "Write", timeout=seconds),
        lambda: question("Well?", within=seconds),
        lambda: tool("weigh", timeout=seconds),
    ):
        with pytest.raises(DefinitionError, match=f"is a number of seconds above 0, not {seconds!r}"):
            wanted()


def test_spans_of_time_are_seconds() -> None:
    assert (minutes(1.5), hours(2), days(1)) == (90, 7_200, 86_400)


@pytest.mark.parametrize(("kind", "name"), [(None, ""), (YesNo, "bool"), (Author, "Author"), (list[str], "list")])
def test_a_shape_is_known_by_its_name(kind: Any, name: str) -> None:
    assert shape_name(kind) == name
