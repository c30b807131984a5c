"""Nothing is reported of a closed debate that the raw replies do not show.

Random panels behind an address say whatever small models say: options in any dress, sentences about options, nothing,
nonsense, refusals, with and without a confidence. `moot debate --json` runs to its end. Then the replies that the
server sent are counted again from the rules below, without any code of the machine:

- A vote is an answer that is an option but for case, white space, quotes, punctuation around it and "Option" before it.
- A reply that is no JSON of the shape, or has no text or no vote, is asked for once more; a refusal of the provider is
  not. What has no shape then has failed: without a draft it abstains in every round, with one it keeps that. What only
  has no vote abstains in this round.
- The agreement is the leading answer's share of the whole panel, by heads. Under `gated` votes weigh their confidence,
  at least 1; who abstains or states none weighs as much as those on average who voted and stated one.
- A vote ends by consensus where more than half hold one answer, a round where neither the judge's confidence nor the
  agreement is below the threshold. The answer is what leads over drafts and rounds together; in a tie the judge's
  choice among the leaders, or where the judge fails that of the surest proposal. Without one: no answer, exit code 1
  (3 where nobody is left because a provider refused).
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from tests.cli.ran import Moot, Ran
from tests.models.debaters import FAILS, OPTIONS, PROBLEM, Call, debaters
from tests.models.loopback import Fault

QUICK, MANY = range(12), range(12, 160)
PROTOCOLS = ("debate", "vote", "gated")
SHAPE: dict[str, Any] = {"text": str, "answer": str, "confidence": (int, float)}


# what is said


@dataclass
class Panel:
    """Seats that speak by chance, always the same for one seed, and the replies that they gave."""

    seed: int
    said: dict[tuple[str, str], list[list[Any]]] = field(default_factory=dict)
    """By seat and node: for each time that it was asked, the first reply, and the second where there was one."""
    shown: list[Call] = field(default_factory=list)

    @property
    def chance(self) -> Random:
        return Random(f"panel {self.seed}")

    @property
    def seats(self) -> tuple[str, ...]:
        return ("ann", "bob", "cat", "dan", "eve")[: self.chance.choice((1, 2, 3, 3, 4, 5))]

    @property
    def config(self) -> dict[str, Any]:
        chance = Random(f"config {self.seed}")
        threshold = chance.choice((30, 50, 80))
        return {
            "protocol": PROTOCOLS[self.seed % 3],
            "rounds": chance.choice((1, 2)),
            "terminationCondition": {"type": "convergence", "threshold": threshold},
            "answer": {"type": "choice", "options": list(OPTIONS)},
        }

    def speak(self, call: Call) -> Any:
        asked = self.said.setdefault((call.seat, call.node), [])
        if not call.is_repair:
            asked.append([])
            self.shown.append(call)
        chance = Random(f"{self.seed} {call.seat} {call.node} {len(asked)} {len(asked[-1])}")
        reply = self._reply(call, chance)
        asked[-1].append(reply)
        return reply

    def _reply(self, call: Call, chance: Random) -> Any:
        if chance.random() < 0.06:
            return FAILS
        if chance.random() < 0.08:
            return chance.choice(("I do not know.", " ", "{}", "[]", '{"text": 7}', '{"answer": "SQLite"'))
        match call.node:
            case "propose" | "refine":
                return self._draft(call, chance)
            case "critique":
                known = [*call.labels(), "Z", "bob", ""]
                picked = chance.sample(known, chance.randint(1, len(known)))
                return {
                    "reviews": [{"label": label, "text": chance.choice(("Good.", "Bad.", " "))} for label in picked]
                }
            case "evaluate":
                return {"confidence": chance.choice((10, 50, 85, 100))}
            case _:
                return {"description": "So.", "answer": _answer(chance)}

    def _draft(self, call: Call, chance: Random) -> dict[str, Any]:
        draft: dict[str, Any] = {"text": chance.choice((f"{call.seat} thinks.", f"{call.seat} likes SQLite.", " "))}
        if chance.random() < 0.9:
            draft["answer"] = _answer(chance)
        if chance.random() < 0.6:
            draft["confidence"] = chance.choice((0, 0.9, 20, 50, 80, 100, 100.0, 150, None))
        return draft


def _answer(chance: Random) -> str:
    option = chance.choice((OPTIONS[0], *OPTIONS))
    dress = chance.choice(("{}", "{}", "{}", "{}", " {}.", '"{}"', "Option {}", "({})", "**{}**"))
    sentences = ("not {}", "I choose {}", "{} or Redis", "{}!x", "The answer is {}.", "none of them", "")
    written = dress if chance.random() < 0.7 else chance.choice(sentences)
    return written.format(chance.choice((option, option, option.upper(), option.lower())))


# what it means


def vote_in(answer: str) -> str:
    """The option that an answer is."""
    bare = re.sub(r"^[\W_]+|[\W_]+$", "", answer).lower()
    bare = re.sub(r"^option\s+", "", bare)
    return next((option for option in OPTIONS if option.lower() == bare), "")


def draft_in(reply: Any) -> dict[str, Any] | None:
    """The draft that a reply is; None where it has not the shape of one."""
    plain = _json(reply)
    if not isinstance(plain, dict) or "text" not in plain or not plain.keys() <= SHAPE.keys():
        return None
    stated = plain.get("confidence")
    if any(
        not isinstance(value, SHAPE[name]) for name, value in plain.items() if (name, value) != ("confidence", None)
    ):
        return None
    return plain if stated is None or 0 <= stated <= 100 else None


def _json(reply: Any) -> Any:
    if not isinstance(reply, str):
        return None if isinstance(reply, Fault) else reply
    try:
        return json.loads(reply)
    except ValueError:
        return None


def settled(replies: list[Any], is_usable: Any) -> Any:
    """The reply that counts; one that cannot be used was asked for once more, and no other."""
    first = replies[0]
    wanted = 1 if isinstance(first, Fault) or is_usable(first) else 2
    assert len(replies) == wanted, replies
    return replies[-1]


def is_vote(reply: Any) -> bool:
    draft = draft_in(reply)
    return draft is not None and bool(draft["text"].strip()) and bool(vote_in(draft.get("answer", "")))


@dataclass
class Count:
    """Votes of some seats, each with what it weighs."""

    counts: Counter[str] = field(default_factory=Counter)
    weights: Counter[str] = field(default_factory=Counter)
    total: float = 0.0

    def add(self, drafts: Mapping[str, Mapping[str, Any] | None], *, weighed: bool) -> "Count":
        votes = {seat: vote_in(draft.get("answer", "")) if draft else "" for seat, draft in drafts.items()}
        stated = {
            seat: max(float(draft["confidence"]), 1.0)
            for seat, draft in drafts.items()
            if draft and votes[seat] and draft.get("confidence") is not None and weighed
        }
        mean = sum(stated.values()) / len(stated) if stated else 1.0
        for seat, vote in votes.items():
            self.total += stated.get(seat, mean)
            if vote:
                self.counts[vote] += 1
                self.weights[vote] += stated.get(seat, mean)  # type: ignore[assignment]
        return self

    @property
    def leaders(self) -> list[str]:
        most = max(self.weights.values(), default=0)
        return sorted(vote for vote, weight in self.weights.items() if abs(weight - most) < 1e-9)

    @property
    def share(self) -> float:
        return max(self.weights.values(), default=0) / self.total if self.total else 0.0


@dataclass
class Expected:
    """What may be reported."""

    answer: str = ""
    agreement: float | None = None
    share: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    consensus: bool = False
    abstained: set[tuple[str, int]] = field(default_factory=set)


def recount(panel: Panel) -> Expected:
    """What the raw replies of a debate show."""
    said, config = panel.said, panel.config
    is_gated = config["protocol"] == "gated"
    drafts = {seat: draft_in(settled(said[seat, "propose"][0], is_vote)) for seat in panel.seats}
    expected = Expected()
    if not any(drafts.values()):
        return expected
    rounds: list[dict[str, Any]] = [drafts]
    _abstain(expected, 0, drafts)
    gate = Count().add(drafts, weighed=is_gated)
    is_majority = len(gate.leaders) == 1 and gate.share > 0.5
    expected.agreement, expected.consensus = _agreement(drafts), is_majority
    if config["protocol"] == "debate" or (is_gated and not is_majority):
        expected.consensus = _debate(panel, rounds, expected)
    pooled = Count()
    for known in rounds:
        pooled.add(known, weighed=is_gated)
    expected.share, expected.counts = pooled.share, dict(pooled.counts)
    expected.answer = _chosen(panel, pooled.leaders, rounds[-1])
    return expected


def _debate(panel: Panel, rounds: list[dict[str, Any]], expected: Expected) -> bool:
    """Count round after round; whether one of them ended in a consensus."""
    for number in range(panel.config["rounds"]):
        before, now = rounds[-1], dict(rounds[-1])
        for seat in (seat for seat in panel.seats if before[seat]):
            refined = draft_in(settled(panel.said[seat, "refine"][number], is_vote))
            now[seat] = before[seat] if refined is None else refined
        rounds.append(now)
        _abstain(expected, number + 1, now)
        expected.agreement = agreement = _agreement(now)
        if panel.config["protocol"] == "gated" and not agreement:
            return False
        judged = settled(panel.said["judge", "evaluate"][number], lambda reply: _confidence(reply) is not None)
        confidence = _confidence(judged)
        if (
            min(agreement, 100 if confidence is None else confidence)
            >= panel.config["terminationCondition"]["threshold"]
        ):
            return True
    return False


def _confidence(reply: Any) -> float | None:
    plain = _json(reply)
    return plain.get("confidence") if isinstance(plain, dict) and plain.keys() <= {"confidence"} else None


def _agreement(drafts: Mapping[str, Any]) -> float:
    return 100 * Count().add(drafts, weighed=False).share


def _abstain(expected: Expected, number: int, drafts: Mapping[str, Any]) -> None:
    silent = {seat for seat, draft in drafts.items() if not draft or not vote_in(draft.get("answer", ""))}
    expected.abstained |= {(seat, number) for seat in silent}


def _chosen(panel: Panel, leaders: list[str], last: Mapping[str, Any]) -> str:
    if len(leaders) < 2:
        assert leaders or ("judge", "synthesise") not in panel.said
        return leaders[0] if leaders else ""

    def solution(reply: Any) -> str | None:
        plain = _json(reply)
        return vote_in(plain["answer"]) if isinstance(plain, dict) and "description" in plain else None

    reply = settled(panel.said["judge", "synthesise"][0], lambda reply: solution(reply) in leaders)
    answer = solution(reply)
    if answer is not None:
        return answer if answer in leaders else ""
    held = [(draft.get("confidence") or 0, vote_in(draft.get("answer", ""))) for draft in last.values() if draft]
    leading = [pair for pair in held if pair[1] in leaders]
    return max(leading, key=lambda pair: pair[0])[1] if leading else ""


def lost_critiques(panel: Panel) -> int:
    """How many of the critiques that could have come did not, over all rounds."""
    lost, asked = 0, Counter[str]()
    for call in (call for call in panel.shown if call.node == "critique"):
        plain = _json(panel.said[call.seat, "critique"][asked[call.seat]][-1])
        asked[call.seat] += 1
        reviews = plain.get("reviews", ()) if isinstance(plain, dict) else ()
        given = {review["label"] for review in reviews if review["text"].strip()}
        lost += len([label for label in call.labels() if label not in given])
    return lost


# the product


def debated(moot: Moot, panel: Panel) -> Ran:
    with debaters(panel.speak) as served:
        config = served.configure("c.json", panel.seats, **panel.config)
        return moot("debate", PROBLEM, *config, "--json", "--run-id", "till")


def check(moot: Moot, seed: int) -> None:
    panel = Panel(seed)
    ran = debated(moot, panel)
    expected, told = recount(panel), ran.json
    answer = (told["solution"] or {"answer": ""})["answer"]
    assert answer == expected.answer
    if expected.agreement is None:  # nobody is left: where the provider refused the last one, that is the cause
        assert ran.code in (1, 3)
    else:
        assert ran.code == (0 if expected.answer else 1)
    assert told["status"] == ("done" if expected.answer else "failed")
    assert told["agreement"] == (None if expected.agreement is None else pytest.approx(expected.agreement, abs=0.01))
    assert ("CONSENSUS_REACHED" in told["events"]) == expected.consensus
    assert {(known["agent"], known["round"]) for known in told["abstentions"]} == expected.abstained
    assert (told["votes"]["counts"], told["votes"]["share"]) == (
        expected.counts,
        pytest.approx(expected.share, abs=1e-4),
    )
    missing = re.findall(r"^(\d) of \d critiques are missing", "\n".join(call.words for call in panel.shown), re.M)
    assert sum(map(int, missing)) == lost_critiques(panel)


@pytest.mark.parametrize("seed", QUICK)
def test_a_random_closed_debate_reports_what_its_raw_replies_show(moot: Moot, seed: int) -> None:
    check(moot, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
def test_many_random_closed_debates_report_what_their_raw_replies_show(moot: Moot, seed: int) -> None:
    check(moot, seed)


def test_the_random_panels_have_what_panels_can_have(moot: Moot) -> None:
    """The generator comes to ties, abstentions, consensus, refusals and debates without an answer."""
    seen = Counter[str]()
    for seed in range(0, 240, 3):
        panel = Panel(seed + 1)  # votes, which need one reply of each seat and the judge
        for seat in panel.seats:
            call = Call(seat, "propose", "", {}, "")
            replies = [panel.speak(call)]
            if not (isinstance(replies[0], Fault) or is_vote(replies[0])):
                panel.speak(Call(seat, "propose", "", {}, "again"))
        count = Count().add({seat: draft_in(panel.said[seat, "propose"][0][-1]) for seat in panel.seats}, weighed=False)
        seen["tie"] += len(count.leaders) > 1
        seen["nobody"] += not count.leaders
        seen["abstention"] += sum(count.counts.values()) < len(panel.seats)
        seen["majority"] += count.share > 0.5
        seen["refusal"] += any(isinstance(said[0][-1], Fault) for said in panel.said.values())
    assert all(seen[name] for name in ("tie", "nobody", "abstention", "majority", "refusal")), seen
