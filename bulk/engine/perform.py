"""Does the items of a checked manifest that are left, all at once or wave by wave, until the end or a stop."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from bulk.bundle.checked import Checked
from bulk.engine.agreement.gates import WaveBudgets
from bulk.engine.run import Run
from bulk.engine.surroundings import Ended, Surroundings
from bulk.errors import BulkError
from bulk.execute.resume_state import ResumeState
from bulk.ledger.ledger import Ledger
from bulk.ledger.protocol import RunLedger
from bulk.platform.auth.manifest_credentials import AnyCredential
from bulk.report.render.formatting import duration
from bulk.report.tally import Tally
from bulk.status import Display
from bulk.storage.disk_threads import beside


async def perform(
    checked: Checked,
    ledger: RunLedger,
    resume_state: ResumeState,
    credentials: Mapping[str, AnyCredential],
    display: Display,
    around: Surroundings,
    *,
    attach: Callable[[Run], None] = lambda _: None,
) -> Ended:
    """Do all items that are left, and end the ledger's epoch.

    Args:
        attach: is called with the run before it begins.

    Raises:
        BulkError: nothing could be sent, or outcomes could not be recorded.
    """
    run = Run(checked, ledger, resume_state, credentials, display, around)
    attach(run)
    return await _finished(run, ledger, around, *await _to_its_end(run))


async def perform_waves(
    checked: Checked,
    ledger: Ledger,
    found: Callable[[], Awaitable[tuple[ResumeState, Tally | None]]],
    budgets: WaveBudgets,
    credentials: Mapping[str, AnyCredential],
    display: Display,
    around: Surroundings,
    attach: Callable[[Run], None],
) -> Ended:
    """Do all items that are left wave by wave, each wave with its own `Run` in the same epoch; without waves, with one.

    Args:
        found: reads from the ledger what has ended so far. attach: is called with each run before it begins.
    """
    around.began_at, around.before = around.clock.monotonic(), None
    around.opens_at = budgets.waits_until(around.clock)
    around.judge, around.on_made = (budgets.note, budgets.made) if budgets.is_wanted else (None, None)
    before: Run | None = None
    while True:
        resume_state, tally = await found()
        if budgets.is_wanted:
            budgets.begin(resume_state.progress, ledger.view())
        run = Run(checked, ledger, resume_state, credentials, display, around, tally)
        attach(run)
        if before is not None:
            run.actions += before.actions  # actions of people at the very end of the run before
        if budgets.gates.opened_by:
            recorded = await beside(around.disk, lambda: ledger.view().actions())
            run.actions += budgets.unrecorded((*recorded, *run.actions))
        before = run
        failure: BulkError | None = None
        reason = budgets.reason
        if reason is None:
            ended, failure = await _to_its_end(run)
            if failure is not None or not budgets.is_wanted or not run.has_run_dry:
                break
            progress = resume_state.progress
            reason = await beside(around.disk, partial(budgets.closed, progress))
        if reason is not None:
            ended = Ended(reason.exit_code, str(reason))
            break
        around.before, minute = run.last_status, run.last_minute
        await around.disk(partial(ledger.commit, (), around.before, minute=minute))
        if budgets.limits.gate_after_s:
            display.note(f"the next wave begins in {duration(budgets.limits.gate_after_s)}")
            around.opens_at = await beside(around.disk, lambda: budgets.wait(around.clock))
    return await _finished(run, ledger, around, ended, failure)


async def _finished(
    run: Run, ledger: RunLedger, around: Surroundings, ended: Ended, failure: BulkError | None
) -> Ended:
    """End the epoch, then raise `failure` if there is one."""
    last, minute, actions = run.last_status, run.last_minute, run.actions
    await around.disk(lambda: ledger.finish(ended.exit_code, ended.why, last, minute, actions))
    if failure is not None:
        raise failure
    return ended


async def _to_its_end(run: Run) -> tuple[Ended, BulkError | None]:
    """Execute the run; return how it ended, and its error or None, so that the caller can end the epoch cleanly."""
    failure: BulkError | None = None
    try:
        return await run.execute(), None
    except* BulkError as group:
        failure = _first(group)
    assert failure is not None, "execute returns or raises"
    return Ended(failure.exit_code, str(failure)), failure


def _first(group: BaseExceptionGroup[BulkError]) -> BulkError:
    """Return the one error to report: exception groups are unwrapped here and nowhere else."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, BulkError), "except* selects them"
    return error
