-- name: jobs
SELECT j.no, j.job_group, j.state, (
    SELECT coalesce(sum(c.items), 0)::bigint FROM count c JOIN word w ON w.number = c.outcome
    LEFT JOIN word v ON v.number = c.code
    WHERE c.run = j.run AND c.job = j.no AND w.word IN ('failed', 'skipped', 'unknown')
        AND coalesce(v.word, '') <> 'superseded')
FROM job j WHERE j.run = %s ORDER BY j.no

-- name: ended_of_shard
SELECT job, idx FROM outcome WHERE run = %s AND shard = %s

-- name: shared_state
SELECT r.state, r.why, r.limits, extract(epoch FROM clock_timestamp())::float8 - greatest(
        extract(epoch FROM r.began_at)::float8, (SELECT max(a.at) FROM action a
            WHERE a.run = r.id AND a.verb IN ('resume', 'retry', 'approve') AND a.result = 'running')),
    (SELECT count(DISTINCT s.owner) FROM shard s WHERE s.run = r.id AND s.lease_until > clock_timestamp()),
    (SELECT count(*) FROM shard s WHERE s.run = r.id AND NOT s.done),
    (SELECT coalesce(sum(greatest(s.items, 0)), 0)::bigint FROM shard s WHERE s.run = r.id AND NOT s.done AND s.owner IS NULL),
    (SELECT coalesce(sum(c.items), 0)::bigint FROM count c WHERE c.run = r.id),
    (SELECT coalesce(sum(c.items), 0)::bigint FROM count c JOIN word w ON w.number = c.outcome
     WHERE c.run = r.id AND w.word = 'failed')
FROM run r WHERE r.id = %s

-- name: stop
UPDATE run SET state = 'stopping', why = %s WHERE id = %s AND state IN ('running', 'pausing') RETURNING id
