-- policy: configurations-scan-for-secrets
-- severity: error
-- key: enterprise, id
-- message: {enterprise}: the configuration {name} does not block pushes of secrets
-- description: Every configuration of the enterprise scans for secrets and blocks their push.
SELECT enterprise, c.id AS id, c.name AS name
FROM (SELECT enterprise, unnest(result) AS c FROM enterprise_configuration_list)
WHERE c.target_type != 'global'
  AND (coalesce(c.secret_scanning, '') != 'enabled' OR coalesce(c.secret_scanning_push_protection, '') != 'enabled')
