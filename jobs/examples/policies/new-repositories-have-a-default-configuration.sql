-- policy: new-repositories-have-a-default-configuration
-- severity: error
-- key: enterprise
-- message: {enterprise} has no default configuration for all new repositories
-- description: A new repository is never without security settings.
SELECT enterprise
FROM enterprise_configuration_defaults
WHERE outcome IN ('succeeded', 'unchanged')
  AND len(list_filter(result, lambda d: d.default_for_new_repos = 'all')) = 0
