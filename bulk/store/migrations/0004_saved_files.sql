-- What items save, in parts of 1 MiB, packed by the client, until the run is exported or forgotten. A file counts once its
-- item has an outcome.
CREATE TABLE saved (
    run bigint REFERENCES run ON DELETE CASCADE,
    job int,
    idx bigint,
    no int,                               -- of the part
    path text NOT NULL,                   -- below saved/
    data bytea NOT NULL,
    PRIMARY KEY (run, job, idx, no)
);
ALTER TABLE saved ALTER COLUMN data SET STORAGE EXTERNAL;
