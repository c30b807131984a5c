-- name: tables
-- what the file holds so far
SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~';

-- name: schema
-- one row per run, and one per entry of its journal; a head is small and whole at every step
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS runs (
    run     TEXT PRIMARY KEY,
    machine TEXT NOT NULL,
    record  BLOB NOT NULL,
    seq     INTEGER NOT NULL,
    status  TEXT NOT NULL,
    head    BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS entries (
    run  TEXT NOT NULL,
    seq  INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, seq)
);
COMMIT;

-- name: columns
-- fails where tables of these names are not ours
SELECT runs.run, machine, record, runs.seq, status, head, entries.run, entries.seq, body FROM runs, entries LIMIT 0;

-- name: begin
-- keep a new run; fails where its id is taken
INSERT INTO runs (run, machine, record, seq, status, head) VALUES (?, ?, ?, ?, ?, ?);

-- name: move
-- keep the head after an entry; touches no row where another writer came first
UPDATE runs SET seq = ?, status = ?, head = ? WHERE run = ? AND seq = ?;

-- name: append
-- keep the entry itself
INSERT INTO entries (run, seq, body) VALUES (?, ?, ?);

-- name: load
-- one run by its id
SELECT record, head FROM runs WHERE run = ?;

-- name: runs
-- all runs, the newest first
SELECT record, head FROM runs ORDER BY rowid DESC;

-- name: entries
-- the journal of one run
SELECT body FROM entries WHERE run = ? ORDER BY seq;
