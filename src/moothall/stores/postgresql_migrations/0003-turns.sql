-- what began within the last minute, of which only so much may: one row for all of a name, so that they take turns
CREATE TABLE turns (
    name  bytea PRIMARY KEY,
    begun double precision[] NOT NULL
);
