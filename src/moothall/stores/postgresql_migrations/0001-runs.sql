-- one row per run, one per entry of its journal, one per long text; names that may hold any character are bytes
CREATE TABLE store (id text NOT NULL);
INSERT INTO store SELECT substr(replace(gen_random_uuid()::text, '-', ''), 1, 16);
CREATE TABLE runs (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run     text COLLATE "C" NOT NULL UNIQUE,
    machine text NOT NULL,
    record  bytea NOT NULL,
    seq     bigint NOT NULL,
    status  text NOT NULL,
    head    bytea NOT NULL,
    tip     bytea NOT NULL,
    seal    bytea NOT NULL,
    wake    double precision,
    owner   text,
    token   bigint NOT NULL,
    until   double precision NOT NULL,
    crashes bigint NOT NULL DEFAULT 0,
    queue   text NOT NULL DEFAULT '',
    tenant  text NOT NULL DEFAULT '',
    priority bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX runs_by_wake ON runs (wake) WHERE wake IS NOT NULL;
CREATE TABLE entries (
    run     bigint NOT NULL,
    seq     bigint NOT NULL,
    cause   bytea NOT NULL,
    command boolean NOT NULL,
    body    bytea NOT NULL,
    seal    bytea NOT NULL,
    PRIMARY KEY (run, seq)
);
-- the causes of commands; those of effects say themselves behind which entry they stand, and are far more
CREATE INDEX entries_by_cause ON entries (run, cause) WHERE command;
CREATE TABLE texts (
    run    bigint NOT NULL,
    digest bytea NOT NULL,
    body   bytea NOT NULL,
    PRIMARY KEY (run, digest)
);
-- where the messages of each thread stand: one row per entry and thread that it appends to
CREATE TABLE threads (
    run    bigint NOT NULL,
    thread bytea NOT NULL,
    start  bigint NOT NULL,
    seq    bigint NOT NULL,
    seal   bytea NOT NULL,
    PRIMARY KEY (run, thread, start)
);
-- what outlives runs: one row per record, one per time that it was written, and how far each mirror is
CREATE TABLE records (
    collection bytea NOT NULL,
    key        bytea NOT NULL,
    version    bigint NOT NULL,
    body       bytea NOT NULL,
    seal       bytea NOT NULL,
    PRIMARY KEY (collection, key)
);
CREATE TABLE outbox (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection bytea NOT NULL,
    key        bytea NOT NULL,
    version    bigint NOT NULL,
    body       bytea NOT NULL,
    seal       bytea NOT NULL
);
CREATE TABLE mirrors (
    mirror text PRIMARY KEY,
    upto   bigint NOT NULL
);
