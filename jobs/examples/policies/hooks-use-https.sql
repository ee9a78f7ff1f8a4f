-- policy: hooks-use-https
-- severity: error
-- key: org, id
-- message: {org}: hook {id} posts to {url}
-- description: Events of an organization go over TLS only.
SELECT org, h.id AS id, h.config.url AS url
FROM (SELECT org, unnest(result) AS h FROM webhook_list)
WHERE lower(h.config.url) LIKE 'http:%'
