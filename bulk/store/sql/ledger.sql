-- name: words
SELECT word, number FROM word

-- name: add_words
INSERT INTO word (word) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING

-- name: began
SELECT extract(epoch FROM began_at)::float8, began_platform FROM run WHERE id = %s

-- name: plan
UPDATE run SET began_platform = coalesce(began_platform, %s) WHERE id = %s RETURNING began_platform

-- name: come_back
UPDATE participant SET ended_at = NULL, exit_code = NULL, why = '' WHERE run = %s AND worker = %s RETURNING status

-- name: begin_link
SELECT at_link, last_digest, groups FROM begin_link(%s, %s)

-- name: commit
SELECT commit_group(%s, %s, %s, %s, %s, %s,  %s, %s, %s, %s, %s, %s, %s, %s,
    %s, %s, %s, %s, %s, %s, %s, %s, %s,  %s, %s, %s, %s, %s,  %s, %s, %s,  %s, %s, %s,  %s, %s, %s, %s)

-- name: open_keys
SELECT job, idx FROM intent WHERE run = %s AND shard = ANY (%s::int[])

-- name: open_intents
SELECT i.job, i.idx, i.method, i.path, i.before, i.effect, i.sent_at FROM intent i
WHERE i.run = %s AND i.shard = ANY (%s::int[])
    AND NOT EXISTS (SELECT FROM outcome o WHERE o.run = i.run AND o.job = i.job AND o.idx = i.idx)
ORDER BY i.job, i.idx

-- name: late_writes
SELECT i.job, i.idx, i.method, i.path, i.before, i.effect, i.sent_at FROM intent i
JOIN outcome o ON o.run = i.run AND o.job = i.job AND o.idx = i.idx
WHERE i.run = %s AND i.shard = ANY (%s::int[]) AND o.outcome <> %s
ORDER BY i.job, i.idx

-- name: ended_in_range
SELECT idx FROM outcome WHERE run = %s AND job = %s AND idx >= %s AND idx < %s

-- name: ended_among
SELECT idx FROM outcome WHERE run = %s AND job = %s AND idx = ANY (%s::bigint[])

-- name: reopen
SELECT reopen(%s, %s::int[], %s::int[], %s::smallint[], %s::smallint[], %s, %s::smallint[], %s::int[])

-- name: finish
UPDATE participant SET ended_at = clock_timestamp(), exit_code = %s, why = %s, status = %s
WHERE run = %s AND worker = %s AND link = %s RETURNING worker

-- name: recent_creations
SELECT name FROM newborn WHERE run = %s AND at > clock_timestamp() - %s::float8 * interval '1 second'
    AND (%s::text[] IS NULL OR name = ANY (%s::text[]))

-- name: made_until
SELECT made_until, (SELECT coalesce(max(id), 0) FROM chunk c WHERE c.run = s.run) FROM shard s
WHERE s.run = %s AND s.no = %s

-- name: note_made
SELECT note_made(%s, %s, %s, %s::bigint[], %s)
