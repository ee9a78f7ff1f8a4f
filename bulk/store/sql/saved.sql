-- name: fence
SELECT fence(%s, %s::int[], %s::int[])

-- name: add_parts
INSERT INTO saved (run, job, idx, no, path, data)
SELECT %s, * FROM unnest(%s::int[], %s::bigint[], %s::int[], %s::text[], %s::bytea[])
ON CONFLICT (run, job, idx, no) DO UPDATE SET path = excluded.path, data = excluded.data

-- name: cut_off
DELETE FROM saved s USING unnest(%s::int[], %s::bigint[], %s::int[]) AS e (job, idx, no)
WHERE s.run = %s AND s.job = e.job AND s.idx = e.idx AND s.no >= e.no

-- name: parts
SELECT s.job, s.idx, s.no, s.path, s.data FROM saved s
JOIN outcome o ON o.run = s.run AND o.job = s.job AND o.idx = s.idx JOIN word w ON w.number = o.outcome
WHERE s.run = %s AND w.word = ANY (%s::text[]) ORDER BY s.job, s.idx, s.no
