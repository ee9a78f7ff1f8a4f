-- policy: hooks-are-used
-- severity: note
-- key: org, id
-- message: {org}: hook {id} is not active, and was last changed on {updated_at}
-- description: Webhooks that are switched off for half a year can go.
SELECT org, h.id AS id, h.updated_at AS updated_at
FROM (SELECT org, unnest(result) AS h FROM webhook_list)
WHERE NOT h.active AND try_cast(h.updated_at AS TIMESTAMP) < current_date - INTERVAL 180 DAY
