-- name: make
-- the copy of records that another store has
CREATE TABLE IF NOT EXISTS records (
    collection TEXT NOT NULL,
    key        TEXT NOT NULL,
    version    INTEGER NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (collection, key)
) WITHOUT ROWID;

-- name: put
-- keep a record unless a newer version is there
INSERT INTO records (collection, key, version, body) VALUES (?, ?, ?, ?)
ON CONFLICT (collection, key) DO UPDATE SET version = excluded.version, body = excluded.body
WHERE excluded.version >= records.version;

-- name: all
-- everything that is there
SELECT collection, key, body, version FROM records ORDER BY collection, key;
