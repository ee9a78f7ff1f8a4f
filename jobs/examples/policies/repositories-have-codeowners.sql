-- policy: repositories-have-codeowners
-- severity: error
-- fail_if: > 0
-- key: owner, repo
-- message: {owner}/{repo} has no CODEOWNERS
-- description: Somebody answers for each repository. The job reads the file with missing: ok.
SELECT owner, repo
FROM contents_get
WHERE missing AND path IN ('CODEOWNERS', '.github/CODEOWNERS', 'docs/CODEOWNERS')
