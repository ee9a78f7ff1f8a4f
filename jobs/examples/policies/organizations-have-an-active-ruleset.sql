-- policy: organizations-have-an-active-ruleset
-- severity: error
-- key: org
-- message: {org} has no active ruleset for branches
-- description: Branches of each organization are protected by a ruleset that is enforced.
SELECT org
FROM organization_ruleset_list
WHERE outcome IN ('succeeded', 'unchanged')
  AND len(list_filter(result, lambda r: r.enforcement = 'active' AND coalesce(r.target, 'branch') = 'branch')) = 0
