-- The standard data (docs: the sandbox's standard data). The enterprise, and the tokens, are made by seeds.py.
-- 1735689600 is 2025-01-01T00:00:00Z, 1704067200 is 2024-01-01T00:00:00Z; a day is 86400.

INSERT INTO users VALUES
    (1, 'octoadmin', 'Octo Admin', 'octoadmin@acme.example', 1, 1, 1735689600),
    (2, 'alice', 'Alice Arnold', 'alice@acme.example', 0, 0, 1735689600),
    (3, 'bob', 'Bob Berger', 'bob@acme.example', 0, 0, 1735689600),
    (4, 'carol', 'Carol Castro', 'carol@acme.example', 0, 0, 1735689600);
INSERT INTO organizations VALUES
    (101, 1, 'acme-eng', 'Acme Engineering', 'Builds the products.', 1735689600),
    (102, 1, 'acme-ops', 'Acme Operations', 'Runs the products.', 1735689600),
    (103, 1, 'acme-labs', 'Acme Labs', 'Tries things out.', 1735689600);
INSERT INTO memberships VALUES
    (101, 1, 'owner'), (102, 1, 'owner'), (103, 1, 'owner'), (101, 2, 'owner'), (102, 2, 'owner'), (103, 2, 'owner'),
    (101, 3, 'member');
INSERT INTO repositories VALUES
    (1001, 101, 'hello-world', 0, 'A first repository.', 'main', 1735689600),
    (1002, 101, 'private-notes', 1, 'Notes of the engineers.', 'main', 1735689600),
    (1003, 102, 'runbook', 0, 'What to do when it burns.', 'main', 1735689600),
    (1004, 101, 'empty', 0, '', 'main', 1735689600);

INSERT INTO teams VALUES
    (501, 1, 'platform', 'ent:platform', 'Keeps the platform running.', 1735689600),
    (502, 1, 'security', 'ent:security', 'Watches over the code.', 1735689600);
INSERT INTO team_organizations VALUES (501, 101);

INSERT INTO configurations VALUES
    (1001, 'enterprise', 1, 'Acme baseline', 'What every public repository gets.',
     '{"dependabot_alerts": "enabled", "secret_scanning": "enabled"}', 1735689600, 1735689600),
    (2001, 'organization', 101, 'Eng default', 'For most repositories.', '{"dependabot_alerts": "enabled"}', 1735689600, 1735689600),
    (2002, 'organization', 101, 'Eng strict', 'For what is shipped.',
     '{"advanced_security": "enabled", "code_scanning_default_setup": "enabled", "dependabot_alerts": "enabled", "secret_scanning": "enabled", "secret_scanning_push_protection": "enabled"}',
     1735689600, 1735689600),
    (2003, 'organization', 101, 'Eng scratch', 'For experiments.', '{"enforcement": "unenforced"}', 1735689600, 1735689600);
INSERT INTO configuration_defaults VALUES ('enterprise', 1, 'public', 1001);
INSERT INTO configuration_repositories VALUES (1001, 2001, 'attached'), (1002, 2003, 'attached');
INSERT INTO advanced_security_repositories VALUES (1001), (1003);
INSERT INTO enterprise_security VALUES (1, '{}');

INSERT INTO rulesets VALUES
    (3001, 'Enterprise', 1, 'Keep repositories', 'repository', 'active', '[]',
     '{"organization_name": {"include": ["~ALL"]}, "repository_name": {"include": ["~ALL"]}}',
     '[{"type": "repository_delete"}]', 1735689600, 1737504000),
    (3101, 'Organization', 102, 'Protect main', 'branch', 'active', '[]',
     '{"ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []}, "repository_name": {"include": ["~ALL"], "exclude": [], "protected": false}}',
     '[{"type": "deletion"}, {"type": "non_fast_forward"}]', 1735689600, 1735689600);
INSERT INTO ruleset_versions VALUES
    (31, 3001, 1, 'User', 1735689600,
     '{"name": "Keep repositories", "target": "repository", "enforcement": "disabled", "conditions": {"organization_name": {"include": ["acme-eng"]}, "repository_name": {"include": ["~ALL"]}}, "rules": [{"type": "repository_delete"}]}'),
    (32, 3001, 1, 'User', 1736640000,
     '{"name": "Keep repositories", "target": "repository", "enforcement": "evaluate", "conditions": {"organization_name": {"include": ["~ALL"]}, "repository_name": {"include": ["~ALL"]}}, "rules": [{"type": "repository_delete"}]}'),
    (33, 3001, 1, 'User', 1737504000,
     '{"name": "Keep repositories", "target": "repository", "enforcement": "active", "conditions": {"organization_name": {"include": ["~ALL"]}, "repository_name": {"include": ["~ALL"]}}, "rules": [{"type": "repository_delete"}]}');

INSERT INTO hooks VALUES
    (4001, 102, 'user', 1, '["push"]',
     '{"url": "http://127.0.0.1:9/hook", "content_type": "json", "insecure_ssl": "0"}', 1735689600, 1735689600);
INSERT INTO deliveries VALUES
    (9001, 4001, '00000000-0000-4000-8000-000000009001', 1736640000, 0, 0.12, 'OK', 200, 'push', NULL, 1003),
    (9002, 4001, '00000000-0000-4000-8000-000000009002', 1736726400, 0, 0.31, 'Internal Server Error', 500, 'push', NULL, 1003),
    (9003, 4001, '00000000-0000-4000-8000-000000009003', 1736812800, 0, 0.09, 'OK', 200, 'push', NULL, 1003);

INSERT INTO threads VALUES
    (1, 1, 1001, 'mention', 1, 'Issue', 'The greeting is too loud', 'issues/1', 1748736000, NULL),
    (2, 1, 1001, 'review_requested', 1, 'PullRequest', 'Say hello more quietly', 'pulls/2', 1746057600, NULL),
    (3, 1, 1001, 'assign', 0, 'Issue', 'Translate the greeting', 'issues/3', 1743465600, 1743552000),
    (4, 1, 1001, 'subscribed', 1, 'Issue', 'A greeting for the new year', 'issues/4', 1704067200, NULL);

INSERT INTO licenses VALUES (1, 100, 10, 'standard', 1893456000, 0);
INSERT INTO committers VALUES
    (1001, 2, 1748736000), (1001, 3, 1748649600), (1003, 3, 1748563200), (1003, 4, 1748476800);

INSERT INTO sequences VALUES
    ('user', 5), ('organization', 104), ('repository', 1005), ('team', 503), ('enterprise-configuration', 1002),
    ('organization-configuration', 2004), ('ruleset', 3102), ('ruleset-version', 34), ('hook', 4002), ('delivery', 9004), ('thread', 5);
