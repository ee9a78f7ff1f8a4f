-- What was there before a write that succeeded and can be taken back: what `bulk undo` needs of an exported run.
CREATE TABLE before_image (
    run bigint REFERENCES run ON DELETE CASCADE,
    job int,
    idx bigint,
    data text NOT NULL,                   -- JSON
    PRIMARY KEY (run, job, idx)
);
