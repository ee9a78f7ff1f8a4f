-- name: register
INSERT INTO worker (name, engine) VALUES (%s, %s) RETURNING id

-- name: show_alive
UPDATE worker SET seen_at = clock_timestamp() WHERE id = %s

-- name: claim
SELECT run, no, kind, job_group, modulus, remainder, apart, first, behind, items, needs, after, epoch, wave
FROM claim(%s, %s, %s, %s, %s, %s)

-- name: claimable
SELECT t.run, count(*) FROM turn t JOIN run r ON r.id = t.run
WHERE r.state = 'running' AND r.engine = %(engine)s
    AND (t.lease_until IS NULL OR t.lease_until + r.grace_s * interval '1 second' < clock_timestamp())
GROUP BY t.run
UNION  -- or a wave is to be opened, or nobody has said yet that the run has to wait for that
SELECT w.run, 0 FROM judged w JOIN run r ON r.id = w.run
WHERE r.state = 'running' AND r.engine = %(engine)s
    AND (w.next <= r.may_open AND coalesce(w.opens_at, clock_timestamp()) <= clock_timestamp()
        OR NOT EXISTS (SELECT FROM turn t WHERE t.run = w.run)
            AND NOT EXISTS (SELECT FROM job j WHERE j.run = w.run AND j.opens_at > clock_timestamp()))
ORDER BY 1, 2

-- name: renew
SELECT run, no FROM renew(%s, %s, %s::bigint[], %s::int[], %s::int[])

-- name: states
SELECT id, state, why FROM run WHERE id = ANY (%s::bigint[])

-- name: release
UPDATE shard s SET owner = NULL, lease_until = NULL FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS u (run, no, epoch)
WHERE s.run = u.run AND s.no = u.no AND s.epoch = u.epoch AND s.owner = %s RETURNING s.run, s.no

-- name: finish
SELECT finish_shard(%s, %s, %s)

-- name: leave
DELETE FROM worker WHERE id = %s AND NOT EXISTS (SELECT FROM participant p WHERE p.worker = worker.id)

-- name: janitor
SELECT pg_try_advisory_xact_lock(%s)

-- name: shorten_leases
SELECT shorten_leases(NULL)

-- name: lapsed
SELECT s.run, s.no FROM shard s JOIN run r ON r.id = s.run
WHERE NOT s.done AND r.state = 'running' AND s.lease_until + r.grace_s * interval '1 second' < clock_timestamp()
ORDER BY s.run, s.no

-- name: settle_pauses
UPDATE run r SET state = CASE r.state WHEN 'pausing' THEN 'paused' ELSE 'stopped' END
WHERE r.state IN ('pausing', 'stopping')
    AND NOT EXISTS (SELECT FROM shard s WHERE s.run = r.id AND s.lease_until > clock_timestamp())
RETURNING r.id, r.state

-- name: drop_workers
DELETE FROM worker w WHERE w.seen_at < clock_timestamp() - interval '7 days'
    AND NOT EXISTS (SELECT FROM participant p WHERE p.worker = w.id)

-- name: release_dead
UPDATE shard s SET owner = NULL, lease_until = NULL FROM worker w
WHERE w.id = s.owner AND NOT s.done AND (%s::text IS NULL OR w.name = %s) RETURNING s.run, s.no
