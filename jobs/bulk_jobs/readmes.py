"""The preferred README of a repository.

Source: specification, Repository contents, GET /repos/{owner}/{repo}/readme.
"""

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from bulk import urls
from bulk.capabilities import ProvesAbsence, Returns, SavesContent
from bulk.model import Outcome
from bulk.operation import Item, ItemFlaw, Steps
from bulk_jobs import accesses
from bulk_jobs.result_types import FileContent
from bulk_jobs.shared import names
from bulk_jobs.shared.files import absence, file_proofs, file_reads


class ReadmeItem(Item, frozen=True, kw_only=True):
    """Names the repository, and says in which form its README is read."""

    owner: names.Owner
    repo: names.Repo
    ref: names.Ref | None = None
    media_type: file_reads.MediaType = "json"


class GetReadme(SavesContent[ReadmeItem], ProvesAbsence[ReadmeItem], Returns[FileContent]):
    """Read the README that the platform prefers for a repository.

    Requests:  1; for a README above 1 MB as json or object 2, or 4 where it changes in between, which a plan does not
               count, nor a second one for an empty one as raw or html. missing: ok: 1 more, the root's listing;
               2 more where that shows a README all the same.
    Category:  core. Lane: none.
    Result:    the file object with its Base64 content; for raw and html `size` and `sha256`. `save` writes the bytes.
    Lost answer: a read is repeated.
    Source:    Repository contents, GET /repos/{owner}/{repo}/readme.
    """

    name = "readme.get"
    access = accesses.CONTENTS_READ
    Item = ReadmeItem
    result_is_reply = True
    untabled = file_reads.UNTABLED
    example: ClassVar = {"owner": "acme-eng", "repo": "hello-world"}

    def check(self, item: ReadmeItem) -> Iterator[ItemFlaw]:
        yield from names.flaws_of_repository(item.owner, item.repo)
        if item.ref is not None:
            flaw = names.flaw_of_text(item.ref)
            if flaw:
                yield ItemFlaw("ref", flaw)

    def steps(self, item: ReadmeItem) -> Steps:
        path = f"/repos/{urls.segment(item.owner)}/{urls.segment(item.repo)}/readme"
        query = urls.query(ref=item.ref) if item.ref is not None else ""
        proof = file_proofs.of_file(file_proofs.of_place(item.owner, item.repo, None))
        return file_reads.fetch(path, query, item.media_type, {}, proof, is_saving=self.is_saving)

    def steps_or_absent(self, item: ReadmeItem) -> Steps:
        return (yield from absence.of_readme(item.owner, item.repo, item.ref, partial(GetReadme.steps, self, item)))

    def saved_bytes(self, outcome: Outcome) -> bytes | None:
        return file_reads.saved_bytes(outcome)
