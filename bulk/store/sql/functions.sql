-- What must happen within the database. Made anew by each `bulk store init` and `bulk store upgrade`: what an older
-- version had goes first, because a function with other arguments would stay beside the new one.
DO $$
DECLARE
    old regprocedure;
BEGIN
    FOR old IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'bulk'::regnamespace LOOP
        EXECUTE format('DROP FUNCTION %s', old);
    END LOOP;
END $$;

-- Shards that have work left, and nothing stands before: jobs that they need are over, earlier shards of the same lanes
-- are done, their wave is open. Whether somebody holds one is another question.
CREATE OR REPLACE VIEW turn AS
    SELECT s.run, s.no, s.lease_until FROM shard s
    WHERE NOT s.done
        AND NOT EXISTS (SELECT FROM job j WHERE j.run = s.run AND j.no = ANY (s.needs) AND j.state <> 'over')
        AND NOT EXISTS (SELECT FROM shard a WHERE a.run = s.run AND a.no = ANY (s.after) AND NOT a.done)
        AND (s.wave = 1 OR NOT EXISTS (
            SELECT FROM job j WHERE j.run = s.run AND j.job_group = s.job_group AND j.open_wave < s.wave));

-- Jobs of which the open wave is judged, because all of it is done: the wave that comes next, which nobody has opened.
CREATE OR REPLACE VIEW judged AS
    SELECT j.run, j.no, j.opens_at, n.wave AS next FROM job j
    CROSS JOIN LATERAL (
        SELECT min(s.wave) AS wave FROM shard s WHERE s.run = j.run AND s.job_group = j.job_group AND NOT s.done) n
    WHERE j.waves > j.open_wave AND n.wave > j.open_wave;

-- Raises unless the worker holds each of the shards: it has this epoch and a lease that is not over. From here to the
-- end of the transaction nobody can claim one of them.
CREATE OR REPLACE FUNCTION fence(of_run bigint, shards int[], epochs int[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    live int[];
BEGIN
    SELECT array_agg(l.no) INTO live FROM (
        SELECT s.no FROM shard s JOIN unnest(shards, epochs) AS u (no, epoch) ON s.no = u.no
        WHERE s.run = of_run AND s.no = ANY (shards) AND s.epoch = u.epoch AND s.lease_until > clock_timestamp()
        ORDER BY s.no FOR SHARE OF s
    ) AS l;
    IF coalesce(cardinality(live), 0) < cardinality(shards) THEN
        RAISE EXCEPTION USING ERRCODE = 'BU001', MESSAGE = 'not held any more: ' || (
            SELECT string_agg(u.no::text, ', ') FROM unnest(shards) AS u (no) WHERE live IS NULL OR u.no <> ALL (live));
    END IF;
END $$;

-- Makes a group durable: all of it, or none. `at_link`, `group_digest`: see the table participant.
CREATE OR REPLACE FUNCTION commit_group(
    of_run bigint, of_worker bigint, at_link int, group_digest bytea, held int[], epochs int[],
    sent_job int[], sent_idx bigint[], sent_shard int[], sent_method text[], sent_path text[], sent_before text[],
    sent_effect text[], sent_at float8[],
    lines bytea, done_job int[], done_idx bigint[], done_shard int[], done_outcome smallint[], done_code smallint[],
    done_status int[], done_attempts int[], done_length int[],
    sum_shard int[], sum_job int[], sum_outcome smallint[], sum_code smallint[], sum_items bigint[],
    closed_job int[], closed_idx bigint[], born text[],
    image_job int[], image_idx bigint[], image text[],
    new_status bytea, at_minute bigint, minute_data bytea, acts jsonb
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    chunk_id bigint;
BEGIN
    UPDATE participant SET commits = commits + 1, digest = group_digest, status = coalesce(new_status, status)
    WHERE run = of_run AND worker = of_worker AND link = at_link;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this connection was given up' USING ERRCODE = 'BU002';
    END IF;
    PERFORM fence(of_run, held, epochs);
    IF cardinality(sent_job) > 0 THEN
        INSERT INTO intent (run, job, idx, shard, method, path, before, effect, sent_at)
        SELECT of_run, u.* FROM
            unnest(sent_job, sent_idx, sent_shard, sent_method, sent_path, sent_before, sent_effect, sent_at) AS u
        ON CONFLICT (run, job, idx) DO UPDATE SET shard = excluded.shard, method = excluded.method,
            path = excluded.path, before = excluded.before, effect = excluded.effect, sent_at = excluded.sent_at;
    END IF;
    IF cardinality(done_job) > 0 THEN
        INSERT INTO chunk (run, shards, data) VALUES (of_run, held, lines) RETURNING id INTO chunk_id;
        INSERT INTO outcome (run, job, idx, shard, outcome, code, http_status, attempts, chunk, position, length)
        SELECT of_run, u.job, u.idx, u.shard, u.outcome, u.code, u.http_status, u.attempts, chunk_id,
            sum(u.length) OVER (ORDER BY u.place) - u.length, u.length
        FROM unnest(done_job, done_idx, done_shard, done_outcome, done_code, done_status, done_attempts, done_length)
            WITH ORDINALITY AS u (job, idx, shard, outcome, code, http_status, attempts, length, place);
        INSERT INTO count AS c (run, shard, job, outcome, code, items)
        SELECT of_run, u.* FROM unnest(sum_shard, sum_job, sum_outcome, sum_code, sum_items) AS u
        ON CONFLICT (run, shard, job, outcome, code) DO UPDATE SET items = c.items + excluded.items;
    END IF;
    IF cardinality(closed_job) > 0 THEN
        DELETE FROM intent i USING unnest(closed_job, closed_idx) AS u (job, idx)
        WHERE i.run = of_run AND i.job = u.job AND i.idx = u.idx;
    END IF;
    IF cardinality(born) > 0 THEN
        INSERT INTO newborn (run, name) SELECT of_run, u FROM unnest(born) AS u
        ON CONFLICT (run, name) DO UPDATE SET at = clock_timestamp();
    END IF;
    IF cardinality(image_job) > 0 THEN
        INSERT INTO before_image (run, job, idx, data) SELECT of_run, u.* FROM unnest(image_job, image_idx, image) AS u
        ON CONFLICT (run, job, idx) DO UPDATE SET data = excluded.data;
    END IF;
    IF at_minute IS NOT NULL THEN
        INSERT INTO minute (run, worker, minute, data) VALUES (of_run, of_worker, at_minute, minute_data)
        ON CONFLICT (run, worker, minute) DO UPDATE SET data = excluded.data;
    END IF;
    IF acts IS NOT NULL THEN
        INSERT INTO action (run, at, who, verb, args, result)
        SELECT of_run, (a ->> 0)::float8, a ->> 1, a ->> 2, a ->> 3, a ->> 4 FROM jsonb_array_elements(acts) AS a;
    END IF;
END $$;

-- A connection of a worker begins: what an earlier one of it still sends is refused from now on. Returns the number of
-- the connection, the digest of the group that was written last, and how many were written.
CREATE OR REPLACE FUNCTION begin_link(
    of_run bigint, of_worker bigint, OUT at_link int, OUT last_digest bytea, OUT groups bigint
) LANGUAGE sql SET search_path FROM CURRENT AS $$
    INSERT INTO participant AS p (run, worker, link) VALUES (of_run, of_worker, 1)
    ON CONFLICT (run, worker) DO UPDATE SET link = p.link + 1
    RETURNING p.link, p.digest, p.commits;
$$;

-- Ends leases no later than their holders were promised: where the database's clock was set back, they would last as much
-- longer. Returns how many there were.
CREATE OR REPLACE FUNCTION shorten_leases(of_run bigint) RETURNS bigint LANGUAGE sql SET search_path FROM CURRENT AS $$
    WITH shortened AS (
        UPDATE shard s SET lease_until = clock_timestamp() + s.lease_s * interval '1 second'
        WHERE (of_run IS NULL OR s.run = of_run) AND s.lease_until > clock_timestamp() + s.lease_s * interval '1 second'
        RETURNING true
    )
    SELECT count(*) FROM shortened;
$$;

-- Takes shards for a worker, at most `most` of them; `only`: this one, if it can be had.
CREATE OR REPLACE FUNCTION claim(
    of_run bigint, by_worker bigint, of_engine text, ttl_s float8, most int, only_no int
) RETURNS SETOF shard LANGUAGE sql SET search_path FROM CURRENT AS $$
    SELECT shorten_leases(of_run);
    WITH ready AS (
        SELECT t.run, t.no FROM turn t JOIN run r ON r.id = t.run
        WHERE t.run = of_run AND (only_no IS NULL OR t.no = only_no)
            AND r.state = 'running' AND r.engine = of_engine
            AND (t.lease_until IS NULL OR t.lease_until + r.grace_s * interval '1 second' < clock_timestamp())
        ORDER BY t.no LIMIT most FOR UPDATE OF t SKIP LOCKED
    )
    UPDATE shard s SET epoch = s.epoch + 1, owner = by_worker, lease_s = ttl_s,
        lease_until = clock_timestamp() + ttl_s * interval '1 second'
    FROM ready WHERE s.run = ready.run AND s.no = ready.no RETURNING s.*;
$$;

-- Prolongs leases that are not over; returns those that it could, and how their runs stand.
CREATE OR REPLACE FUNCTION renew(by_worker bigint, ttl_s float8, runs bigint[], shards int[], epochs int[])
RETURNS TABLE (run bigint, no int) LANGUAGE sql SET search_path FROM CURRENT AS $$
    UPDATE worker SET seen_at = clock_timestamp() WHERE id = by_worker;
    WITH mine AS (
        SELECT s.run, s.no FROM shard s JOIN unnest(runs, shards, epochs) AS u (run, no, epoch)
            ON s.run = u.run AND s.no = u.no AND s.epoch = u.epoch
        WHERE s.owner = by_worker ORDER BY s.run, s.no FOR UPDATE OF s
    )
    UPDATE shard s SET lease_until = clock_timestamp() + ttl_s * interval '1 second'
    FROM mine WHERE s.run = mine.run AND s.no = mine.no AND s.lease_until > clock_timestamp()
    RETURNING s.run, s.no;
$$;

-- Whether a shard is done is decided by what is written, never by what a worker remembers: `done`, `work_left`, or
-- `lost`, where the worker does not hold it any more. With the last shard of a group its jobs are over, with the last of
-- all the run is complete.
CREATE OR REPLACE FUNCTION finish_shard(of_run bigint, of_shard int, at_epoch int) RETURNS text
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    of_group int;
    is_complete boolean;
BEGIN
    PERFORM FROM run WHERE id = of_run FOR NO KEY UPDATE;  -- of two that finish the last two shards, one sees both
    PERFORM FROM shard s WHERE s.run = of_run AND s.no = of_shard AND s.epoch = at_epoch
        AND s.lease_until > clock_timestamp() FOR UPDATE;
    IF NOT FOUND THEN  -- or it was finished, and the answer was lost
        PERFORM FROM shard s WHERE s.run = of_run AND s.no = of_shard AND s.epoch = at_epoch AND s.done;
        RETURN CASE WHEN FOUND THEN 'done' ELSE 'lost' END;
    END IF;
    UPDATE shard s SET done = true, owner = NULL, lease_until = NULL WHERE s.run = of_run AND s.no = of_shard
        AND s.items = (SELECT coalesce(sum(c.items), 0) FROM count c WHERE c.run = of_run AND c.shard = of_shard)
    RETURNING s.job_group INTO of_group;
    IF NOT FOUND THEN
        RETURN 'work_left';
    END IF;
    UPDATE job SET state = 'over' WHERE run = of_run AND job_group = of_group
        AND NOT EXISTS (SELECT FROM shard s WHERE s.run = of_run AND s.job_group = of_group AND NOT s.done);
    UPDATE run SET state = 'complete', why = '', ended_at = clock_timestamp() WHERE id = of_run AND state <> 'complete'
        AND NOT EXISTS (SELECT FROM shard s WHERE s.run = of_run AND NOT s.done)
    RETURNING true INTO is_complete;
    PERFORM pg_notify(CASE WHEN is_complete THEN 'bulk_state' ELSE 'bulk_shard' END, of_run::text);
    RETURN 'done';
END $$;

-- Items of a shard were made from results: how many, and up to which chunks. The next that makes them gets the same.
CREATE OR REPLACE FUNCTION note_made(of_run bigint, of_shard int, at_epoch int, until bigint[], made bigint)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    of_group int;
BEGIN
    PERFORM fence(of_run, ARRAY[of_shard], ARRAY[at_epoch]);
    UPDATE shard s SET items = made, made_until = until WHERE s.run = of_run AND s.no = of_shard
    RETURNING s.job_group INTO of_group;
    UPDATE job SET items = made WHERE run = of_run AND job_group = of_group;
END $$;

-- Makes items to-do again that ended so, of shards that nobody works on, or (`held` is not NULL) of those that this
-- worker holds. Their lines stay where they are, and nothing points to them.
CREATE OR REPLACE FUNCTION reopen(
    of_run bigint, held int[], epochs int[], outcomes smallint[], codes_not smallint[], below bigint, codes smallint[],
    jobs int[]
) RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    reopened bigint;
    chosen int[];
BEGIN
    PERFORM FROM run WHERE id = of_run FOR NO KEY UPDATE;
    IF held IS NULL THEN
        PERFORM FROM shard s WHERE s.run = of_run ORDER BY s.no FOR UPDATE;
        IF EXISTS (SELECT FROM shard s WHERE s.run = of_run AND s.lease_until > clock_timestamp()) THEN
            RAISE EXCEPTION 'workers are at work on it' USING ERRCODE = 'BU003';
        END IF;
        SELECT array_agg(s.no) INTO chosen FROM shard s WHERE s.run = of_run;
    ELSE
        PERFORM fence(of_run, held, epochs);
        chosen := held;
    END IF;
    WITH deleted AS (
        DELETE FROM outcome o WHERE o.run = of_run AND o.shard = ANY (chosen) AND o.outcome = ANY (outcomes)
            AND o.code <> ALL (codes_not) AND (below IS NULL OR o.idx < below)
            AND (codes IS NULL OR o.code = ANY (codes)) AND (jobs IS NULL OR o.job = ANY (jobs))
        RETURNING o.shard, o.job, o.outcome, o.code
    ), noted AS (
        SELECT d.shard, d.job, d.outcome, d.code, count(*) AS items FROM deleted d GROUP BY 1, 2, 3, 4
    ), lowered AS (
        UPDATE count c SET items = c.items - n.items FROM noted n WHERE c.run = of_run AND c.shard = n.shard
            AND c.job = n.job AND c.outcome = n.outcome AND c.code = n.code RETURNING n.items, n.shard
    ), undone AS (
        UPDATE shard s SET done = false FROM (SELECT DISTINCT l.shard FROM lowered l) AS l
        WHERE s.run = of_run AND s.no = l.shard RETURNING s.job_group
    ), opened AS (
        UPDATE job SET state = 'open' WHERE run = of_run AND job_group IN (SELECT u.job_group FROM undone u)
    )
    SELECT coalesce(sum(l.items), 0) INTO reopened FROM lowered l;
    DELETE FROM count c WHERE c.run = of_run AND c.items = 0;
    IF held IS NULL AND reopened > 0 THEN  -- each goes on in the first wave that has something left
        UPDATE job j SET open_wave = least(j.open_wave, (
            SELECT min(s.wave) FROM shard s WHERE s.run = j.run AND s.job_group = j.job_group AND NOT s.done
        )), opens_at = NULL WHERE j.run = of_run;
    END IF;
    IF held IS NULL AND reopened > 0 THEN  -- results that are new may give items that are new
        WITH remade AS (
            UPDATE shard s SET done = false, items = -1 WHERE s.run = of_run AND s.kind = 'make' RETURNING s.job_group
        )
        UPDATE job SET state = 'open' WHERE run = of_run AND job_group IN (SELECT r.job_group FROM remade r);
    END IF;
    IF held IS NULL AND reopened > 0 THEN
        UPDATE run SET state = 'running', why = '', ended_at = NULL WHERE id = of_run;
        PERFORM pg_notify('bulk_state', of_run::text);
    END IF;
    RETURN reopened;
END $$;

-- Runs with the owner's rights, because a run's partitions are the owner's.
CREATE OR REPLACE FUNCTION make_run(
    new_name text, new_identity jsonb, new_digest bytea, new_bundle bytea, new_engine text, new_limits jsonb,
    new_grace_s float8
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    made bigint;
    kind text;
BEGIN
    INSERT INTO run (name, identity, identity_digest, bundle, engine, limits, grace_s)
    VALUES (new_name, new_identity, new_digest, new_bundle, new_engine, new_limits, new_grace_s) RETURNING id INTO made;
    -- Who forgets another run with the same bundle waits for this one, or has just taken it away.
    PERFORM FROM bundle_part WHERE bundle = new_bundle FOR KEY SHARE;
    IF NOT FOUND AND new_bundle <> '' THEN
        RAISE EXCEPTION 'what was uploaded for the run went with another run of the same, which was just forgotten';
    END IF;
    -- Made apart and then attached: CREATE TABLE … PARTITION OF would wait for everybody who reads another run, and
    -- everybody who writes would wait behind it.
    FOREACH kind IN ARRAY ARRAY['outcome', 'chunk'] LOOP
        EXECUTE format('CREATE TABLE %1$I (LIKE %2$I INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING INDEXES)',
            kind || '_' || made, kind);
        EXECUTE format('ALTER TABLE %1$I ATTACH PARTITION %2$I FOR VALUES IN (%3$s)', kind, kind || '_' || made, made);
    END LOOP;
    RETURN made;
END $$;

CREATE OR REPLACE FUNCTION forget_run(of_run bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    kind text;
BEGIN
    PERFORM FROM run WHERE id = of_run FOR UPDATE;
    IF EXISTS (SELECT FROM shard s WHERE s.run = of_run AND s.lease_until > clock_timestamp()) THEN
        RAISE EXCEPTION 'workers are at work on it' USING ERRCODE = 'BU003';
    END IF;
    PERFORM FROM bundle_part WHERE bundle = (SELECT bundle FROM run WHERE id = of_run) FOR UPDATE;  -- see make_run
    FOREACH kind IN ARRAY ARRAY['outcome', 'chunk'] LOOP
        EXECUTE format('TRUNCATE %I', kind || '_' || of_run);
    END LOOP;
    DELETE FROM intent WHERE run = of_run;
    DELETE FROM count WHERE run = of_run;
    DELETE FROM newborn WHERE run = of_run;
    DELETE FROM bundle_part WHERE bundle = (SELECT bundle FROM run WHERE id = of_run)
        AND NOT EXISTS (SELECT FROM run r WHERE r.bundle = bundle_part.bundle AND r.id <> of_run);
    DELETE FROM run WHERE id = of_run;
    PERFORM drop_empty();
END $$;

-- Takes away partitions of runs that are forgotten, if that can be had at once: it waits for everybody who reads another
-- run, and everybody who writes would wait behind it. What is left is empty, and goes the next time.
CREATE OR REPLACE FUNCTION drop_empty() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '100ms' AS $$
DECLARE
    part regclass;
BEGIN
    FOR part IN
        SELECT i.inhrelid::regclass FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent IN ('outcome'::regclass, 'chunk'::regclass)
            AND NOT EXISTS (SELECT FROM run r WHERE c.relname = 'outcome_' || r.id OR c.relname = 'chunk_' || r.id)
    LOOP
        EXECUTE format('DROP TABLE %s', part);
    END LOOP;
EXCEPTION WHEN lock_not_available THEN
    RETURN;
END $$;
