"""Whatever is done to a store, an audit never calls it intact; and what nobody touched it never calls broken."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from moothall.stores.anchors import PLACES
from tests.cli.ran import Moot
from tests.lookback.gallery import ATTACKS, LIVE, RESTING, RUNS, Attack, Gallery

pytestmark = pytest.mark.slow

TIMES = 200


@pytest.fixture(autouse=True)
def _put_back(gallery: Gallery) -> Iterator[None]:
    yield
    gallery.put_back()


@pytest.mark.parametrize("run", RESTING)
def test_a_run_that_rests_and_that_nobody_touched_is_intact(gallery: Gallery, run: str) -> None:
    assert gallery.audited(run).verdict == "intact", gallery.audited(run).why


def test_of_a_run_that_was_killed_in_the_middle_nobody_can_tell(gallery: Gallery) -> None:
    assert gallery.audited(LIVE).verdict == "cannot tell"


@pytest.mark.parametrize("attack", ATTACKS, ids=[one.__name__ for one in ATTACKS])
def test_an_attack_is_found_wherever_it_hits(gallery: Gallery, attack: Attack, figure: list[str]) -> None:
    chance, found, named = Random(attack.__name__), Counter[str](), 0
    for _ in range(TIMES):
        run = chance.choice(RUNS)
        first = attack(gallery, chance, run)
        audit = gallery.audited(run)
        assert audit.verdict == "broken" or (run == LIVE and audit.verdict == "cannot tell"), (run, audit.why)
        if first is not None and audit.verdict == "broken" and (run != LIVE or audit.entry is not None):
            assert audit.entry == first, (run, audit.why)
            named += 1
        found[audit.verdict] += 1
        gallery.put_back()
    figure.append(f"{attack.__name__}: {TIMES} times, {dict(found)}, the first bad entry named {named} times")


def _cut_anchors(gallery: Gallery, chance: Random) -> None:
    kept = gallery.anchors[: chance.randrange(len(gallery.anchors))]
    gallery.anchor_file.write_bytes(kept)


@pytest.mark.parametrize("run", RUNS)
def test_with_less_than_all_anchors_an_audit_cannot_tell_or_is_sure_of_what_is_left(gallery: Gallery, run: str) -> None:
    chance = Random(run)
    whole = gallery.audited(run).verdict
    last = max(number for number, line in enumerate(gallery.anchors.splitlines()) if f'"{run}"'.encode() in line)
    for _ in range(40):
        _cut_anchors(gallery, chance)
        has_last = len(gallery.anchor_file.read_bytes().splitlines()) > last + 1
        assert gallery.audited(run).verdict == (whole if has_last else "cannot tell")
    gallery.anchor_file.write_bytes(b"")
    assert gallery.audited(run).verdict == "cannot tell"


def test_without_anchors_no_attack_makes_a_run_intact(gallery: Gallery, figure: list[str]) -> None:
    chance, found = Random(7), Counter[str]()
    for _ in range(TIMES):
        run, attack = chance.choice(RUNS), chance.choice(ATTACKS)
        if attack.__name__ in ("removed", "renamed", "lost_origin"):  # without anchors nobody knows that it was there
            continue
        attack(gallery, chance, run)
        gallery.anchor_file.write_bytes(b"")
        found[gallery.audited(run).verdict] += 1
        gallery.put_back()
    assert set(found) == {"broken", "cannot tell"}
    figure.append(f"attacks where the anchors were emptied: {dict(found)}")


@pytest.mark.parametrize("key", [b"", b"another key"], ids=["no key", "another key"])
@pytest.mark.parametrize("run", RUNS)
def test_with_another_key_or_none_nobody_can_tell(gallery: Gallery, run: str, key: bytes) -> None:
    assert gallery.audited(run, key).verdict == "cannot tell"


@pytest.mark.parametrize("key", [b"", b"another key"], ids=["no key", "another key"])
def test_with_another_key_or_none_no_attack_makes_a_run_intact(gallery: Gallery, key: bytes) -> None:
    chance = Random(8)
    for _ in range(TIMES):
        run, attack = chance.choice(RUNS), chance.choice(ATTACKS)
        attack(gallery, chance, run)
        assert gallery.audited(run, key).verdict != "intact"
        gallery.put_back()


def test_a_digest_that_was_kept_elsewhere_vouches_without_anchors(moot: Moot) -> None:
    moot("run", "works.py:WATCH", "lamp", "--run-id", "mine", "--quiet")
    digest = moot("audit", "mine", "--digest").out.strip()
    assert digest.startswith("1:")
    for file in Path("anchors").iterdir():
        file.unlink()
    assert moot("audit", "mine").code == 6
    vouched = moot("audit", "mine", "--against", digest)
    assert (vouched.code, "up to that of the digest, which is the latest" in vouched.out) == (0, True)
    moot("answer", "mine", "--no", "--quiet")
    for file in Path("anchors").iterdir():
        file.unlink()
    later = moot("audit", "mine", "--against", digest)
    assert (later.code, "cannot tell" in later.out) == (6, True)
    other = moot("audit", "mine", "--against", f"1:{'0' * 64}")
    assert (other.code, other.out) == (1, "mine: broken: entry 1, or one before it, is not that of the digest\n")
    beyond = moot("audit", "mine", "--against", f"99:{'0' * 64}", "--json")
    assert (beyond.code, beyond.json["verdict"], beyond.json["entry"]) == (1, "broken", 5)


def test_anchors_that_cannot_be_written_are_told_of_once_and_the_run_goes_on(
    moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MOOTHALL_ANCHORS", str(tmp_path / "file" / "below"))
    ran = moot("run", "works.py:WATCH", "lamp", "--run-id", "mine", "--quiet", "--json")
    assert (ran.code, ran.json["status"]) == (5, "waiting")
    [told] = [line for line in ran.err.splitlines() if "anchors" in line]
    assert told.startswith(f"the anchors {tmp_path / 'file' / 'below'}/")
    assert told.endswith(".jsonl cannot be written: Not a directory; runs go on, but audits cannot tell")
    assert moot("audit", "mine").code == 6


def test_the_worst_verdict_decides_the_exit_code(moot: Moot) -> None:
    for run in ("one", "two"):
        moot("run", "works.py:WATCH", run, "--run-id", run, "--quiet")
    assert [one["verdict"] for one in moot("audit", "--json").json] == ["intact", "intact"]
    assert moot("audit").code == 0
    anchors = next(file for file in Path("anchors").iterdir() if file.name != PLACES)
    anchors.write_text("\n".join(line for line in anchors.read_text().splitlines() if '"one"' not in line))
    assert moot("audit").code == 6
    moot("run", "works.py:WATCH", "three", "--run-id", "three", "--quiet")
    kept = anchors.read_text()
    moot("prune", "--days", "0", "--yes")
    anchors.write_text(kept.replace('"three"', '"four"'))
    audit = moot("audit")
    assert audit.code == 1
    assert "four: broken: it is gone, although the anchors know it" in audit.out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("audit", "nobody"), 1, "there is no run 'nobody'"),
        (("audit", "--digest"), 2, "name the run that the digest is of"),
        (("audit", "--against", "1:" + "00" * 32), 2, "name the run that the digest is of"),
        (("audit", "mine", "--against", "rubbish"), 2, "'rubbish' is not a digest"),
    ],
)
def test_wrong_use_of_an_audit_is_told(moot: Moot, arguments: tuple[str, ...], code: int, says: str) -> None:
    moot("run", "works.py:WATCH", "lamp", "--run-id", "mine", "--quiet")
    ran = moot(*arguments)
    assert (ran.code, says in ran.err) == (code, True), ran.err
