-- policy: hooks-have-a-secret
-- severity: error
-- key: org, id
-- message: {org}: hook {id} has no secret, so that its receiver can't tell who posts
-- description: Each delivery is signed. The platform shows a secret masked, and leaves out what is not set.
SELECT org, h.id AS id
FROM (SELECT org, unnest(result) AS h FROM webhook_list)
WHERE coalesce(h.config.secret, '') = ''
