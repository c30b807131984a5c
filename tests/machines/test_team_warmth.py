"""Who is prepared while another speaks: by the rule of the document, or by what earlier handoffs taught."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.machines.team.definition import shipped_team
from moothall.machines.team.warmth import (
    Handoff,
    Learned,
    Prediction,
    Predictor,
    SeedRule,
    Tables,
    Warm,
    Warmth,
)

STUDIO = shipped_team("studio").tables()
IDS = STUDIO.personas


@pytest.mark.covers("T29", "T81", "T85")
def test_the_tables_of_the_document_ship_with_the_studio() -> None:
    assert STUDIO.dependencies == {
        "ceo": ("cfo", "cmo"),
        "game_designer": ("lead_engineer", "art_director"),
        "creative_partner": ("game_designer", "concept_artist"),
    }
    assert STUDIO.keywords == {
        "budget": ("cfo",),
        "technical": ("lead_engineer",),
        "design": ("game_designer",),
        "art": ("art_director",),
        "marketing": ("cmo",),
        "feasibility": ("lead_engineer", "ceo"),
    }


@pytest.mark.covers("T82")
def test_a_score_is_frequency_keyword_and_dependency_weighed() -> None:
    rule = SeedRule(STUDIO, {"ceo": {"cfo": 3, "cmo": 1}})
    scores = rule.scores("ceo", {"budget", "technical"})
    assert scores == pytest.approx({"cfo": 0.4 * 0.75 + 0.4 + 0.2, "cmo": 0.4 * 0.25 + 0.2, "lead_engineer": 0.4})


@pytest.mark.covers("T83", "T86")
def test_the_best_three_above_the_bar_are_warmed_and_nobody_twice() -> None:
    rule = SeedRule(STUDIO)
    warmed = rule.predict("concept_artist", {"technical", "feasibility", "design", "art", "budget"})
    assert [prediction.persona for prediction in warmed] == ["art_director", "ceo", "cfo"]
    assert rule.predict("ceo", ()) == ()
    certain = SeedRule(STUDIO, {"cmo": {"ceo": 3, "cfo": 1}})
    assert certain.predict("cmo", ()) == ()
    assert [found.persona for found in SeedRule(STUDIO, {"cmo": {"ceo": 4}}).predict("cmo", ())] == ["ceo"]


def test_exactly_at_the_bar_nobody_is_warmed() -> None:
    tables = Tables(("a", "b"))
    rule = SeedRule(tables, {"a": {"b": 3, "c": 1}})
    assert rule.scores("a", ())["b"] == pytest.approx(0.3)
    assert all(prediction.confidence > 0.3 for prediction in rule.predict("a", ()))


def test_words_are_found_in_a_text_as_whole_words() -> None:
    assert STUDIO.words_in("The Budget, and the TECHNICAL side; not the artist's.") == {"budget", "technical"}


handoffs = st.lists(
    st.builds(
        Handoff,
        st.sampled_from(IDS),
        st.frozensets(st.sampled_from(sorted(STUDIO.keywords)), max_size=3),
        st.sampled_from(IDS),
        st.integers(0, 3),
    ).filter(lambda handoff: handoff.speaker != handoff.next),
    max_size=40,
)


@pytest.mark.covers("T83", "T86")
@given(handoffs, st.sampled_from(IDS), st.frozensets(st.sampled_from(sorted(STUDIO.keywords))))
def test_whatever_was_seen_predictions_are_sorted_and_name_nobody_twice(
    seen: list[Handoff], speaker: str, words: frozenset[str]
) -> None:
    for predictor in (SeedRule(STUDIO), Learned(STUDIO)):
        current: Predictor = predictor
        for handoff in seen:
            current = current.observed(handoff)
        found = current.predict(speaker, words)
        names = [prediction.persona for prediction in found]
        assert len(names) == len(set(names))
        assert speaker not in names
        sure = [prediction.confidence for prediction in found]
        assert sure == sorted(sure, reverse=True)
        assert all(0 <= confidence <= 1 + 1e-9 for confidence in sure)


def test_the_chances_of_all_others_add_up_to_one() -> None:
    learned = Learned(STUDIO).observed(Handoff("ceo", frozenset(("budget",)), "cfo"))
    for words in ((), ("budget",), ("design", "art")):
        assert sum(learned.chances("ceo", words).values()) == pytest.approx(1)


def test_a_habit_is_learned_and_unlearned() -> None:
    learned = Learned(STUDIO)
    for _ in range(60):
        learned = learned.observed(Handoff("cmo", frozenset(), "ceo"))
    assert learned.predict("cmo", ())[0].persona == "ceo"
    for _ in range(200):
        learned = learned.observed(Handoff("cmo", frozenset(), "art_director"))
    assert learned.predict("cmo", ())[0].persona == "art_director"


def test_the_bar_rises_where_much_is_wasted() -> None:
    careful = careless = Learned(STUDIO)
    for _ in range(50):
        careful = careful.observed(Handoff("cmo", frozenset(), "ceo", wasted=0))
        careless = careless.observed(Handoff("cmo", frozenset(), "ceo", wasted=4))
    assert careful.bar < Learned(STUDIO).bar < careless.bar


def test_who_is_warm_is_known_with_since_when_and_how_sure() -> None:
    warmth = Warmth(keep_turns=2).began((Prediction("cfo", 0.8), Prediction("cmo", 0.4)))
    assert warmth.warm == (Warm("cfo", 0, 0.8), Warm("cmo", 0, 0.4))
    warmth, wasted = warmth.handed("cfo")
    assert (warmth.warm, wasted) == ((Warm("cmo", 0, 0.4),), 0)
    warmth = warmth.began((Prediction("cmo", 0.9), Prediction("ceo", 0.5)))
    assert warmth.warm == (Warm("cmo", 0, 0.4), Warm("ceo", 1, 0.5))
    warmth, wasted = warmth.handed("art_director")
    assert (warmth.warm, wasted) == ((Warm("ceo", 1, 0.5),), 1)
