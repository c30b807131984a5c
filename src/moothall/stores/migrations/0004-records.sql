-- what outlives runs: one row per record, one per time that it was written, and how far each mirror is
CREATE TABLE records (
    collection TEXT NOT NULL,
    key        TEXT NOT NULL,
    version    INTEGER NOT NULL,
    body       BLOB NOT NULL,
    seal       BLOB NOT NULL,
    PRIMARY KEY (collection, key)
) WITHOUT ROWID;
CREATE TABLE outbox (
    number     INTEGER PRIMARY KEY,
    collection TEXT NOT NULL,
    key        TEXT NOT NULL,
    version    INTEGER NOT NULL,
    body       BLOB NOT NULL,
    seal       BLOB NOT NULL
);
CREATE TABLE mirrors (
    mirror TEXT NOT NULL PRIMARY KEY,
    upto   INTEGER NOT NULL
) WITHOUT ROWID;
