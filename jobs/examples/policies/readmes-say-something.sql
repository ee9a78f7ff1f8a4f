-- policy: readmes-say-something
-- severity: note
-- key: owner, repo
-- message: {owner}/{repo}: the README has {size} bytes
-- description: A README of less than a hundred bytes explains nothing.
SELECT owner, repo, result.size AS size
FROM readme_get
WHERE result.size < 100
