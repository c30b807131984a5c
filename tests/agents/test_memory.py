"""What a conversation remembers: the newest as it was said, the rest in short, decisions for ever."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.agents.memory import (
    CLOSING,
    OPENING,
    Memory,
    Summary,
    extract,
    kind_of,
    lost_key_items,
    marked_reasons,
    prompt_text,
)
from moothall.agents.recall import KEY_KINDS, Item, Recall
from moothall.errors import Broken, DefinitionError
from moothall.team import ConversationMemory


def told(memory: Memory, *items: Item) -> Memory:
    """Remember items, each summary made at once and without a model."""
    for item in items:
        memory = memory.remember(item)
        if due := memory.due():
            memory = memory.summarised(extract(due))
    return memory


def talk(number: int, kind: str = "general") -> Item:
    return Item(f"{kind} number {number}", kind, f"speaker {number % 3}", number, float(number))


@pytest.mark.covers("T14", "T16", "T70")
def test_at_the_threshold_a_summary_is_due_and_the_two_newest_stay_raw() -> None:
    memory = Memory()
    for number in range(4):
        memory = memory.remember(talk(number))
        assert memory.due() == ()
    memory = memory.remember(talk(4))
    assert memory.due() == tuple(talk(number) for number in range(5))
    after = memory.summarised(extract(memory.due()))
    assert after.raw == (talk(3), talk(4))
    assert after.due() == ()
    assert len(after.summaries) == 1


@pytest.mark.covers("T14")
def test_no_item_is_summarised_twice() -> None:
    memory = told(Memory(), *(talk(number) for number in range(20)))
    assert sum(summary.items for summary in memory.summaries) + len(memory.raw) - memory.covered == 20


@pytest.mark.covers("T74")
def test_a_summary_has_decisions_discussions_pending_its_time_range_and_its_number_of_decisions() -> None:
    items = (
        Item("We use Godot.", "decision", "lead_engineer", 1, 10.0),
        Item("The art is fine. It is late.", "general", "ceo", 2, 11.0),
        Item("No to loot boxes.", "rejection", "ceo", 3, 12.0),
        Item("Approved.", "approval", "cfo", 4, 13.0),
        Item("Who pays for the composer?", "general", "cmo", 5, 14.0),
    )
    summary = extract(items)
    assert summary.decisions == ("lead_engineer: We use Godot.", "ceo: No to loot boxes.", "cfo: Approved.")
    assert summary.discussions == ("ceo: The art is fine.", "cmo: Who pays for the composer?")
    assert summary.pending == ("cmo: Who pays for the composer?",)
    assert (summary.timestamp_range, summary.decision_count) == ((10.0, 14.0), 1)


@pytest.mark.covers("T72")
@pytest.mark.parametrize("kind", KEY_KINDS)
def test_a_key_item_stays_with_who_said_it_and_at_which_step(kind: str) -> None:
    item = Item("It has to run offline.", kind, "cfo", 7, 3.0)
    memory = told(Memory(), item, *(talk(number) for number in range(100)))
    assert memory.key == (item,)


@pytest.mark.covers("T72")
def test_a_summary_that_forgets_a_decision_gets_it_back() -> None:
    memory = Memory()
    for item in (talk(0, "decision"), *(talk(number) for number in range(1, 5))):
        memory = memory.remember(item)
    after = memory.summarised(Summary(discussions=("nothing much",)))
    assert after.summaries[0].decisions == ("speaker 0: decision number 0",)
    assert lost_key_items(memory, after) == ()


def test_a_compaction_that_would_lose_a_key_item_is_refused() -> None:
    memory = Memory()
    for number in range(5):
        memory = memory.remember(talk(number, "decision"))
    with pytest.raises(Broken, match="lost 5 key items"):
        replace(memory, key=()).summarised(Summary())


@pytest.mark.parametrize(
    ("content", "given_kind", "kind"),
    [
        ("We ship in May. @DECISION(reason=the fair is in June)", "general", "decision"),
        ("@DECISION(reason=cost (per seat) is lower)", "general", "decision"),
        ("@DECISION(reason=x)", "rejection", "rejection"),
        ("I decided, and we agreed, and it is approved.", "general", "general"),
        ("@DECISION()", "general", "general"),
        ("@decision(reason=x)", "general", "general"),
        ("a decision", "approval", "approval"),
    ],
)
def test_the_kind_comes_from_the_reply_or_from_a_marker_and_never_from_a_guess(
    content: str, given_kind: str, kind: str
) -> None:
    assert kind_of(content, given_kind) == kind


def test_the_reasons_of_markers_can_be_read() -> None:
    assert marked_reasons('a @DECISION(reason="cost") b @DECISION(reason=time (ours))') == ("cost", "time (ours)")


@pytest.mark.covers("T70")
def test_beyond_the_most_summaries_older_ones_are_merged_and_lose_no_decision() -> None:
    memory = told(Memory(max_embeddings=3), *(talk(number, "decision") for number in range(60)))
    assert len(memory.summaries) == 3
    decided = [text for summary in memory.summaries for text in summary.decisions]
    assert decided == [f"speaker {number % 3}: decision number {number}" for number in range(59)]
    assert sum(summary.decision_count for summary in memory.summaries) == 59
    assert memory.summaries[0].timestamp_range[0] == 0


def test_the_context_has_three_key_decisions_then_two_raw_items_and_summaries_by_similarity() -> None:
    memory = Memory()
    for topic in ("dragons", "budget", "music", "shaders", "trailers"):
        for number in range(3):
            memory = told(memory, Item(f"We talk about {topic}, part {number}."))
    memory = told(memory, *(Item(f"decision {number}", "decision") for number in range(4)))
    context = memory.relevant_context("what about the budget", 2)
    assert list(context) == ["recent_context", "compressed_history", "key_decisions"]
    assert context["recent_context"] == ["decision 1", "decision 2", "decision 3", "decision 2", "decision 3"]
    assert len(context["compressed_history"]) == 2
    assert "budget" in context["compressed_history"][0].text
    assert context["key_decisions"] == [f"decision {number}" for number in range(4)]


def test_embeddings_take_the_place_of_words_where_there_are_some() -> None:
    summaries = tuple(Summary((name,), embedding=at) for name, at in (("a", (1.0, 0.0)), ("b", (0.0, 1.0))))
    context = Memory(summaries=summaries).relevant_context("a", 1, embedding=(0.1, 0.9))
    assert context["compressed_history"] == [summaries[1]]


def test_nothing_recalled_is_remembered_again() -> None:
    items = [Item("The price of Ottersong is 30 euros.", "decision", "cfo", 1)]
    shown = prompt_text(Recall(items), "What does Ottersong cost?", budget=500)
    assert "30 euros" in shown
    assert Memory().remember(Item(shown)) == Memory()
    assert Memory().remember(Item("x", "recalled")) == Memory()
    assert Memory().remember(Item(f"I see. {shown}")).raw == (Item("I see."),)
    assert Memory().remember(Item(f"{OPENING} unclosed")) == Memory()


@given(st.lists(st.sampled_from(("general", *KEY_KINDS)), max_size=80), st.integers(3, 8), st.integers(1, 4))
def test_whatever_is_said_no_key_item_is_ever_lost(kinds: list[str], threshold: int, most: int) -> None:
    items = [talk(number, kind) for number, kind in enumerate(kinds)]
    memory = told(Memory(threshold, most), *items)
    assert memory.key == tuple(item for item in items if item.is_key)
    assert len(memory.summaries) <= most
    assert len(memory.raw) < threshold
    assert memory.raw[-2:] == tuple(items[-2:])


@given(st.lists(st.text(max_size=200), max_size=20), st.text(max_size=50), st.integers(0, 400))
def test_a_prompt_never_shows_more_than_it_may(contents: list[str], query: str, budget: int) -> None:
    items = [Item(content, "decision" if number % 4 == 0 else "general") for number, content in enumerate(contents)]
    assert len(prompt_text(Recall(items), query, budget=budget)) <= budget


def test_an_answer_that_does_not_repeat_the_name_is_found_by_its_question() -> None:
    items = [
        Item("Do we have a launch for Yarrowdeep yet?", who="User"),
        Item("Yes, 24 November.", who="ArtDirector"),
        *(Item(f"The Yarrowdeep cake number {number} was good.", who="CEO") for number in range(100)),
    ]
    shown = prompt_text(Recall(items), "What is the release date of Yarrowdeep?", budget=800)
    assert "24 November" in shown


def test_where_decisions_do_not_fit_the_prompt_says_how_many_more_there_are() -> None:
    items = [Item(f"Level {number} gets the boss called Brute{number}.", "decision") for number in range(500)]
    shown = prompt_text(Recall(items), "Who is the boss of level 77?", budget=1000)
    assert "Brute77." in shown
    assert "more decisions are on record" in shown
    assert shown.endswith(CLOSING)


@pytest.mark.covers("T71", "T77")
def test_the_class_of_the_document_remembers_by_update() -> None:
    now = iter(range(100))
    memory = ConversationMemory(clock=lambda: float(next(now)))
    memory.update("hello")
    memory.update("we use Godot", content_type="decision")
    for number in range(3):
        memory.update(f"point {number}")
    context = memory.get_relevant_context("engine", max_items=3)
    assert context == {
        "recent_context": ["we use Godot", "point 1", "point 2"],
        "compressed_history": [
            {
                "decisions": ["we use Godot"],
                "discussions": ["hello", "point 0", "point 1", "point 2"],
                "pending": [],
                "timestamp_range": (0.0, 4.0),
                "decision_count": 1,
            }
        ],
        "key_decisions": ["we use Godot"],
    }


@pytest.mark.covers("T75", "T76", "T77")
def test_the_class_of_the_document_finds_history_by_similarity_and_only_so_much_of_it() -> None:
    memory = ConversationMemory()
    for topic in ("dragons", "budget", "music", "shaders", "trailers"):
        for number in range(3):
            memory.update(f"We talk about {topic}, part {number}.")
    for number in range(4):
        memory.update(f"decision {number}", "decision")
    context = memory.get_relevant_context("what about the budget", max_items=2)
    assert list(context) == ["recent_context", "compressed_history", "key_decisions"]
    assert context["recent_context"] == ["decision 1", "decision 2", "decision 3", "decision 2", "decision 3"]
    assert len(context["compressed_history"]) == 2 < len(memory.compressed_embeddings)
    assert "budget" in str(context["compressed_history"][0])
    assert len(memory.get_relevant_context("what about the budget")["compressed_history"]) == 3
    assert context["key_decisions"] == [f"decision {number}" for number in range(4)]


@pytest.mark.covers("T14", "T16", "T74")
def test_the_class_of_the_document_shows_what_is_raw_compressed_and_decided() -> None:
    memory = ConversationMemory(clock=lambda: 7.0)
    for text, kind in (("a", "general"), ("b", "decision"), ("c", "approval"), ("d", "rejection")):
        memory.update(text, kind)
    assert [item["content"] for item in memory.raw_memory] == ["a", "b", "c", "d"]
    assert memory.compressed_embeddings == []
    memory.update("e")
    assert memory.raw_memory == [
        {"content": "d", "type": "rejection", "timestamp": 7.0},
        {"content": "e", "type": "general", "timestamp": 7.0},
    ]
    [summary] = memory.compressed_embeddings
    assert (summary["decision_count"], summary["timestamp_range"]) == (1, (7.0, 7.0))
    assert memory.key_decisions == ["b", "c", "d"]


@pytest.mark.parametrize(
    "wrong",
    [{"compression_threshold": 2}, {"max_embeddings": 0}, {"compression_threshold": "5"}, {"max_embeddings": None}],
)
def test_a_memory_that_could_not_work_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))) as caught:
        ConversationMemory(**wrong)
    assert isinstance(caught.value, DefinitionError)


@pytest.mark.parametrize(
    ("query", "most", "told"), [(3, 3, "query"), ("x", "3", "max_items"), ("x", None, "max_items")]
)
def test_a_question_that_is_none_is_refused(query: Any, most: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ConversationMemory().get_relevant_context(query, most)


def test_an_unknown_type_of_content_is_refused() -> None:
    with pytest.raises(ValueError, match="content_type"):
        ConversationMemory().update("x", "desicion")


@given(st.lists(st.text(max_size=60), max_size=12), st.text(max_size=30))
def test_a_conversation_that_grew_shows_what_one_taken_in_at_once_shows(contents: list[str], query: str) -> None:
    items = [Item(content, who=f"speaker {number % 2}") for number, content in enumerate(contents)]
    grown = Recall()
    for item in items:
        grown.add(item)
        grown.context(query, budget=200)
    assert grown.context(query, budget=200) == Recall(items).context(query, budget=200)
