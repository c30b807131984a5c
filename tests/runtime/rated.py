"""Runs that share a record: each reads a rating, adds its own game to it, and reads again where another was quicker."""

from dataclasses import dataclass, replace

from moothall.kernel.effects import ReadRecords, WriteRecords
from moothall.kernel.events import Conflicted, RecordsRead, RecordsWritten, SharedRecord
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State, emitting

RATINGS, ANN = "ratings", "ann"
EMPTY = {"games": 0, "by": []}


@dataclass(frozen=True, slots=True)
class Game:
    """A game of a player, how often its result could not be entered, and the version that it has."""

    name: str = "game"
    player: str = ANN
    lost: int = 0
    version: int = 0


@emitting(ReadRecords)
def look(game: Game, _: object) -> ReadRecords:
    """Read the rating of the player."""
    return ReadRecords(RATINGS, game.player)


@emitting(WriteRecords)
def enter(game: Game, read: RecordsRead) -> WriteRecords:
    """Count one game more."""
    rating = read.records[0] if read.records else SharedRecord(RATINGS, game.player, EMPTY)
    value = {"games": rating.value["games"] + 1, "by": [*rating.value["by"], game.name][-2000:]}
    return WriteRecords((replace(rating, value=value),))


def count_lost(game: Game, conflicted: Conflicted) -> Game:
    return replace(game, lost=game.lost + 1)


def keep_version(game: Game, written: RecordsWritten) -> Game:
    return replace(game, version=written.versions[0])


RATED = Machine(
    "rated",
    data=Game,
    states=[
        State("looking", enter=look),
        State("entering"),
        Final("entered"),
    ],
    moves=[
        On("looking", RecordsRead, to="entering", do=enter),
        On("entering", Conflicted, to="looking", do=count_lost),
        On("entering", RecordsWritten, to="entered", do=keep_version),
    ],
)

FIRST = WriteRecords((SharedRecord(RATINGS, ANN, {"games": 1, "by": ["first"]}),))
RATED_TWICE = Machine(
    "rated twice",
    data=Game,
    states=[
        State("claiming", enter=FIRST),
        State("claiming_again", enter=FIRST),
        State("looking", enter=look),
        State("entering"),
        Final("entered"),
    ],
    moves=[
        On("claiming", RecordsWritten, to="claiming_again"),
        On("claiming_again", Conflicted, to="looking", do=count_lost),
        On("looking", RecordsRead, to="entering", do=enter),
        On("entering", RecordsWritten, to="entered", do=keep_version),
    ],
)
