-- policy: rulesets-are-enforced
-- severity: warning
-- key: org, id
-- message: {org}: the ruleset {name} is only evaluated or disabled
-- description: A ruleset that is not enforced protects nothing.
SELECT org, r.id AS id, r.name AS name
FROM (SELECT org, unnest(result) AS r FROM organization_ruleset_list)
WHERE r.enforcement != 'active'
