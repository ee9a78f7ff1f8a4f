-- name: identity
SELECT identity FROM run WHERE id = %s

-- name: error_counts
SELECT c.job, w.word, sum(c.items)::bigint FROM count c JOIN word w ON w.number = c.code
WHERE c.run = %s AND (%s::int[] IS NULL OR c.shard = ANY (%s::int[]))
GROUP BY c.job, w.word ORDER BY c.job, sum(c.items) DESC, w.word

-- name: page
SELECT o.job, o.idx, o.chunk, o.position, o.length FROM outcome o
WHERE o.run = %s AND (o.job, o.idx) > (%s, %s) AND (%s::int IS NULL OR o.job = %s)
    AND (%s::smallint[] IS NULL OR o.outcome = ANY (%s::smallint[])) AND (%s::int[] IS NULL OR o.shard = ANY (%s::int[]))
    AND o.chunk > %s AND o.chunk <= %s
ORDER BY o.job, o.idx LIMIT %s

-- name: places
SELECT o.job, o.idx, o.chunk, o.position, o.length FROM outcome o WHERE o.run = %s AND o.job = %s AND o.idx = ANY (%s::bigint[])

-- name: chunks
SELECT id, data FROM chunk WHERE run = %s AND id = ANY (%s::bigint[])

-- name: newest_chunks
SELECT data FROM chunk WHERE run = %s AND (%s::int[] IS NULL OR shards && %s::int[]) ORDER BY id DESC

-- name: numbers
SELECT number FROM word WHERE word = ANY (%s::text[])

-- name: timeline
SELECT minute, data FROM minute WHERE run = %s AND (%s::bigint IS NULL OR worker = %s) ORDER BY minute, worker

-- name: newest_minute
SELECT minute, data FROM minute WHERE run = %s AND (%s::bigint IS NULL OR worker = %s)
ORDER BY minute DESC, worker DESC LIMIT 1

-- name: counts
SELECT c.job, w.word, sum(c.items)::bigint FROM count c JOIN word w ON w.number = c.outcome
WHERE c.run = %s AND (%s::int[] IS NULL OR c.shard = ANY (%s::int[])) GROUP BY c.job, w.word ORDER BY c.job, min(w.number)
