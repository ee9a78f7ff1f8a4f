-- name: outcomes
SELECT o.chunk, o.job, o.idx, o.outcome, o.code, o.http_status, o.attempts, o.position, o.length, b.data
FROM outcome o LEFT JOIN before_image b ON b.run = o.run AND b.job = o.job AND b.idx = o.idx WHERE o.run = %s ORDER BY o.chunk, o.position

-- name: chunks
SELECT c.id, c.data FROM chunk c WHERE c.run = %s ORDER BY c.id

-- name: words
SELECT number, word FROM word

-- name: minutes
SELECT minute, data FROM minute WHERE run = %s ORDER BY minute, worker

-- name: actions
SELECT at, who, verb, args, result FROM action WHERE run = %s ORDER BY at

-- name: intents
SELECT i.job, i.idx, i.method, i.path, i.before, i.effect, i.sent_at FROM intent i WHERE i.run = %s ORDER BY i.job, i.idx

-- name: planned
SELECT began_platform FROM run WHERE id = %s

-- name: awaited_export
SELECT 1 FROM run WHERE awaited AND state = 'complete'
    AND extract(epoch FROM began_at)::float8 = %s AND extract(epoch FROM ended_at)::float8 = %s

-- name: end_wait
UPDATE run SET awaited = false WHERE id = %s
