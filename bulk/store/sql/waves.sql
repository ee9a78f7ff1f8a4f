-- name: lock
SELECT state, why, may_open < 2147483647 FROM run WHERE id = %s FOR NO KEY UPDATE

-- name: jobs
SELECT j.no, j.items, j.waves, j.open_wave, extract(epoch FROM j.opens_at - clock_timestamp())::float8, w.next
FROM job j LEFT JOIN judged w ON w.run = j.run AND w.no = j.no WHERE j.run = %s ORDER BY j.no

-- name: errors
SELECT c.job, s.wave, w.word, sum(c.items)::bigint
FROM count c JOIN shard s ON s.run = c.run AND s.no = c.shard JOIN word w ON w.number = c.code
WHERE c.run = %s AND w.word = ANY (%s::text[]) GROUP BY c.job, s.wave, w.word ORDER BY c.job, s.wave, w.word

-- name: gate
SELECT r.may_open, r.accepted_waves, EXISTS (SELECT FROM turn t WHERE t.run = r.id) FROM run r WHERE r.id = %s

-- name: open
UPDATE job SET open_wave = %s, opens_at = NULL WHERE run = %s AND no = %s

-- name: wait
UPDATE job SET opens_at = clock_timestamp() + %s * interval '1 second' WHERE run = %s AND no = ANY (%s::int[])

-- name: stop
UPDATE run SET state = 'stopping', why = %s WHERE id = %s

-- name: decide
UPDATE run SET may_open = greatest(may_open, %s),
    accepted_waves = ARRAY(SELECT DISTINCT unnest(accepted_waves || %s::int[]) ORDER BY 1) WHERE id = %s

-- name: go_on
UPDATE run SET state = 'running', why = '' WHERE id = %s
