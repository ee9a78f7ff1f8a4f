-- Of a shard whose items are made from results: up to which chunk there were results each time that they were made.
-- Results of later chunks, those of a retry, give items that come behind the others.
ALTER TABLE shard ADD COLUMN made_until bigint[] NOT NULL DEFAULT '{}';
