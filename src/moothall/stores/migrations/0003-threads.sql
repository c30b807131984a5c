-- where the messages of each thread stand: one row per entry and thread that it appends to, filled from the journals
CREATE TABLE threads (
    run    INTEGER NOT NULL,
    thread TEXT NOT NULL,
    start  INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    seal   BLOB NOT NULL,
    PRIMARY KEY (run, thread, start)
) WITHOUT ROWID;
-- the causes of commands; those of effects say themselves behind which entry they stand, and are far more
CREATE INDEX entries_by_cause ON entries (run, cause) WHERE NOT cause GLOB '[0-9]*.[0-9]*';
