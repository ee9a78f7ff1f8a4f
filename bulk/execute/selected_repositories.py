"""Explains why an App was refused an item: its installation may be for selected repositories, and not for the item's.

A private repository that is not selected answers 404, as if it were not there. A public one may be read all the same,
so that no item can be refused before it was tried. Each repository is asked for once, in the App's own name.
"""

from bulk.govern.permits.accounts import Account
from bulk.manifest.manifest import Entry
from bulk.model import ErrorCode, Outcome, failed
from bulk.operation import owner_of
from bulk.platform.auth.installations import InstallationSource

_REFUSALS = (ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN)


async def explained(outcome: Outcome, entry: Entry, account: Account) -> Outcome:
    """Return the outcome of an item that was sent as `account`; `forbidden`, with the reason, where its repository is
    none of the selected ones."""
    is_refused = outcome.is_missing or (outcome.error is not None and outcome.error.code in _REFUSALS)
    source = account.source
    if not is_refused or not isinstance(source, InstallationSource) or not source.installation.is_selected:
        return outcome
    owner, repo, _ = owner_of(entry.item)
    if not repo or await source.covers(owner, repo):
        return outcome
    why = f"the App is installed in {owner} for selected repositories, and {repo} is none of them"
    return failed(ErrorCode.FORBIDDEN, f"{why} (credential {account.name!r})", http_status=outcome.http_status)
