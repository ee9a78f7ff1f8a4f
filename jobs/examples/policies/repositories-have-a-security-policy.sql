-- policy: repositories-have-a-security-policy
-- severity: warning
-- fail_if: > 1% of items
-- key: owner, repo
-- message: {owner}/{repo} has no SECURITY.md
-- description: People know where to report a weakness. The job reads the file with missing: ok.
SELECT owner, repo
FROM contents_get
WHERE missing AND path IN ('SECURITY.md', '.github/SECURITY.md')
