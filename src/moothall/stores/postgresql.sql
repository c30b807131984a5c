-- name: name
-- the name of the store
SELECT id FROM store;

-- name: engine
-- who pumps the runs of the store
SELECT engine FROM store;

-- name: set_engine
-- have the runs of the store pumped by another engine, unless somebody else was quicker
UPDATE store SET engine = $1 WHERE engine = $2 RETURNING engine;

-- name: begin
-- keep a new run with its first entry, held by whoever began it; gives no row where its id is taken
WITH begun AS (
    INSERT INTO runs (run, machine, record, seq, status, head, tip, seal, wake, owner, token, until,
        queue, tenant, priority)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, $11, $21, $22, $23) ON CONFLICT (run) DO NOTHING RETURNING number
), appended AS (
    INSERT INTO entries (run, seq, cause, command, body, seal) SELECT number, $4, $12, $13, $14, $7 FROM begun
), kept AS (
    INSERT INTO texts (run, digest, body)
    SELECT number, new.digest, new.body FROM begun, unnest($15::bytea[], $16::bytea[]) AS new (digest, body)
), placed AS (
    INSERT INTO threads (run, thread, start, seq, seal)
    SELECT number, new.* FROM begun,
        unnest($17::bytea[], $18::bigint[], $19::bigint[], $20::bytea[]) AS new (thread, start, seq, seal)
)
SELECT number, CASE WHEN $10::text IS NULL AND $9 IS NOT NULL THEN pg_notify('moothall', $1) END FROM begun;

-- name: move
-- keep an entry and the head after it; touches no row where another writer came first or the lease was lost. Who does
-- not hold the run ($4 is null) leaves its lease as it is, and whoever holds it or may take it is told
WITH moved AS (
    UPDATE runs SET seq = $5, status = $6, head = $7, tip = $8, seal = $9, wake = $10,
        owner = CASE WHEN $4::bigint IS NULL THEN owner ELSE $11 END,
        token = coalesce($12, token), until = coalesce($13, until),
        crashes = CASE WHEN $4::bigint IS NULL THEN crashes ELSE 0 END
    WHERE number = $1 AND seq = $2 AND tip = $3 AND ($4::bigint IS NULL OR token = $4)
    RETURNING number, CASE WHEN $4::bigint IS NULL THEN pg_notify('moothall', run) END
)
INSERT INTO entries (run, seq, cause, command, body, seal)
SELECT number, $5, $14, $15, $16, $8 FROM moved RETURNING 1;

-- name: move_many
-- the same for each of several runs; gives the places of those that were kept
WITH moved AS (
    UPDATE runs SET seq = new.seq, status = new.status, head = new.head, tip = new.tip, seal = new.seal, wake = new.wake,
        owner = CASE WHEN new.held IS NULL THEN runs.owner ELSE new.owner END,
        token = coalesce(new.token, runs.token), until = coalesce(new.until, runs.until),
        crashes = CASE WHEN new.held IS NULL THEN runs.crashes ELSE 0 END
    FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[],
            $5::bigint[], $6::text[], $7::bytea[], $8::bytea[], $9::bytea[], $10::double precision[],
            $11::text[], $12::bigint[], $13::double precision[], $14::bytea[], $15::boolean[], $16::bytea[])
        WITH ORDINALITY AS new (number, was, behind, held, seq, status, head, tip, seal, wake, owner, token, until,
            cause, command, body, place)
    WHERE runs.number = new.number AND runs.seq = new.was AND runs.tip = new.behind
        AND (new.held IS NULL OR runs.token = new.held)
    RETURNING runs.number, runs.run, new.held, new.seq, new.cause, new.command, new.body, new.tip, new.place
), appended AS (
    INSERT INTO entries (run, seq, cause, command, body, seal)
    SELECT number, seq, cause, command, body, tip FROM moved
)
SELECT place, CASE WHEN held IS NULL THEN pg_notify('moothall', run) END FROM moved;

-- name: keep
-- keep long texts once; one that was damaged is put right
INSERT INTO texts (run, digest, body)
SELECT $1, new.digest, new.body FROM unnest($2::bytea[], $3::bytea[]) AS new (digest, body)
ON CONFLICT (run, digest) DO UPDATE SET body = excluded.body WHERE texts.body <> excluded.body;

-- name: move_all
-- the same with several entries of a run, with long texts, and with what they append to threads (where a run was retried
-- from before something that was said, that counts no more); each names the place of its run
WITH moved AS (
    UPDATE runs SET seq = new.seq, status = new.status, head = new.head, tip = new.tip, seal = new.seal, wake = new.wake,
        owner = CASE WHEN new.held IS NULL THEN runs.owner ELSE new.owner END,
        token = coalesce(new.token, runs.token), until = coalesce(new.until, runs.until),
        crashes = CASE WHEN new.held IS NULL THEN runs.crashes ELSE 0 END
    FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[],
            $5::bigint[], $6::text[], $7::bytea[], $8::bytea[], $9::bytea[], $10::double precision[],
            $11::text[], $12::bigint[], $13::double precision[])
        WITH ORDINALITY AS new (number, was, behind, held, seq, status, head, tip, seal, wake, owner, token, until, place)
    WHERE runs.number = new.number AND runs.seq = new.was AND runs.tip = new.behind
        AND (new.held IS NULL OR runs.token = new.held)
    RETURNING runs.number, runs.run, new.held, new.place
), appended AS (
    INSERT INTO entries (run, seq, cause, command, body, seal)
    SELECT number, new.seq, new.cause, new.command, new.body, new.seal
    FROM unnest($14::bigint[], $15::bigint[], $16::bytea[], $17::boolean[], $18::bytea[], $19::bytea[])
        AS new (place, seq, cause, command, body, seal) JOIN moved USING (place)
), kept AS (
    INSERT INTO texts (run, digest, body)
    SELECT number, new.digest, new.body
    FROM unnest($20::bigint[], $21::bytea[], $22::bytea[]) AS new (place, digest, body) JOIN moved USING (place)
    ON CONFLICT (run, digest) DO UPDATE SET body = excluded.body WHERE texts.body <> excluded.body
), pieces AS (
    SELECT number, new.thread, new.start, new.seq, new.seal
    FROM unnest($23::bigint[], $24::bytea[], $25::bigint[], $26::bigint[], $27::bytea[])
        AS new (place, thread, start, seq, seal) JOIN moved USING (place)
), taken_back AS (
    DELETE FROM threads USING (SELECT number, thread, min(start) AS start FROM pieces GROUP BY number, thread) AS first
    WHERE threads.run = first.number AND threads.thread = first.thread AND threads.start > first.start
        AND (threads.run, threads.thread, threads.start) NOT IN (SELECT number, thread, start FROM pieces)
), placed AS (
    INSERT INTO threads (run, thread, start, seq, seal) SELECT * FROM pieces
    ON CONFLICT (run, thread, start) DO UPDATE SET seq = excluded.seq, seal = excluded.seal
)
SELECT place, CASE WHEN held IS NULL THEN pg_notify('moothall', run) END FROM moved;

-- name: texts
-- long texts by their digests
SELECT digest, body FROM texts WHERE run = $1 AND digest = ANY($2::bytea[]);

-- name: load
-- one run by its id
SELECT number, run, machine, record, seq, status, head, tip, seal, wake, owner, token, until, crashes
FROM runs WHERE run = $1;

-- name: runs
-- all runs, the newest first
SELECT number, run, machine, record, seq, status, head, tip, seal, wake, owner, token, until, crashes
FROM runs ORDER BY number DESC;

-- name: texts_of_all
-- long texts of many runs, by their digests
SELECT run, digest, body FROM texts
WHERE (run, digest) IN (SELECT * FROM unnest($1::bigint[], $2::bytea[]));

-- name: entries
-- the journal of a run from one entry to another
SELECT seq, cause, body, seal FROM entries
WHERE run = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq;

-- name: find
-- the entry that a command already has
SELECT seq FROM entries WHERE run = $1 AND cause = $2 AND command;

-- name: find_end
-- the entry that the end or a mark of an effect already has, behind the entry that wanted it
SELECT seq FROM entries WHERE run = $1 AND cause = $2 AND seq > $3 ORDER BY seq;

-- name: window
-- the entries that have the messages of a thread from one place up to another, and the seals before them
SELECT threads.start, threads.seal AS sign, entries.seq, entries.cause, entries.body, entries.seal, before.seal AS prior
FROM threads
LEFT JOIN entries ON entries.run = threads.run AND entries.seq = threads.seq
LEFT JOIN entries AS before ON before.run = threads.run AND before.seq = threads.seq - 1
WHERE threads.run = $1 AND threads.thread = $2 AND threads.start < $4 AND threads.start >= coalesce(
    (SELECT max(start) FROM threads WHERE run = $1 AND thread = $2 AND start <= $3), $3)
ORDER BY threads.start DESC;

-- name: due
-- runs that want attention now and that nobody holds, or whose holder has not been heard of in time or is gone
-- (the higher priority first, and within it the tenants by turns)
SELECT run FROM (
    SELECT run, wake, priority, tenant, row_number() OVER (PARTITION BY tenant ORDER BY priority DESC, wake, number) AS turn
    FROM runs
    WHERE wake <= $1 AND (owner IS NULL OR until NOT BETWEEN $1 AND $2 OR owner = ANY($3::text[]))
        AND ($5::text[] = '{}' OR queue = ANY($5)) AND ($6::text[] = '{}' OR tenant = ANY($6))
) AS waiting
ORDER BY priority DESC, turn, tenant <= $7, tenant, wake LIMIT $4;

-- name: suspects
-- runs that want attention now and whose holder was lost, or others before it; how many in a row
SELECT run, crashes + (owner IS NOT NULL)::int FROM runs WHERE wake <= $1 AND (owner IS NOT NULL OR crashes > 0);

-- name: take_turn
-- begin something now, by the clock of the server; gives no row where so much began within a minute already
INSERT INTO turns VALUES ($1, ARRAY[extract(epoch FROM clock_timestamp())])
ON CONFLICT (name) DO UPDATE
SET begun = (turns.begun || excluded.begun)[greatest(cardinality(turns.begun) + 2 - $2, 1):]
WHERE cardinality(turns.begun) < $2 OR turns.begun[cardinality(turns.begun) + 1 - $2] <= excluded.begun[1] - $3
RETURNING 0.0;

-- name: first_turn
-- how long it takes until the next may begin, in seconds
SELECT greatest(begun[cardinality(begun) + 1 - $2] + $3 - extract(epoch FROM clock_timestamp())::float8, 0.001)
FROM turns WHERE name = $1;

-- name: owners
-- who holds runs that want attention; those that wait for people are many, and nobody looks at them
SELECT DISTINCT owner FROM runs WHERE wake IS NOT NULL AND owner IS NOT NULL;

-- name: next_wake
-- when the next run wants attention that does not want it yet
SELECT min(wake) FROM runs WHERE wake > $1;

-- name: seq
-- the latest entry of a run
SELECT seq FROM runs WHERE run = $1;

-- name: seqs
-- the latest entries of all runs
SELECT run, seq FROM runs;

-- name: stands
-- where a run stands, and who holds it
SELECT seq, tip, owner, token, until, crashes FROM runs WHERE run = $1;

-- name: claim
-- hold a run whose lease is still the one that was seen; a holder that is gone counts as a crash
UPDATE runs SET crashes = crashes + (owner IS NOT NULL AND owner <> $1)::int, owner = $1, token = token + 1, until = $2
WHERE run = $3 AND token = $4 AND (owner IS NULL OR until = $5)
RETURNING token, crashes;

-- name: renew
-- be heard of in time
UPDATE runs SET until = $1 WHERE run = $2 AND token = $3 RETURNING number;

-- name: release
-- let go of a run; whoever may take it is told
UPDATE runs SET owner = NULL WHERE run = $1 AND token = $2
RETURNING CASE WHEN wake IS NOT NULL THEN pg_notify('moothall', run) END;

-- name: forgive
-- count the crashes of a run anew
UPDATE runs SET crashes = 0 WHERE run = $1 AND token = $2;

-- name: repair
-- put a head back that was made anew from the journal
UPDATE runs SET head = $1, seal = $2, tip = $3, seq = $4, status = $5, wake = $6 WHERE run = $7;

-- name: set_aside
-- keep workers away from a run
UPDATE runs SET status = $1, wake = NULL, owner = NULL, token = token + 1 WHERE run = $2;

-- name: take_back
-- let workers have a run again that was set aside
UPDATE runs SET status = 'live', wake = 0, crashes = 0 WHERE starts_with(status, $1) AND run = $2
RETURNING pg_notify('moothall', run);

-- name: forget
-- delete a run with all that is its own
WITH gone AS (DELETE FROM runs WHERE run = $1 RETURNING number),
    threads_gone AS (DELETE FROM threads USING gone WHERE threads.run = gone.number),
    texts_gone AS (DELETE FROM texts USING gone WHERE texts.run = gone.number)
DELETE FROM entries USING gone WHERE entries.run = gone.number;

-- name: versions
-- how often records were written; nobody else writes them until this transaction has ended
SELECT collection, key, version FROM records
WHERE (collection, key) IN (SELECT * FROM unnest($1::bytea[], $2::bytea[])) ORDER BY collection, key FOR UPDATE;

-- name: write
-- keep a record over the version that was read; touches no row where it has another
INSERT INTO records (collection, key, version, body, seal) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (collection, key) DO UPDATE SET version = excluded.version, body = excluded.body, seal = excluded.seal
WHERE records.version = excluded.version - 1 RETURNING version;

-- name: order_outbox
-- the numbers of the outbox are to be seen in their order: who writes there waits for the one before
LOCK TABLE outbox IN EXCLUSIVE MODE;

-- name: send
-- keep for mirrors that a record was written
INSERT INTO outbox (collection, key, version, body, seal) VALUES ($1, $2, $3, $4, $5);

-- name: record
-- the record with a key
SELECT collection, key, version, body, seal FROM records WHERE collection = $1 AND key = $2;

-- name: records
-- the records of a collection from a key on
SELECT collection, key, version, body, seal FROM records WHERE collection = $1 AND key >= $2 ORDER BY key LIMIT $3;

-- name: records_between
-- the records of a collection from a key up to another
SELECT collection, key, version, body, seal FROM records
WHERE collection = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4;

-- name: outbox
-- what was written since a mirror was last told
SELECT number, collection, key, version, body, seal FROM outbox
WHERE number > coalesce((SELECT upto FROM mirrors WHERE mirror = $1), 0) ORDER BY number LIMIT $2;

-- name: mirrored
-- how far a mirror is; it never goes back
INSERT INTO mirrors (mirror, upto) VALUES ($1, $2)
ON CONFLICT (mirror) DO UPDATE SET upto = greatest(mirrors.upto, excluded.upto);

-- name: clock
-- what time the server has
SELECT extract(epoch FROM clock_timestamp())::double precision;

-- name: pack_texts
-- the long texts of a run
SELECT digest, body FROM texts WHERE run = $1 ORDER BY digest;

-- name: pack_pieces
-- where the messages of a run stand
SELECT thread, start, seq, seal FROM threads WHERE run = $1 ORDER BY thread, start;

-- name: unpack_run
-- keep a run of another store; gives no row where its id is taken
WITH begun AS (
    INSERT INTO runs (run, machine, record, seq, status, head, tip, seal, wake, owner, token, until, crashes,
        queue, tenant, priority)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, NULL, $10, 0, $11, $23, $24, $25) ON CONFLICT (run) DO NOTHING RETURNING number
), appended AS (
    INSERT INTO entries (run, seq, cause, command, body, seal)
    SELECT number, new.* FROM begun, unnest($12::bigint[], $13::bytea[], $14::boolean[], $15::bytea[], $16::bytea[])
        AS new (seq, cause, command, body, seal)
), kept AS (
    INSERT INTO texts (run, digest, body)
    SELECT number, new.* FROM begun, unnest($17::bytea[], $18::bytea[]) AS new (digest, body)
), placed AS (
    INSERT INTO threads (run, thread, start, seq, seal)
    SELECT number, new.* FROM begun,
        unnest($19::bytea[], $20::bigint[], $21::bigint[], $22::bytea[]) AS new (thread, start, seq, seal)
)
SELECT number FROM begun;

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
UPDATE store SET id = $1;

-- name: clear_records
-- forget all records
DELETE FROM records;

-- name: clear_outbox
-- forget what was written
DELETE FROM outbox;

-- name: clear_mirrors
-- forget how far mirrors are
DELETE FROM mirrors;

-- name: unpack_records
-- keep records of another store
INSERT INTO records (collection, key, version, body, seal)
SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[], $5::bytea[]);

-- name: unpack_outbox
-- keep the outbox of another store
INSERT INTO outbox (number, collection, key, version, body, seal) OVERRIDING SYSTEM VALUE
SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[], $6::bytea[]);

-- name: number_outbox
-- go on behind the greatest number that is taken
SELECT setval(pg_get_serial_sequence('outbox', 'number'), (SELECT coalesce(max(number), 0) + 1 FROM outbox), false);

-- name: unpack_mirrors
-- keep how far the mirrors of another store are
INSERT INTO mirrors (mirror, upto) SELECT * FROM unnest($1::text[], $2::bigint[]);

-- name: redact_head
-- put another head in the place of that of a run which has not moved since
UPDATE runs SET head = $1, seal = $2 WHERE number = $3 AND seq = $4 AND tip = $5 RETURNING number;

-- name: redact_entries
-- put other bodies in the place of those of entries
UPDATE entries SET body = new.body FROM unnest($2::bigint[], $3::bytea[]) AS new (seq, body)
WHERE entries.run = $1 AND entries.seq = new.seq;

-- name: drop_texts
-- delete the long texts of a run but for those that it still refers to
DELETE FROM texts WHERE run = $1 AND digest <> ALL($2::bytea[]);

-- name: redact_record
-- put another body in the place of a record's, unless it was written again since
UPDATE records SET body = $4, seal = $5 WHERE collection = $1 AND key = $2 AND version = $3 RETURNING version;

-- name: redact_outgoing
-- the same in the order in which records were written
UPDATE outbox SET body = $4, seal = $5 WHERE collection = $1 AND key = $2 AND version = $3;
