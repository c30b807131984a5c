-- one row per run, one per entry of its journal, one per long text; a head is small and whole at every step
CREATE TABLE runs (
    number  INTEGER PRIMARY KEY,
    run     TEXT NOT NULL UNIQUE,
    machine TEXT NOT NULL,
    record  BLOB NOT NULL,
    seq     INTEGER NOT NULL,
    status  TEXT NOT NULL,
    head    BLOB NOT NULL,
    tip     BLOB NOT NULL,
    seal    BLOB NOT NULL,
    wake    REAL,
    owner   TEXT,
    token   INTEGER NOT NULL,
    until   REAL NOT NULL,
    crashes INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX runs_by_wake ON runs (wake) WHERE wake IS NOT NULL;
CREATE TABLE entries (
    run   INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    cause TEXT NOT NULL,
    body  BLOB NOT NULL,
    seal  BLOB NOT NULL,
    PRIMARY KEY (run, seq)
);
CREATE TABLE texts (
    run    INTEGER NOT NULL,
    digest BLOB NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (run, digest)
);
