-- Waves: which one of its job a shard belongs to (from 1); of a job, how many it has, the last one that is open, and when
-- the next one may begin that waits for its time; of a run, up to which one they may be opened, and which ones go on
-- though they are over a budget for errors.
ALTER TABLE shard ADD COLUMN wave int NOT NULL DEFAULT 1;
ALTER TABLE job ADD COLUMN waves int NOT NULL DEFAULT 1, ADD COLUMN open_wave int NOT NULL DEFAULT 1,
    ADD COLUMN opens_at timestamptz;
ALTER TABLE run ADD COLUMN may_open int NOT NULL DEFAULT 2147483647,
    ADD COLUMN accepted_waves int[] NOT NULL DEFAULT '{}';
-- Its items name secrets: a worker that has none leaves it to others.
ALTER TABLE run ADD COLUMN names_secrets boolean NOT NULL DEFAULT false;
