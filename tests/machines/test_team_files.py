"""A team as a file: what it may say, what is found wrong with it, and the teams that ship."""

import copy
import json
from dataclasses import fields
from typing import Any

import pytest

from moothall.errors import BadValue
from moothall.machines.team import definition
from moothall.machines.team.definition import SHIPPED, Reach, Roster, shipped_team, shipped_text, team_of
from moothall.machines.team.directives import REPLY_SCHEMA
from moothall.machines.team.findings import findings
from moothall.machines.team.prompt import has_shipped_prompt, persona_prompt, shipped_prompt
from moothall.machines.team.rules import Route, Situation, route_of
from moothall.machines.team.schema import SHAPE
from moothall.machines.workflow.document import read


@pytest.mark.covers("T1", "T3", "T10", "T11", "T12", "T25")
def test_the_tree_of_the_studio_is_that_of_the_document() -> None:
    assert Roster(shipped_team("studio")).tree() == {
        "STRATEGIC": {"ceo": None, "cfo": None, "cmo": None},
        "CREATIVE": {
            "creative_partner": None,
            "CONCEPT": {"concept_artist": None},
            "DESIGN": {"game_designer": None},
            "ART_DIRECTION": {"art_director": None},
        },
        "TECHNICAL": {"lead_engineer": None, "project_manager": None},
        "USER_INTERACTION": {"RespondToUser": None, "AwaitApproval": None},
    }


@pytest.mark.covers("T65")
def test_the_small_team_has_four_personas_and_the_states_of_the_user() -> None:
    team = shipped_team("studio_small")
    assert {persona.name for persona in team.personas} == {"CEO", "CFO", "Game Designer", "Creative Partner"}
    assert Roster(team).tree()["USER_INTERACTION"] == {"RespondToUser": None, "AwaitApproval": None}


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_is_found_wrong_with_a_team_that_ships(name: str) -> None:
    assert findings(read(shipped_text(name)), has_prompt=has_shipped_prompt) == ()


@pytest.mark.covers("T19", "T67")
@pytest.mark.parametrize(
    ("name", "persona"), [(name, persona.id) for name in SHIPPED for persona in shipped_team(name).personas]
)
def test_every_shipped_prompt_has_the_schema_of_a_reply_and_the_colleagues_that_can_be_reached(
    name: str, persona: str
) -> None:
    roster = Roster(shipped_team(name))
    text = persona_prompt(roster, persona, shipped_prompt(roster.personas[persona].prompt))
    assert json.dumps(dict(REPLY_SCHEMA), indent=2) in text
    assert roster.targets(persona)
    assert all(f"- `{target}`: {roster.personas[target].name}" in text for target in roster.targets(persona))
    assert f"- `{persona}`" not in text
    assert "{" + "own}" not in text


def test_what_a_prompt_contains_is_never_filled_in() -> None:
    roster = Roster(shipped_team("studio_small"))
    assert "use {schema} and {colleagues}" in persona_prompt(roster, "ceo", "use {schema} and {colleagues}")


def test_a_team_or_a_prompt_that_does_not_ship_is_refused() -> None:
    with pytest.raises(BadValue, match="studio_small"):
        shipped_text("../studio")
    with pytest.raises(BadValue, match="beside the team file"):
        shipped_prompt("../definition.py")


@pytest.mark.covers("T47")
def test_whom_a_persona_can_reach_is_said_by_itself_its_closest_group_or_the_team() -> None:
    roster = Roster(shipped_team("software"))
    assert roster.targets("developer") == tuple(name for name in roster.personas if name != "developer")
    assert roster.targets("tester") == ("product_manager", "architect", "developer", "reviewer", "security_engineer")
    plain = json.loads(shipped_text("software"))
    plain["personas"][4]["reach"] = {"personas": ["developer"]}
    assert Roster(team_of(plain)).targets("tester") == ("developer",)


def large_team(size: int) -> dict[str, Any]:
    """A team in which everybody reaches its own group and whoever plans, said once."""
    groups = [
        {
            "name": f"GROUP_{start}",
            "personas": [f"persona_{number}" for number in range(start, min(start + 10, size))],
            "reach": {"groups": [f"GROUP_{start}"], "capabilities": ["planning"]},
        }
        for start in range(0, size, 10)
    ]
    people = [
        {"id": f"persona_{n}", "name": f"P{n}", "prompt": "p.md", "capabilities": ["planning"] if n % 10 == 0 else []}
        for n in range(size)
    ]
    user = {"name": "USER_INTERACTION", "states": ["RespondToUser", "AwaitApproval"]}
    return {"team_name": "large", "start": "persona_0", "groups": [*groups, user], "personas": people}


@pytest.mark.covers("T3", "T87")
def test_a_team_of_500_is_no_longer_than_ten_of_50_and_is_found_sound() -> None:
    small, large = (json.dumps(large_team(size)) for size in (50, 500))
    assert len(large) < 10.5 * len(small)
    assert findings(read(large.encode())) == ()
    roster = Roster(team_of(json.loads(large)))
    assert len(roster.targets("persona_7")) == 9 + 49


@pytest.mark.covers("T28")
def test_what_a_persona_can_reach_is_looked_up_when_it_is_asked_for() -> None:
    roster = Roster(team_of(large_team(500)))
    roster.targets("persona_7")
    assert set(roster._targets) == {"persona_7"}


def changed(path: str, value: Any) -> bytes:
    """The studio's file with one thing changed; a path that ends in + adds to a list."""
    team = copy.deepcopy(json.loads(shipped_text("studio")))
    spot: Any = team
    *parents, last = path.split("/")
    for part in parents:
        spot = spot[int(part)] if isinstance(spot, list) else spot[part]
    if last == "+":
        spot.append(value)
    elif value is None:
        del spot[last]
    else:
        spot[int(last) if isinstance(spot, list) else last] = value
    return json.dumps(team).encode()


WRONG: tuple[tuple[str, Any, str, str, str], ...] = (
    ("personnas", [], "W_UNKNOWN_KEY", "/personnas", "did you mean 'personas'?"),
    ("personas/0/capabilites", [], "W_UNKNOWN_KEY", "/personas/0/capabilites", "did you mean 'capabilities'?"),
    ("limits/zzz", 3, "W_UNKNOWN_KEY", "/limits/zzz", "remove it"),
    ("start", None, "E_REQUIRED", "/start", "speaks first"),
    ("start", "creative_parner", "E_UNKNOWN_PERSONA", "/start", "did you mean 'creative_partner'?"),
    ("personas/0/id", "CEO", "E_NAME", "/personas/0/id", "small letters"),
    ("personas/0/level", "smrt", "E_ENUM", "/personas/0/level", "did you mean 'smart'?"),
    ("personas/0/tools", "shell", "E_TYPE", "/personas/0/tools", "a list"),
    ("personas/1/id", "ceo", "E_DUP_NAME", "/personas/1/id", "rename"),
    ("personas/0/prompt", "nobody.md", "E_PROMPT", "/personas/0/prompt", "write the prompt"),
    ("personas/0/reach", {"groups": ["CREATVE"]}, "E_UNKNOWN_GROUP", "/personas/0/reach/groups/0", "'CREATIVE'"),
    ("personas/0/reach", {"capabilities": ["desgn"]}, "W_NOBODY_CAN", "/personas/0/reach/capabilities/0", "'design'"),
    ("personas/0/reach", {"personas": ["cfoo"]}, "E_UNKNOWN_PERSONA", "/personas/0/reach/personas/0", "'cfo'"),
    ("groups/0/personas/+", "coo", "E_UNKNOWN_PERSONA", "/groups/0/personas/3", "did you mean"),
    ("groups/0/personas/+", "lead_engineer", "E_TWO_GROUPS", "/groups/2/personas/0", "keep one"),
    ("groups/0/personas", ["ceo", "cfo"], "E_NO_GROUP", "/personas/2/id", "add it to one"),
    ("groups/3/states", [], "E_NO_USER", "/groups", "USER_INTERACTION"),
    ("groups/3/states", ["Respond"], "E_ENUM", "/groups/3/states/0", "did you mean 'RespondToUser'?"),
    ("groups/2/name", "CREATIVE", "E_DUP_NAME", "/groups/2/name", "rename"),
    ("rules/0/route", "cso", "E_UNKNOWN_PERSONA", "/rules/0/route", "did you mean"),
    ("rules/0/when", {}, "E_ALWAYS", "/rules/0/when", "condition"),
    ("rules/0/when", {"speaker": ["gamedesigner"]}, "E_UNKNOWN_PERSONA", "/rules/0/when/speaker/0", "'game_designer'"),
    ("rules/1/when/facts/0", {"fact": "x"}, "E_NO_TEST", "/rules/1/when/facts/0", "at_least"),
    ("rules/1/name", "budget_review", "E_DUP_NAME", "/rules/1/name", "rename"),
    ("sources", [{"fact": "budget_lef", "tool": "t"}], "W_NO_SOURCE", "/rules/1/when/facts/0/fact", "'budget_lef'"),
    ("arbitration/weights/frequency", 0.2, "E_WEIGHTS", "/arbitration/weights", "lower them"),
    ("arbitration/weights/urgency", -1, "E_RANGE", "/arbitration/weights/urgency", "at least 0"),
    ("arbitration/weights/urgancy", 0.1, "W_UNKNOWN_KEY", "/arbitration/weights/urgancy", "did you mean 'urgency'?"),
    ("warming/dependencies/ceoo", ["cfo"], "E_UNKNOWN_PERSONA", "/warming/dependencies/ceoo", "did you mean 'ceo'?"),
    ("warming/keywords/money", ["CFO"], "E_UNKNOWN_PERSONA", "/warming/keywords/money/0", "write the name"),
    ("limits/turns", 0, "E_RANGE", "/limits/turns", "at least 1"),
    ("limits/repeats", 1, "E_RANGE", "/limits/repeats", "at least 2"),
    ("autonomy/replies", "yes", "E_ENUM", "/autonomy/replies", "write one of"),
    ("memory/compression_threshold", 2, "E_RANGE", "/memory/compression_threshold", "at least 3"),
    ("reach", {"groups": ["CREATIVE"]}, "W_UNREACHABLE", "/personas/0/id", "add it to a reach"),
)


@pytest.mark.parametrize(("path", "value", "code", "pointer", "remedy"), WRONG)
def test_a_fault_is_found_with_its_place_its_reason_and_a_remedy(
    path: str, value: Any, code: str, pointer: str, remedy: str
) -> None:
    found = findings(read(changed(path, value)), has_prompt=has_shipped_prompt)
    matching = [problem for problem in found if (problem.code, problem.pointer) == (code, pointer)]
    assert matching, found
    assert remedy in matching[0].remedy
    assert matching[0].why
    assert matching[0].line > 0


@pytest.mark.parametrize("raw", [b"[]", b"3", b"{", b"\xff\xfe", b'{"team_name": 3, "groups": [3], "personas": {}}'])
def test_what_is_no_team_at_all_is_an_error_and_nothing_is_raised(raw: bytes) -> None:
    assert any(problem.level == "error" for problem in findings(read(raw)))


SHAPES = {
    "Reach": "Reach",
    "Hooks": "Hooks",
    "Approval": "Approval",
    "Group": "Group",
    "Persona": "Persona",
    "FactTest": "FactTest",
    "When": "When",
    "Rule": "Rule",
    "Arbitration": "Arbiter",
    "Warming": "Warming",
    "Source": "Source",
    "Memory": "Remembering",
    "Limits": "Limits",
    "Team": "Team",
}


@pytest.mark.parametrize("name", SHAPE.parts)
def test_the_schema_and_the_values_have_the_same_fields(name: str) -> None:
    written = {key for key in SHAPE.parts[name]["properties"] if not key.startswith("$")}
    assert written == {field.name.rstrip("_") for field in fields(getattr(definition, SHAPES[name]))}


def test_a_team_without_a_reach_lets_everybody_reach_everybody() -> None:
    assert Roster(shipped_team("studio_small")).reach("ceo") == Reach(("*",))


EXPENSIVE = "Add multiplayer feature"
WORRIED = "Budget concerns raised, need cost analysis"


@pytest.mark.covers("T31", "T79")
def test_scenario_b_goes_to_the_cfo_and_back_to_the_game_designer() -> None:
    rules = shipped_team("studio").rules
    got = route_of(rules, Situation("game_designer", WORRIED, EXPENSIVE))
    assert got == Route(
        "budget_review", "cfo", "game_designer", "cfo is next by the rule budget_review, then game_designer again"
    )


@pytest.mark.covers("T41", "T79")
def test_scenario_b_holds_with_a_fact_from_outside() -> None:
    rules = shipped_team("studio").rules
    got = route_of(rules, Situation("game_designer", "", EXPENSIVE, {"budget_left": 4000}))
    assert got is not None
    assert (got.rule, got.next, got.back_to) == ("budget_spent", "cfo", "game_designer")


@pytest.mark.parametrize(
    "situation",
    [
        Situation("game_designer", WORRIED, "Add a jump button"),
        Situation("game_designer", "All is well", EXPENSIVE),
        Situation("cfo", WORRIED, EXPENSIVE),
        Situation("game_designer", "The budgetary office", EXPENSIVE),
        Situation("game_designer", "", EXPENSIVE, {"budget_left": 50_000}),
        Situation("game_designer", "", EXPENSIVE, {"budget_left": "4000"}),
        Situation("game_designer", "", EXPENSIVE, {"budget_left": True}),
        Situation("game_designer", "", EXPENSIVE, {"other": 1}),
    ],
)
def test_a_rule_of_which_a_condition_does_not_hold_routes_nobody(situation: Situation) -> None:
    assert route_of(shipped_team("studio").rules, situation) is None
