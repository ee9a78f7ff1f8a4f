-- name: sums
SELECT c.job, w.word, coalesce(e.word, ''), sum(c.items)::bigint
FROM count c JOIN word w ON w.number = c.outcome LEFT JOIN word e ON e.number = c.code
WHERE c.run = %s GROUP BY c.job, w.word, e.word

-- name: timeline
SELECT worker, minute, data FROM minute WHERE run = %s AND minute >= %s ORDER BY worker, minute

-- name: actions
SELECT at, who, verb, args, result FROM action WHERE run = %s ORDER BY at

-- name: page
SELECT o.job, o.idx FROM outcome o
WHERE o.run = %(run)s AND (o.job, o.idx) > (%(after_job)s, %(after)s)
    AND (o.job, o.idx) <= (%(until_job)s, %(until)s)
    AND (%(job)s::int IS NULL OR o.job = %(job)s)
    AND (%(outcome)s = '' OR o.outcome = (SELECT number FROM word WHERE word = %(outcome)s))
    AND (%(code)s = '' OR o.code = (SELECT number FROM word WHERE word = %(code)s))
ORDER BY o.job, o.idx LIMIT %(most)s

-- name: last_index
SELECT max(o.idx) FROM outcome o WHERE o.run = %(run)s AND o.job = %(job)s

-- name: shards
SELECT r.name, r.state, r.engine, count(*), count(*) FILTER (WHERE s.done),
    count(*) FILTER (WHERE NOT s.done AND s.owner IS NOT NULL AND s.lease_until > clock_timestamp()),
    count(*) FILTER (WHERE NOT s.done AND s.owner IS NOT NULL AND s.lease_until <= clock_timestamp()),
    sum(greatest(s.epoch - 1, 0))::bigint
FROM run r JOIN shard s ON s.run = r.id
WHERE r.name = %(run)s OR (%(run)s = '' AND (r.state <> 'complete' OR r.ended_at > clock_timestamp() - interval '1 day'))
GROUP BY r.id ORDER BY r.state = 'complete', r.began_at DESC LIMIT 50

-- name: taken_again
SELECT r.name, s.no, s.epoch, s.items, s.done, coalesce(w.name, ''), extract(epoch FROM s.lease_until)::float8
FROM shard s JOIN run r ON r.id = s.run LEFT JOIN worker w ON w.id = s.owner
WHERE s.epoch > 1 AND (r.state <> 'complete' OR r.ended_at > clock_timestamp() - interval '1 day')
ORDER BY s.epoch DESC, s.lease_until DESC NULLS LAST LIMIT 50

-- name: workers
SELECT w.id, w.name, w.engine, extract(epoch FROM w.began_at)::float8, extract(epoch FROM w.seen_at)::float8
FROM worker w WHERE w.seen_at > clock_timestamp() - interval '7 days' ORDER BY w.seen_at DESC LIMIT 200

-- name: work
SELECT p.worker, r.name, p.exit_code, p.why, p.status, extract(epoch FROM p.ended_at)::float8,
    (SELECT count(*) FROM shard s
        WHERE s.run = p.run AND s.owner = p.worker AND NOT s.done AND s.lease_until > clock_timestamp())
FROM participant p JOIN run r ON r.id = p.run JOIN worker w ON w.id = p.worker
WHERE w.seen_at > clock_timestamp() - interval '7 days' ORDER BY p.began_at DESC LIMIT 1000

-- name: accounts
SELECT a.platform, a.credential, a.trust, a.why, extract(epoch FROM a.paused_until)::float8
FROM account a ORDER BY a.platform, a.credential LIMIT 200

-- name: buckets
SELECT b.platform, b.credential, b.category, b.state FROM bucket b ORDER BY b.platform, b.credential, b.category LIMIT 500

-- name: now
SELECT extract(epoch FROM clock_timestamp())::float8
