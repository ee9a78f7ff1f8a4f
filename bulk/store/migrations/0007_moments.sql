-- How long a moment that is set for the future lay ahead: where the database's clock is set back, or another machine
-- takes over, it lies further ahead than that, and is set anew.
ALTER TABLE shard ADD COLUMN lease_s float8;      -- what the holder was promised
ALTER TABLE account ADD COLUMN told_at timestamptz;
