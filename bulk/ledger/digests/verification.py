"""Checks that a run directory is as the run has written it: the chain, every line, the files, and the report.

All flaws are found and reported; no file is changed, and a flaw raises no error. Source:
interface.md §5.
"""

import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from bulk.errors import BulkError, RunDirectoryError
from bulk.ledger import companion_files, rows, seal
from bulk.ledger.database import LEDGER, has_table, open_reader
from bulk.ledger.digests import chain, file_digests
from bulk.ledger.digests.chain import LeafKind
from bulk.ledger.digests.lines import LastLeaves, Place, divided, wrong_lines
from bulk.ledger.directory import RESULTS, is_held
from bulk.ledger.view import LedgerView
from bulk.status import Tell, untold
from bulk.storage.private_files import open_regular

REPORT = "report.json"


class Flaw(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as the run has written it.

    Attributes:
        what: the kind of flaw: `file`, `chain`, `line`, `order`, `ledger`, `report` or `head`.
        file: the file that has the flaw. job, index: the item that the flaw is about.
        message: for people.
    """

    what: str
    file: str
    message: str
    job: str | None = None
    index: int | None = None


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a verification.

    Attributes:
        head: head of the chain, in hexadecimal; empty where it can't be read.
        outcomes, intents, links: items with an outcome, open intents, and links of the chain (counts).
        unbound: outcomes from before the chain began (count).
        is_ended: whether the run has ended as it should, so that the rest of its files is covered, too.
        flaws: all flaws; empty where all is intact.
    """

    head: str
    outcomes: int
    intents: int
    links: int
    unbound: int
    is_ended: bool
    flaws: tuple[Flaw, ...]


class _Found:
    """Collects what a verification finds on the way."""

    def __init__(self) -> None:
        self.flaws: list[Flaw] = []
        self.head = ""
        self.outcomes = self.intents = self.links = self.unbound = 0

    def add(self, what: str, file: str, message: str, job: str | None = None, index: int | None = None) -> None:
        self.flaws.append(Flaw(what=what, file=file, message=message, job=job, index=index))


def verify(run_dir: Path, *, expect: str | None = None, tell: Tell = untold) -> Verification:
    """Compare a run directory with its chain; 1,000,000 outcomes take some seconds.

    Args:
        expect: a head that was kept elsewhere, in hexadecimal; its first 12 digits are enough.
        tell: is told how many items were looked at (count), now and then.

    Raises:
        RunDirectoryError: `run_dir` is not a run directory, or a process works on it.
    """
    if is_held(run_dir):
        raise RunDirectoryError(f"{run_dir} is in use: wait until the run has ended, or stop it with `bulk stop`")
    LedgerView(run_dir)
    found = _Found()
    is_ended = _check_files(run_dir, found)
    try:
        with open_reader(run_dir / LEDGER) as connection:
            _check_ledger(run_dir, connection, found, tell)
            _check_report(run_dir, connection, found)
            if expect is not None:
                _check_head(connection, expect, found)
    except BulkError as error:
        found.add("ledger", LEDGER, str(error))
    except (ValueError, TypeError, LookupError, OverflowError, OSError, MemoryError) as error:
        found.add("ledger", LEDGER, f"it can't be understood: {error}")
    return Verification(
        head=found.head,
        outcomes=found.outcomes,
        intents=found.intents,
        links=found.links,
        unbound=found.unbound,
        is_ended=is_ended,
        flaws=tuple(found.flaws),
    )


def _check_files(run_dir: Path, found: _Found) -> bool:
    """Compare the files with `digests.json`; return whether that could be read."""
    try:
        known = file_digests.read_digests(run_dir)
    except (OSError, ValueError) as error:
        found.add("file", file_digests.DIGESTS, f"it can't be read: {error}")
        return False
    if known is None:
        return False
    for name, wanted in known.files.items():
        try:
            is_so = file_digests.digest_of(run_dir / name) == wanted
        except OSError as error:
            found.add("file", name, f"it can't be read: {error.strerror}")
            continue
        if not is_so:
            found.add("file", name, "it is not as it was when the run ended")
    found.head = known.head
    return True


def _check_ledger(run_dir: Path, connection: sqlite3.Connection, found: _Found, tell: Tell) -> None:
    if not has_table(connection, "links"):
        raise RunDirectoryError("the run was made by a version without a digest chain")
    last, others, undone = LastLeaves(), dict[tuple[int, int, int], bytes](), set[tuple[int, int]]()
    noted = found.head
    head = chain.GENESIS
    for place, (number, kept, leaves) in enumerate(connection.execute("SELECT * FROM links ORDER BY number"), 1):
        found.links = place
        head = hashlib.sha256(head + leaves).digest()
        if number != place or head != kept or len(leaves) % chain.LEAF.size:
            found.add("chain", LEDGER, f"link {place:,} of the chain is not what its leaves and the links before say")
            head = kept
            continue  # the leaves of this link are not to be trusted
        for kind, job, index, digest in last.add(leaves):
            if kind in (LeafKind.REOPENED, LeafKind.WITHDRAWN):
                undone.add((job, index))  # from here on the item need have neither line nor intent
                continue
            others[kind, job, index] = digest
            if kind == LeafKind.INTENT:
                undone.discard((job, index))
    found.head = bytes.hex(head)
    if noted and noted != found.head:
        found.add("head", file_digests.DIGESTS, "it ends with another head than the chain")
    _check_lines(run_dir, connection, last, found, tell)
    _check_rows(connection, others, found)
    _check_open(connection, [key for key in others if key[1:] not in undone], last, found)
    _check_parts(run_dir, connection, others, found)
    _check_sums(connection, found)


def _check_lines(run_dir: Path, connection: sqlite3.Connection, last: LastLeaves, found: _Found, tell: Tell) -> None:
    names = dict(connection.execute("SELECT number, name FROM jobs").fetchall())
    (outcomes,) = connection.execute("SELECT count(*) FROM outcomes").fetchone()
    bound = last.count()
    found.outcomes = outcomes

    def add(what: str, places: list[Place], message: str) -> None:
        for place in places:
            found.add(what, RESULTS, message, names.get(place.job), place.item)

    try:
        results = open_regular(run_dir / RESULTS, follows=True)
    except OSError as error:
        found.add("file", RESULTS, f"it can't be read: {error.strerror}")
        return
    with open(results, "rb") as file:
        other = list(wrong_lines(connection, file.fileno(), last, tell))
        wrong = [place for place, is_bound in other if is_bound]
        found.unbound = len(other) - len(wrong)
        if wrong:
            gone, swapped = divided(wrong, file.fileno(), last)
            add("line", gone, "its line was changed or removed")
            add("order", swapped, "its line stands in the place of another one")
            if not gone and not swapped:
                found.add("line", RESULTS, "its lines do not stand where they were written")
        (end,) = connection.execute("SELECT results_bytes FROM meta").fetchone()
        for start, stop in seal.edited(connection, file.fileno()):
            found.add("file", RESULTS, f"between bytes {start:,} and {stop:,} it is not as it was written")
        size = os.fstat(file.fileno()).st_size
        if size != end and not wrong:
            found.add("line", RESULTS, f"it has {size:,} bytes, and the ledger knows {end:,}")
    if bound != outcomes - found.unbound:
        ended = set(connection.execute("SELECT job, idx FROM outcomes").fetchall())
        for job, index in sorted(set(last.items()) - ended):
            found.add("ledger", LEDGER, "its outcome was removed", names.get(job), index)


def _check_rows(connection: sqlite3.Connection, others: dict[tuple[int, int, int], bytes], found: _Found) -> None:
    """Compare open intents and before-images with their leaves."""
    names = dict(connection.execute("SELECT number, name FROM jobs").fetchall())
    for kind, table, name in ((LeafKind.INTENT, "intents", "intent"), (LeafKind.BEFORE, "befores", "before-image")):
        for row in connection.execute(f"SELECT * FROM {table}"):
            wanted = others.get((kind, row[0], row[1]))
            if wanted is not None and wanted != chain.row_digest(row):
                found.add("ledger", LEDGER, f"its {name} was changed", names.get(row[0]), row[1])
            found.intents += kind is LeafKind.INTENT


def _check_open(
    connection: sqlite3.Connection, written: Iterable[tuple[int, int, int]], last: LastLeaves, found: _Found
) -> None:
    """Look for intents that are gone, although their items have not ended and the intents were not taken back.

    Args:
        written: kind, job and index of the leaves that were written.
    """
    names = dict(connection.execute("SELECT number, name FROM jobs").fetchall())
    kept = set(connection.execute("SELECT job, idx FROM intents").fetchall())
    for kind, job, index in written:
        if kind == LeafKind.INTENT and (job, index) not in kept and last.of(job, index) == chain.NOTHING:
            found.add("ledger", LEDGER, "its intent was removed", names.get(job), index)


def _check_parts(
    run_dir: Path, connection: sqlite3.Connection, others: dict[tuple[int, int, int], bytes], found: _Found
) -> None:
    """Compare the files that the run was begun with: the ledger with the chain, and the files with the ledger."""
    parts = companion_files.bound(connection)
    leaf = chain.parts_leaf(msgspec.structs.astuple(rows.read_identity(connection)), parts)
    wanted = others.get((LeafKind.PARTS, 0, 0))
    if wanted is not None and chain.LEAF.unpack(leaf)[3] != wanted:
        found.add("ledger", LEDGER, "whose run it is, or what it was begun with, was changed")
    for name, part in parts.items():
        now = companion_files.digest_of(run_dir / name)
        if now != part:
            how = "is gone" if now is None else "is not what the run was begun with"
            found.add("file", name, f"it {how}")


def _check_sums(connection: sqlite3.Connection, found: _Found) -> None:
    """Compare the sums that each commit keeps with the outcomes."""
    kept = connection.execute("SELECT job, outcome, code, items, bytes FROM counts WHERE items > 0").fetchall()
    counted = connection.execute("SELECT job, outcome, code, count(*), sum(length) FROM outcomes GROUP BY 1, 2, 3")
    if sorted(kept) != sorted(counted):
        found.add("ledger", LEDGER, "its counts are not those of its outcomes")


def _check_report(run_dir: Path, connection: sqlite3.Connection, found: _Found) -> None:
    """Compare the report with the ledger, where the run has one."""
    path = run_dir / REPORT
    if not path.is_file():
        return
    try:
        report = msgspec.json.decode(path.read_bytes())
        head, told = report.get("head"), report["outcomes"]
    except (OSError, ValueError, LookupError, AttributeError) as error:
        found.add("report", REPORT, f"it can't be read: {error}")
        return
    counts: Counter[str] = Counter()
    for kinds in rows.read_counts(connection).values():
        counts.update(kinds)
    last = connection.execute("SELECT ended_at FROM epochs ORDER BY number DESC LIMIT 1").fetchone()
    if last is None or last[0] is None:
        return  # the run went on after the report
    if {kind: count for kind, count in told.items() if count} != +counts:
        found.add("report", REPORT, "its counts are not those of the ledger")
    if head is not None and head != found.head:
        found.add("report", REPORT, "it ends with another head than the chain")


def _check_head(connection: sqlite3.Connection, expect: str, found: _Found) -> None:
    wanted = expect.strip().lower()
    if found.head.startswith(wanted):
        return
    earlier = next((number for number, head in _heads(connection) if head.startswith(wanted)), None)
    why = (
        f"the head that is expected was that of link {earlier:,}: the run went on since"
        if earlier is not None
        else "the head that is expected is none of this chain: the directory is another one, or was made anew"
    )
    found.add("head", LEDGER, why)


def _heads(connection: sqlite3.Connection) -> Iterator[tuple[int, str]]:
    for number, head in connection.execute("SELECT number, head FROM links ORDER BY number"):
        yield number, head.hex()
