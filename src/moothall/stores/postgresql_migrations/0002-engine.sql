-- who pumps the runs of this store: nothing but its workers, or the engine with this address
ALTER TABLE store ADD COLUMN engine text NOT NULL DEFAULT '';
