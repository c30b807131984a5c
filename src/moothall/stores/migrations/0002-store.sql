-- the store's own name, by which its anchors are found
CREATE TABLE store (id TEXT NOT NULL);
INSERT INTO store SELECT lower(hex(randomblob(8)));
