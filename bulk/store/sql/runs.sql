-- name: going_on
SELECT id, name, identity_digest FROM run
WHERE name = %(name)s OR (identity_digest = %(digest)s AND (state <> 'complete' OR (awaited AND %(is_awaited)s)))
ORDER BY name <> %(name)s, state = 'complete', id DESC LIMIT 1

-- name: await
UPDATE run SET awaited = true WHERE id = %s

-- name: is_taken
SELECT 1 FROM run WHERE name = %s

-- name: hold_name
SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))

-- name: was_made
SELECT 1 FROM run WHERE name = %s AND identity_digest = %s

-- name: make
SELECT make_run(%s, %s, %s, %s, %s, %s, %s)

-- name: has_parts
SELECT name, no FROM bundle_part WHERE bundle = %s

-- name: add_parts
INSERT INTO bundle_part (bundle, name, no, data)
SELECT %s, * FROM unnest(%s::text[], %s::int[], %s::bytea[]) ON CONFLICT DO NOTHING

-- name: parts
SELECT name, no FROM bundle_part WHERE bundle = %s ORDER BY name, no

-- name: part
SELECT data FROM bundle_part WHERE bundle = %s AND name = %s AND no = %s

-- name: drop_bundles
DELETE FROM bundle_part b
WHERE (SELECT max(p.at) FROM bundle_part p WHERE p.bundle = b.bundle) < clock_timestamp() - interval '1 day'
    AND NOT EXISTS (SELECT FROM run r WHERE r.bundle = b.bundle)

-- name: add_jobs
INSERT INTO job (run, no, job_group, items)
SELECT %s, * FROM unnest(%s::int[], %s::int[], %s::bigint[])

-- name: copy_shards
COPY shard (run, no, kind, job_group, modulus, remainder, apart, first, behind, items, needs, after, wave) FROM STDIN

-- name: count_waves
UPDATE job j SET waves = n.waves
FROM (SELECT s.job_group, max(s.wave) AS waves FROM shard s WHERE s.run = %s GROUP BY s.job_group) n
WHERE j.run = %s AND j.job_group = n.job_group AND n.waves > 1

-- name: note_demands
UPDATE run SET may_open = CASE WHEN %s THEN 1 ELSE may_open END, names_secrets = %s, awaited = %s
WHERE id = %s

-- name: end_empty_jobs
UPDATE job j SET state = 'over'
WHERE j.run = %s AND NOT EXISTS (SELECT FROM shard s WHERE s.run = j.run AND s.job_group = j.job_group AND NOT s.done)

-- name: end_empty_run
UPDATE run r SET state = 'complete', ended_at = clock_timestamp()
WHERE r.id = %s AND NOT EXISTS (SELECT FROM shard s WHERE s.run = r.id AND NOT s.done)

-- name: about
SELECT r.id, r.name, r.identity, r.bundle, r.engine, r.limits,
    CASE WHEN r.state NOT IN ('pausing', 'stopping')  -- where nobody is at work, no worker will say that it is over
            OR EXISTS (SELECT FROM shard s WHERE s.run = r.id AND s.lease_until > clock_timestamp()) THEN r.state
        WHEN r.state = 'pausing' THEN 'paused' ELSE 'stopped' END,
    r.why,
    extract(epoch FROM r.began_at)::float8, extract(epoch FROM r.ended_at)::float8,
    (SELECT count(*) FROM shard s WHERE s.run = r.id),
    (SELECT count(*) FROM shard s WHERE s.run = r.id AND s.done),
    (SELECT count(DISTINCT s.owner) FROM shard s WHERE s.run = r.id AND s.lease_until > clock_timestamp()),
    extract(epoch FROM clock_timestamp())::float8,
    (SELECT coalesce(sum(c.items), 0)::bigint FROM count c JOIN word w ON w.number = c.code
        WHERE c.run = r.id AND w.word = 'superseded'),
    ARRAY(SELECT DISTINCT p.exit_code FROM participant p WHERE p.run = r.id AND p.exit_code IS NOT NULL),
    (SELECT coalesce(sum((convert_from(p.status, 'UTF8')::jsonb ->> 'requests')::bigint), 0)::bigint
        FROM participant p WHERE p.run = r.id),
    r.names_secrets
FROM run r
WHERE (%(name)s::text IS NULL OR r.name = %(name)s) AND (%(number)s::bigint IS NULL OR r.id = %(number)s)
ORDER BY r.began_at DESC, r.id DESC

-- name: run_waves
SELECT j.no, j.open_wave, j.waves, extract(epoch FROM j.opens_at)::float8
FROM job j WHERE j.run = %s AND j.waves > 1 ORDER BY j.no

-- name: run_counts
SELECT c.job, w.word, sum(c.items)::bigint FROM count c JOIN word w ON w.number = c.outcome
WHERE c.run = %s GROUP BY c.job, w.word ORDER BY c.job, min(w.number)

-- name: set_state
UPDATE run SET state = %s, why = %s WHERE id = %s AND state = ANY (%s::text[]) RETURNING id

-- name: note_action
INSERT INTO action (run, at, who, verb, args, result)
VALUES (%s, extract(epoch FROM clock_timestamp())::float8, %s, %s, %s, %s)

-- name: hold
SELECT 1 FROM run WHERE id = %s FOR NO KEY UPDATE

-- name: limits
SELECT limits FROM run WHERE id = %s

-- name: set_limits
UPDATE run SET limits = %s WHERE id = %s

-- name: participants
SELECT w.name, w.engine, p.status, p.exit_code, p.why, extract(epoch FROM w.began_at)::float8,
    extract(epoch FROM w.seen_at)::float8,
    (SELECT count(*) FROM shard s WHERE s.run = p.run AND s.owner = p.worker AND s.lease_until > clock_timestamp())
FROM participant p JOIN worker w ON w.id = p.worker WHERE p.run = %s ORDER BY p.worker

-- name: numbers
SELECT word, number FROM word

-- name: reopen
SELECT reopen(%s, NULL, NULL, %s::smallint[], %s::smallint[], NULL, %s::smallint[], %s::int[])

-- name: forget
SELECT forget_run(%s)

-- name: is_made
SELECT 1 FROM shard WHERE run = %s AND kind = 'make' LIMIT 1
