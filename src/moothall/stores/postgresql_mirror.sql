-- name: make
-- the copy of records that another store has
CREATE SCHEMA IF NOT EXISTS moothall;
CREATE TABLE IF NOT EXISTS moothall.mirror (
    collection text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    body       json NOT NULL,
    PRIMARY KEY (collection, key)
);

-- name: put
-- keep records, each unless a newer version is there
INSERT INTO moothall.mirror (collection, key, version, body)
SELECT new.* FROM unnest($1::text[], $2::text[], $3::bigint[], $4::json[]) AS new (collection, key, version, body)
ON CONFLICT (collection, key) DO UPDATE SET version = excluded.version, body = excluded.body
WHERE excluded.version >= mirror.version;

-- name: all
-- everything that is there
SELECT collection, key, body, version FROM moothall.mirror ORDER BY collection, key;
