-- name: tables
-- what the file holds so far
SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~';

-- name: columns
-- fails where tables of these names are not ours
SELECT number, runs.run, machine, record, runs.seq, status, head, tip, runs.seal, wake, owner, token, until, crashes,
    entries.run, entries.seq, cause, entries.body, entries.seal, texts.run, digest, texts.body
FROM runs, entries, texts LIMIT 0;

-- name: name
-- the name of the store
SELECT id FROM store;

-- name: begin
-- keep a new run, held by whoever began it; fails where its id is taken
INSERT INTO runs (run, machine, record, seq, status, head, tip, seal, wake, owner, token, until)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?);

-- name: move
-- keep the head after an entry; touches no row where another writer came first or the lease was lost
UPDATE runs SET seq = ?, status = ?, head = ?, tip = ?, seal = ?, owner = ?, token = ?, until = ?, crashes = 0
WHERE number = ? AND seq = ? AND tip = ? AND token = ?;

-- name: wake
-- when the run wants attention next, where that has changed: an index is costly to write
UPDATE runs SET wake = ? WHERE number = ?;

-- name: tell
-- the same from outside, by someone who does not hold the run
UPDATE runs SET seq = ?, status = ?, head = ?, tip = ?, seal = ?, wake = ?
WHERE number = ? AND seq = ? AND tip = ?;

-- name: append
-- keep the entry itself
INSERT INTO entries (run, seq, cause, body, seal) VALUES (?, ?, ?, ?, ?);

-- name: keep
-- keep a long text once; one that was damaged is put right
INSERT INTO texts (run, digest, body) VALUES (?, ?, ?)
ON CONFLICT (run, digest) DO UPDATE SET body = excluded.body WHERE body IS NOT excluded.body;

-- name: text
-- a long text
SELECT CAST(body AS BLOB) FROM texts WHERE run = ? AND digest = ?;

-- name: load
-- one run by its id
SELECT number, run, machine, record, seq, status, head, tip, seal, wake, owner, token, until, crashes
FROM runs WHERE run = ?;

-- name: astray
-- whether a run is there although its index does not know it
SELECT number FROM runs NOT INDEXED WHERE run = ?;

-- name: place
-- the number of a run, its latest entry and the seal of that, when it wants attention, and how it began
SELECT number, seq, tip, wake, record FROM runs WHERE run = ?;

-- name: runs
-- all runs, the newest first
SELECT number, run, machine, record, seq, status, head, tip, seal, wake, owner, token, until, crashes
FROM runs ORDER BY number DESC;

-- name: entries
-- the latest entry that a run should have, and its journal from one entry to another
SELECT runs.seq, entries.seq, entries.cause, entries.body, entries.seal
FROM runs LEFT JOIN entries ON entries.run = runs.number AND entries.seq BETWEEN ? AND ?
WHERE runs.run = ? ORDER BY entries.seq;

-- name: find
-- the entry that a cause already has
SELECT seq FROM entries WHERE run = (SELECT number FROM runs WHERE run = ?) AND cause = ?;

-- name: due
-- runs that want attention now and that nobody holds, or whose holder has not been heard of in time or is gone
SELECT run FROM runs
WHERE wake <= ? AND (owner IS NULL OR until NOT BETWEEN ? AND ? OR owner IN (SELECT value FROM json_each(?)))
ORDER BY wake LIMIT ?;

-- name: suspects
-- runs that want attention now and whose holder was lost, or others before it; how many in a row
SELECT run, crashes + (owner IS NOT NULL) FROM runs WHERE wake <= ? AND (owner IS NOT NULL OR crashes > 0);

-- name: forgive
-- count the crashes of a run anew
UPDATE runs SET crashes = 0 WHERE run = ? AND token = ?;

-- name: owners
-- who holds runs that want attention; those that wait for people are many, and nobody looks at them
SELECT DISTINCT owner FROM runs INDEXED BY runs_by_wake WHERE wake IS NOT NULL AND owner IS NOT NULL;

-- name: seq
-- the latest entry of a run
SELECT seq FROM runs WHERE run = ?;

-- name: seqs
-- the latest entries of all runs
SELECT run, seq FROM runs WHERE typeof(seq) = 'integer';

-- name: claim
-- hold a run whose lease is still the one that was seen; a holder that is gone counts as a crash
UPDATE runs SET crashes = crashes + (owner IS NOT NULL AND owner <> ?), owner = ?, token = token + 1, until = ?
WHERE run = ? AND token = ?
RETURNING token, crashes;

-- name: renew
-- be heard of in time
UPDATE runs SET until = ? WHERE run = ? AND token = ?;

-- name: release
-- let go of a run
UPDATE runs SET owner = NULL WHERE run = ? AND token = ?;

-- name: repair
-- put a head back that was made anew from the journal
UPDATE runs SET head = ?, seal = ?, tip = ?, seq = ?, status = ?, wake = ? WHERE run = ?;

-- name: set_aside
-- keep workers away from a run
UPDATE runs SET status = ?, wake = NULL, owner = NULL, token = token + 1 WHERE run = ?;

-- name: take_back
-- let workers have a run again that was set aside
UPDATE runs SET status = 'live', wake = 0, crashes = 0 WHERE substr(status, 1, length(?)) = ? AND run = ?;

-- name: forget
-- delete a run with all that is its own
DELETE FROM texts WHERE run = (SELECT number FROM runs WHERE run = :run);
DELETE FROM entries WHERE run = (SELECT number FROM runs WHERE run = :run);
DELETE FROM runs WHERE run = :run;
