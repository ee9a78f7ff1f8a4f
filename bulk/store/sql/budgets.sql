-- name: lock_bucket
SELECT state, extract(epoch FROM clock_timestamp())::float8 FROM bucket WHERE platform = %s AND credential = %s AND category = %s FOR UPDATE

-- name: lock_buckets
SELECT category, state FROM bucket WHERE platform = %s AND credential = %s ORDER BY category FOR UPDATE

-- name: keep_bucket
UPDATE bucket SET state = %s WHERE platform = %s AND credential = %s AND category = %s

-- name: drop_bucket
DELETE FROM bucket WHERE platform = %s AND credential = %s AND category = %s

-- name: add_bucket
INSERT INTO bucket (platform, credential, category, state) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING

-- name: add_account
INSERT INTO account (platform, credential, token_tag) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING

-- name: poll
UPDATE account SET poller = %s, poll_until = clock_timestamp() + %s * interval '1 second'
WHERE platform = %s AND credential = %s AND (poller = %s OR poll_until IS NULL OR poll_until < clock_timestamp()
    OR poll_until > clock_timestamp() + %s * interval '1 second')  -- the clock was set back
RETURNING poller

-- name: tell
UPDATE account SET trust = %s, why = %s, told_at = clock_timestamp(),
    paused_until = clock_timestamp() + %s * interval '1 second',
    quiet_until = clock_timestamp() + %s * interval '1 second'
WHERE platform = %s AND credential = %s RETURNING extract(epoch FROM paused_until)::float8

-- name: hear
SELECT credential, extract(epoch FROM paused_until)::float8, trust, why,
    extract(epoch FROM paused_until - greatest(told_at, clock_timestamp()))::float8,  -- if the clock was set back
    extract(epoch FROM quiet_until - greatest(told_at, clock_timestamp()))::float8
FROM account WHERE platform = %s AND paused_until > clock_timestamp()
