-- name: fence
SELECT fence(%s, %s::int[], %s::int[])

-- name: add_part
INSERT INTO saved (run, job, idx, no, path, data) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (run, job, idx, no) DO UPDATE SET path = excluded.path, data = excluded.data

-- name: cut_off
DELETE FROM saved WHERE run = %s AND job = %s AND idx = %s AND no >= %s

-- name: parts
SELECT s.job, s.idx, s.no, s.path, s.data FROM saved s
JOIN outcome o ON o.run = s.run AND o.job = s.job AND o.idx = s.idx JOIN word w ON w.number = o.outcome
WHERE s.run = %s AND w.word = ANY (%s::text[]) ORDER BY s.job, s.idx, s.no
