-- The sandbox's state. Instants are UTC epoch seconds; columns named *_json hold JSON; logins and names compare without case.
-- Areas that are not served yet have their tables and standard rows here already: others rely on the ids.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- The next id of each kind of thing that people see.
CREATE TABLE sequences (name TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;
-- Seed files that were applied, by the hash of their content: none is applied twice.
CREATE TABLE seeds (sha256 TEXT PRIMARY KEY, applied_at REAL NOT NULL) WITHOUT ROWID;

-- People and tokens --------------------------------------------------------------------------------------------------
CREATE TABLE enterprises (id INTEGER PRIMARY KEY, slug TEXT NOT NULL UNIQUE COLLATE NOCASE, name TEXT NOT NULL);
CREATE TABLE users (
    id INTEGER PRIMARY KEY, login TEXT NOT NULL UNIQUE COLLATE NOCASE, name TEXT NOT NULL, email TEXT NOT NULL,
    site_admin INTEGER NOT NULL DEFAULT 0, enterprise_owner INTEGER NOT NULL DEFAULT 0, created_at REAL NOT NULL
);
-- A password is known by the SHA-256 of LOGIN:PASSWORD, the login in lower case.
CREATE TABLE passwords (user_id INTEGER PRIMARY KEY REFERENCES users (id), digest BLOB NOT NULL);
-- A token is known by the SHA-256 of its text; it ends at `ends_at` (NULL: never) and is taken from `usable_at` on.
-- `app_id` is the App that it was made for; `repositories_json` the ids that it is limited to (NULL: to none).
CREATE TABLE tokens (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, user_id INTEGER NOT NULL REFERENCES users (id),
    organization_id INTEGER REFERENCES organizations (id), scopes_json TEXT NOT NULL DEFAULT '[]',
    permissions_json TEXT NOT NULL DEFAULT '{}', ends_at REAL, app_id INTEGER, installation_id INTEGER,
    repositories_json TEXT, is_scoped INTEGER NOT NULL DEFAULT 0, usable_at REAL NOT NULL DEFAULT 0,
    sso_json TEXT NOT NULL DEFAULT '[]'
);
-- When tokens of the command line end: given again at a later start, they end when they did.
CREATE TABLE lent_tokens (digest BLOB PRIMARY KEY, ends_at REAL NOT NULL) WITHOUT ROWID;

-- Apps ---------------------------------------------------------------------------------------------------------------
-- keys_json: public keys as PEM, or the files that hold them, which are read each time; settings_json: of the device flow.
CREATE TABLE apps (
    id INTEGER PRIMARY KEY, client_id TEXT NOT NULL UNIQUE, slug TEXT NOT NULL UNIQUE COLLATE NOCASE, name TEXT NOT NULL,
    secret_digest BLOB, user_id INTEGER NOT NULL, permissions_json TEXT NOT NULL, keys_json TEXT NOT NULL,
    settings_json TEXT NOT NULL, created_at REAL NOT NULL
);
CREATE TABLE installations (
    id INTEGER PRIMARY KEY, app_id INTEGER NOT NULL, organization_id INTEGER NOT NULL, permissions_json TEXT NOT NULL,
    repositories_json TEXT, suspended_at REAL, created_at REAL NOT NULL, UNIQUE (app_id, organization_id)
);
-- A refresh token works once: `token_digest` is the token that was given with it, and goes with it.
CREATE TABLE refresh_tokens (digest BLOB PRIMARY KEY, token_digest BLOB NOT NULL, app_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL, ends_at REAL NOT NULL) WITHOUT ROWID;

-- Organizations and repositories -------------------------------------------------------------------------------------
CREATE TABLE organizations (
    id INTEGER PRIMARY KEY, enterprise_id INTEGER NOT NULL REFERENCES enterprises (id),
    login TEXT NOT NULL UNIQUE COLLATE NOCASE, name TEXT NOT NULL, description TEXT NOT NULL DEFAULT '', created_at REAL NOT NULL
);
CREATE TABLE memberships (
    organization_id INTEGER NOT NULL REFERENCES organizations (id), user_id INTEGER NOT NULL REFERENCES users (id),
    role TEXT NOT NULL CHECK (role IN ('owner', 'security_manager', 'member')), PRIMARY KEY (organization_id, user_id)
) WITHOUT ROWID;
-- Who sees what the enterprise pays for, besides its administrators.
CREATE TABLE billing_managers (user_id INTEGER PRIMARY KEY REFERENCES users (id), enterprise_id INTEGER NOT NULL);
-- A rename that was accepted and is not done yet; event_json is what webhooks will be told.
CREATE TABLE renames (
    organization_id INTEGER PRIMARY KEY, login TEXT NOT NULL UNIQUE COLLATE NOCASE, due_at REAL NOT NULL, event_json TEXT NOT NULL
);
CREATE TABLE repositories (
    id INTEGER PRIMARY KEY, organization_id INTEGER NOT NULL REFERENCES organizations (id), name TEXT NOT NULL COLLATE NOCASE,
    private INTEGER NOT NULL DEFAULT 0, description TEXT NOT NULL DEFAULT '', default_branch TEXT NOT NULL DEFAULT 'main',
    created_at REAL NOT NULL, UNIQUE (organization_id, name)
);
-- Files that a seed file gave a repository: its first commit, made when the repository is first opened.
CREATE TABLE seed_files (
    repository_id INTEGER NOT NULL, path TEXT NOT NULL, content BLOB NOT NULL, PRIMARY KEY (repository_id, path)
) WITHOUT ROWID;
-- Generated repositories, not stored one by one (fleet.py); their ids are first_id, first_id + 1, …
CREATE TABLE fleets (
    first_id INTEGER PRIMARY KEY, organization_id INTEGER NOT NULL REFERENCES organizations (id), prefix TEXT NOT NULL,
    count INTEGER NOT NULL, readme_bytes INTEGER NOT NULL, created_at REAL NOT NULL, UNIQUE (organization_id, prefix)
);

-- Enterprise teams ---------------------------------------------------------------------------------------------------
CREATE TABLE teams (
    id INTEGER PRIMARY KEY, enterprise_id INTEGER NOT NULL, name TEXT NOT NULL, slug TEXT NOT NULL UNIQUE COLLATE NOCASE,
    description TEXT NOT NULL DEFAULT '', created_at REAL NOT NULL
);
CREATE TABLE team_organizations (
    team_id INTEGER NOT NULL, organization_id INTEGER NOT NULL, PRIMARY KEY (team_id, organization_id)
) WITHOUT ROWID;

-- Code security ------------------------------------------------------------------------------------------------------
-- settings_json holds what differs from the defaults of creation.
CREATE TABLE configurations (
    id INTEGER PRIMARY KEY, target_type TEXT NOT NULL CHECK (target_type IN ('enterprise', 'organization')),
    target_id INTEGER NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL DEFAULT '', settings_json TEXT NOT NULL DEFAULT '{}',
    created_at REAL NOT NULL, updated_at REAL NOT NULL, UNIQUE (target_type, target_id, name)
);
CREATE TABLE configuration_defaults (
    target_type TEXT NOT NULL, target_id INTEGER NOT NULL, default_for_new_repos TEXT NOT NULL, configuration_id INTEGER NOT NULL,
    PRIMARY KEY (target_type, target_id, default_for_new_repos)
) WITHOUT ROWID;
CREATE TABLE configuration_repositories (
    repository_id INTEGER PRIMARY KEY, configuration_id INTEGER NOT NULL, status TEXT NOT NULL
);
CREATE INDEX configuration_repositories_of ON configuration_repositories (configuration_id, repository_id);
-- An attachment that was accepted and is not done yet: at most one of each organization. `is_licensed`: seats were enough.
CREATE TABLE attachments (
    organization_id INTEGER PRIMARY KEY, configuration_id INTEGER NOT NULL, repositories_json TEXT NOT NULL,
    is_licensed INTEGER NOT NULL, due_at REAL NOT NULL
);
-- Repositories that use advanced security: their committers take its seats.
CREATE TABLE advanced_security_repositories (repository_id INTEGER PRIMARY KEY);
CREATE TABLE enterprise_security (enterprise_id INTEGER PRIMARY KEY, settings_json TEXT NOT NULL DEFAULT '{}');
-- Which enablement a product was given in all repositories of an enterprise, and the action that is in progress.
CREATE TABLE enterprise_products (
    enterprise_id INTEGER NOT NULL, product TEXT NOT NULL, enablement TEXT NOT NULL, PRIMARY KEY (enterprise_id, product)
) WITHOUT ROWID;
CREATE TABLE enterprise_enablements (enterprise_id INTEGER PRIMARY KEY, change_json TEXT NOT NULL, due_at REAL NOT NULL);

-- Rulesets -----------------------------------------------------------------------------------------------------------
CREATE TABLE rulesets (
    id INTEGER PRIMARY KEY, source_type TEXT NOT NULL CHECK (source_type IN ('Enterprise', 'Organization')),
    source_id INTEGER NOT NULL, name TEXT NOT NULL, target TEXT NOT NULL, enforcement TEXT NOT NULL,
    bypass_actors_json TEXT NOT NULL DEFAULT '[]', conditions_json TEXT NOT NULL DEFAULT '{}', rules_json TEXT NOT NULL DEFAULT '[]',
    created_at REAL NOT NULL, updated_at REAL NOT NULL, UNIQUE (source_type, source_id, name)
);
CREATE TABLE ruleset_versions (
    version_id INTEGER PRIMARY KEY, ruleset_id INTEGER NOT NULL, actor_id INTEGER NOT NULL, actor_type TEXT NOT NULL,
    updated_at REAL NOT NULL, state_json TEXT NOT NULL
);

-- Webhooks -----------------------------------------------------------------------------------------------------------
-- creator_kind: `oauth` for those of OAuth applications, else `user`.
CREATE TABLE hooks (
    id INTEGER PRIMARY KEY, organization_id INTEGER NOT NULL, creator_kind TEXT NOT NULL DEFAULT 'user', active INTEGER NOT NULL DEFAULT 1,
    events_json TEXT NOT NULL, config_json TEXT NOT NULL, created_at REAL NOT NULL, updated_at REAL NOT NULL
);
CREATE INDEX hooks_of ON hooks (organization_id);
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY, hook_id INTEGER NOT NULL, guid TEXT NOT NULL, delivered_at REAL NOT NULL, redelivery INTEGER NOT NULL DEFAULT 0,
    duration REAL NOT NULL, status TEXT NOT NULL, status_code INTEGER NOT NULL, event TEXT NOT NULL, action TEXT,
    repository_id INTEGER
);
CREATE INDEX deliveries_of ON deliveries (hook_id, id);

-- Notifications ------------------------------------------------------------------------------------------------------
CREATE TABLE threads (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, repository_id INTEGER NOT NULL, reason TEXT NOT NULL, unread INTEGER NOT NULL,
    subject_type TEXT NOT NULL, subject_title TEXT NOT NULL, subject_path TEXT NOT NULL, updated_at REAL NOT NULL, last_read_at REAL
);
CREATE INDEX threads_of ON threads (user_id, updated_at);
-- When a user's threads last changed otherwise than by a new one.
CREATE TABLE inboxes (user_id INTEGER PRIMARY KEY, changed_at REAL NOT NULL);
-- Threads that are being marked as read: all of a user's that were updated no later than last_read_at.
CREATE TABLE notification_reads (user_id INTEGER PRIMARY KEY, last_read_at REAL NOT NULL, due_at REAL NOT NULL);

-- Licenses -----------------------------------------------------------------------------------------------------------
-- standalone: the products of advanced security are licensed one by one.
CREATE TABLE licenses (
    enterprise_id INTEGER PRIMARY KEY, seats INTEGER NOT NULL, advanced_security_seats INTEGER NOT NULL, kind TEXT NOT NULL,
    expire_at REAL NOT NULL, standalone INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE committers (
    repository_id INTEGER NOT NULL, user_id INTEGER NOT NULL, last_pushed_at REAL NOT NULL, PRIMARY KEY (repository_id, user_id)
) WITHOUT ROWID;

-- Dependency snapshots: the latest of each repository, correlator and detector -----------------------------------------
-- `origin` is a number: the lower, the more it is worth. `body` is JSON.
CREATE TABLE snapshots (
    id INTEGER PRIMARY KEY, repository_id INTEGER NOT NULL, correlator TEXT NOT NULL, detector TEXT NOT NULL,
    origin INTEGER NOT NULL, digest BLOB NOT NULL, user_id INTEGER NOT NULL, created_at REAL NOT NULL, body TEXT NOT NULL,
    UNIQUE (repository_id, correlator, detector)
);
-- Every manifest file that a kept snapshot reports, the first of each file first; one without a file is known by its name.
CREATE VIEW reported_manifests AS
SELECT repository_id, source_location, snapshot_id, origin, correlator, detector, manifest, row_number() OVER (
    PARTITION BY repository_id, source_location ORDER BY origin, correlator, detector, snapshot_id, place) AS rank
FROM (
    SELECT repository_id, snapshots.id AS snapshot_id, origin, correlator, detector, entries.id AS place, entries.value AS manifest,
        coalesce(nullif(json_extract(entries.value, '$.file.source_location'), ''), json_extract(entries.value, '$.name'))
            AS source_location
    FROM snapshots, json_each(body, '$.manifests') AS entries WHERE entries.type = 'object');
-- For each of these files, what the platform shows of it: the first, and what others of its detector and origin resolve.
-- It is worked out when somebody looks: to keep it with each snapshot would cost the more the more of them there are.
CREATE VIEW shown_manifests AS
SELECT repository_id, source_location, snapshot_id, correlator, detector, json_set(manifest, '$.resolved', json((
    SELECT json_group_object(key, json(value)) FROM (
        SELECT packages.key, packages.value, row_number() OVER (PARTITION BY packages.key ORDER BY other.rank) AS rank
        FROM reported_manifests AS other, json_each(other.manifest, '$.resolved') AS packages
        WHERE (other.repository_id, other.source_location, other.origin, other.detector)
            = (first.repository_id, first.source_location, first.origin, first.detector) AND packages.type = 'object')
    WHERE rank = 1))) AS manifest
FROM reported_manifests AS first WHERE rank = 1;
