-- what began within the last minute, of which only so much may
CREATE TABLE turns (
    name  TEXT NOT NULL,
    begun REAL NOT NULL
);
CREATE INDEX turns_by_name ON turns (name, begun);
