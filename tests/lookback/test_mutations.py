"""One changed byte in any entry is found: by reading, by `moot replay` or by `moot audit`."""

from collections import Counter
from random import Random
from typing import Any

import orjson
import pytest

from moothall.app.runs.replay import replay
from moothall.errors import MoothallError
from moothall.stores.seals import Sealing
from moothall.stores.sqlite import SqliteStore
from tests.lookback.gallery import LIVE, RUNS, Gallery, changed, flipped, resealed

pytestmark = pytest.mark.slow

MUTATIONS = 1_000
PARTS = ("event", "from", "to", "taken", "effects", "appends", "status")


def moved(gallery: Gallery, chance: Random, run: str) -> None:
    """Another number for an entry, which may be one that there is already."""
    number, seqs = gallery.number(run), gallery.seqs(run)
    seq = chance.choice(seqs)
    other = seq ^ (1 << chance.randrange(6))
    gallery.db.execute("DELETE FROM entries WHERE run = ? AND seq = ?", (number, other))
    gallery.db.execute("UPDATE entries SET seq = ? WHERE run = ? AND seq = ?", (other, number, seq))


def rewritten(gallery: Gallery, chance: Random, run: str) -> None:
    """Another content of one part, sealed anew from there on: without a key, with a guess, or with the key itself."""
    seq = chance.choice(gallery.seqs(run))
    row = (gallery.number(run), seq)
    (body,) = gallery.db.execute("SELECT body FROM entries WHERE run = ? AND seq = ?", row).fetchone()
    entry = changed(orjson.loads(body), chance, PARTS)
    gallery.db.execute("UPDATE entries SET body = ? WHERE run = ? AND seq = ?", (orjson.dumps(entry), *row))
    resealed(gallery, run, seq, Sealing(chance.choice((b"", b"a guess", gallery.key))))


async def found_by(store: SqliteStore, gallery: Gallery, run: str) -> str:
    """Who finds that something is wrong with a run; "" where nobody does."""
    store._places.clear()
    try:
        await store.entries(run)
    except MoothallError:
        return "reading"
    try:
        replayed: Any = await replay(store, run)
    except MoothallError:
        return "replay"
    if replayed.difference is not None:
        return "replay"
    return "audit" if (await store.audit(run)).verdict == "broken" else ""


@pytest.mark.anyio
async def test_one_change_in_any_entry_is_found(gallery: Gallery, figure: list[str]) -> None:
    chance, found = Random(2026), Counter[str]()
    store = SqliteStore(gallery.folder / "moothall.db", gallery.key, anchors=gallery.folder / "anchors")
    assert [run for run in RUNS if await found_by(store, gallery, run)] == []
    for _ in range(MUTATIONS):
        run = chance.choice(RUNS)
        change = chance.choice((flipped, flipped, moved, rewritten, rewritten))
        change(gallery, chance, run)
        by = await found_by(store, gallery, run)
        assert by, f"nobody finds what {change.__name__} did to {run}"
        found[by] += 1
        gallery.put_back()
    store.close()
    figure.append(f"{MUTATIONS} mutations, found by {dict(found)}")


@pytest.mark.anyio
async def test_a_replay_alone_finds_what_is_sealed_anew_with_the_key_where_no_anchor_vouches(gallery: Gallery) -> None:
    store = SqliteStore(gallery.folder / "moothall.db", gallery.key, anchors=gallery.folder / "anchors")
    chance = Random(3)
    for part in PARTS:
        for seq in gallery.seqs(LIVE):
            row = (gallery.number(LIVE), seq)
            (body,) = gallery.db.execute("SELECT body FROM entries WHERE run = ? AND seq = ?", row).fetchone()
            entry = changed(orjson.loads(body), chance, (part,))
            gallery.db.execute("UPDATE entries SET body = ? WHERE run = ? AND seq = ?", (orjson.dumps(entry), *row))
            resealed(gallery, LIVE, seq, Sealing(gallery.key))
            assert await found_by(store, gallery, LIVE) == "replay", (part, seq)
            gallery.put_back()
    store.close()
