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
INSERT INTO runs (run, machine, record, queue, tenant, priority, seq, status, head, tip, seal, wake, owner, token, until)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?);

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
-- the entry that a command already has; the condition is that of the index
SELECT seq FROM entries
WHERE run = (SELECT number FROM runs WHERE run = ?) AND cause = ? AND NOT cause GLOB '[0-9]*.[0-9]*';

-- name: find_end
-- the entry that the end or a mark of an effect already has, behind the entry that wanted it
SELECT seq FROM entries WHERE run = (SELECT number FROM runs WHERE run = ?) AND cause = ? AND seq > ? ORDER BY seq;

-- name: take_back_messages
-- what was said from this place on counts no more where a run was retried from before it
DELETE FROM threads WHERE run = ? AND thread = ? AND start >= ?;

-- name: place_messages
-- where in a thread stands what an entry appends; a row that was damaged is put right
INSERT OR REPLACE INTO threads (run, thread, start, seq, seal) VALUES (?, ?, ?, ?, ?);

-- name: window
-- the entries that have the messages of a thread from one place up to another, and the seals before them
SELECT threads.start, threads.seal, entries.seq, entries.cause, entries.body, entries.seal, before.seal
FROM threads
LEFT JOIN entries ON entries.run = threads.run AND entries.seq = threads.seq
LEFT JOIN entries AS before ON before.run = threads.run AND before.seq = threads.seq - 1
WHERE threads.run = :run AND threads.thread = :thread AND threads.start < :end AND threads.start >= coalesce(
    (SELECT max(start) FROM threads WHERE run = :run AND thread = :thread AND start <= :start), :start)
ORDER BY threads.start DESC;

-- name: numbers
-- all runs, the oldest first, and how they began
SELECT number, run, record FROM runs ORDER BY number;

-- name: appending
-- the entries of a run that may append something
SELECT seq, cause, body, seal FROM entries
WHERE run = ? AND instr(body, CAST('"appends"' AS BLOB)) ORDER BY seq;

-- name: due
-- runs that want attention now and that nobody holds, or whose holder has not been heard of in time or is gone
-- (the higher priority first, and within it the tenants by turns)
SELECT run FROM (
    SELECT run, wake, priority, tenant, row_number() OVER (PARTITION BY tenant ORDER BY priority DESC, wake) AS turn
    FROM runs
    WHERE wake <= ? AND (owner IS NULL OR until NOT BETWEEN ? AND ? OR owner IN (SELECT value FROM json_each(?)))
        AND (? = '[]' OR queue IN (SELECT value FROM json_each(?)))
        AND (? = '[]' OR tenant IN (SELECT value FROM json_each(?)))
)
ORDER BY priority DESC, turn, tenant <= ?, tenant, wake LIMIT ?;

-- name: suspects
-- runs that want attention now and whose holder was lost, or others before it; how many in a row
SELECT run, crashes + (owner IS NOT NULL) FROM runs WHERE wake <= ? AND (owner IS NOT NULL OR crashes > 0);

-- name: forgive
-- count the crashes of a run anew
UPDATE runs SET crashes = 0 WHERE run = ? AND token = ?;

-- name: drop_turns
-- forget what began more than a minute ago, or by a clock that was ahead
DELETE FROM turns WHERE begun <= :since OR begun > :now;

-- name: take_turn
-- begin something, where not so much began within a minute already
INSERT INTO turns SELECT :name, :now WHERE (SELECT count(*) FROM turns WHERE name = :name) < :most;

-- name: first_turn
-- the one that has to be a minute ago before the next may begin
SELECT begun FROM turns WHERE name = :name ORDER BY begun DESC LIMIT 1 OFFSET :most - 1;

-- name: owners
-- who holds runs that want attention; those that wait for people are many, and nobody looks at them
SELECT DISTINCT owner FROM runs INDEXED BY runs_by_wake WHERE wake IS NOT NULL AND owner IS NOT NULL;

-- name: seq
-- the latest entry of a run
SELECT seq FROM runs WHERE run = ?;

-- name: stands
-- the latest entry of a run, and the seal of one of its own entries
SELECT runs.seq, (SELECT entries.seal FROM entries WHERE entries.run = runs.number AND entries.seq = ?)
FROM runs WHERE runs.run = ?;

-- name: seqs
-- the latest entries of all runs
SELECT run, seq FROM runs WHERE typeof(seq) = 'integer';

-- name: claim
-- hold a run whose lease is still the one that was seen; a holder that is gone counts as a crash
UPDATE runs SET crashes = crashes + (owner IS NOT NULL AND owner <> ?), owner = ?, token = token + 1, until = ?
WHERE run = ? AND token = ? AND (owner IS NULL OR until = ?)
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
DELETE FROM threads WHERE run = (SELECT number FROM runs WHERE run = :run);
DELETE FROM texts WHERE run = (SELECT number FROM runs WHERE run = :run);
DELETE FROM entries WHERE run = (SELECT number FROM runs WHERE run = :run);
DELETE FROM runs WHERE run = :run;

-- name: version
-- how often a record was written
SELECT version FROM records WHERE collection = ? AND key = ?;

-- name: write
-- keep a record over the version that was read; touches no row where it has another
UPDATE records SET body = ?, seal = ?, version = ? WHERE collection = ? AND key = ? AND version = ?;

-- name: write_new
-- keep a record for the first time; touches no row where there is one
INSERT OR IGNORE INTO records (body, seal, version, collection, key) VALUES (?, ?, ?, ?, ?);

-- name: send
-- keep for mirrors that a record was written
INSERT INTO outbox (body, seal, version, collection, key) VALUES (?, ?, ?, ?, ?);

-- name: record
-- the record with a key
SELECT collection, key, version, body, seal FROM records WHERE collection = ? AND key = ?;

-- name: records
-- the records of a collection from a key on
SELECT collection, key, version, body, seal FROM records WHERE collection = ? AND key >= ? ORDER BY key LIMIT ?;

-- name: records_between
-- the records of a collection from a key up to another
SELECT collection, key, version, body, seal FROM records
WHERE collection = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?;

-- name: outbox
-- what was written since a mirror was last told
SELECT number, collection, key, version, body, seal FROM outbox
WHERE number > coalesce((SELECT upto FROM mirrors WHERE mirror = ?), 0) ORDER BY number LIMIT ?;

-- name: mirrored
-- how far a mirror is; it never goes back
INSERT INTO mirrors (mirror, upto) VALUES (?, ?)
ON CONFLICT (mirror) DO UPDATE SET upto = max(upto, excluded.upto);

-- name: pack_entries
-- the journal of a run
SELECT seq, cause, body, seal FROM entries WHERE run = ? ORDER BY seq;

-- name: pack_texts
-- the long texts of a run
SELECT digest, CAST(body AS BLOB) FROM texts WHERE run = ? ORDER BY digest;

-- name: pack_pieces
-- where the messages of a run stand
SELECT thread, start, seq, seal FROM threads WHERE run = ? ORDER BY thread, start;

-- name: unpack_run
-- keep a run of another store; fails where its id is taken
INSERT INTO runs (run, machine, record, queue, tenant, priority, seq, status, head, tip, seal, wake, owner, token,
    until, crashes)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, 0.0, ?);

-- name: pack_records
-- all records
SELECT collection, key, version, body, seal FROM records ORDER BY collection, key;

-- name: pack_outbox
-- all that was ever written
SELECT number, collection, key, version, body, seal FROM outbox ORDER BY number;

-- name: pack_mirrors
-- how far each mirror is
SELECT mirror, upto FROM mirrors ORDER BY mirror;

-- name: rename
-- give the store another name
UPDATE store SET id = ?;

-- name: clear_records
-- forget all records
DELETE FROM records;

-- name: clear_outbox
-- forget what was written
DELETE FROM outbox;

-- name: clear_mirrors
-- forget how far mirrors are
DELETE FROM mirrors;

-- name: unpack_record
-- keep a record of another store
INSERT INTO records (collection, key, version, body, seal) VALUES (?, ?, ?, ?, ?);

-- name: unpack_outgoing
-- keep what another store has written
INSERT INTO outbox (number, collection, key, version, body, seal) VALUES (?, ?, ?, ?, ?, ?);

-- name: redact_head
-- put another head in the place of that of a run which has not moved since
UPDATE runs SET head = ?, seal = ? WHERE number = ? AND seq = ? AND tip = ?;

-- name: redact_entry
-- put another body in the place of an entry's
UPDATE entries SET body = ? WHERE run = ? AND seq = ?;

-- name: drop_text
-- delete a long text that nothing refers to any more
DELETE FROM texts WHERE run = ? AND digest = ?;

-- name: redact_record
-- put another body in the place of a record's, unless it was written again since
UPDATE records SET body = ?, seal = ? WHERE collection = ? AND key = ? AND version = ?;

-- name: redact_outgoing
-- the same in the order in which records were written
UPDATE outbox SET body = ?, seal = ? WHERE collection = ? AND key = ? AND version = ?;
