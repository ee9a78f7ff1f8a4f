"""The process of a worker that `bulk run --workers` starts: its settings come through its standard input.

It ends when that pipe ends, so that no worker outlives the command, however the command ended.
"""

import logging
import os
import sys
from pathlib import Path

import msgspec

from bulk.cli import errors, event_loop, logs, output
from bulk.storage.child_process import STDIN, end_with_stdin


def main() -> int:
    """Work until a signal comes, or until the process that started this one is gone."""
    output.prepare_streams()
    from bulk.bundle.secret_fields import SecretPlaces
    from bulk.cluster.local.local_workers import Told
    from bulk.cluster.worker import Worker, WorkerSettings
    from bulk.store import address

    with open(STDIN, "rb", buffering=0, closefd=False) as pipe:  # nothing of it waits in a buffer when this ends
        given = pipe.readline()
    if not given:
        return 0
    told = msgspec.json.decode(given, type=Told)
    logs.set_up(logging.getLevelName(told.log_level), "text")
    end_with_stdin()
    settings = WorkerSettings(
        store=address.read(told.store),
        base_urls=[told.base_url],
        credentials=told.credentials,
        folder=Path(told.folder),
        ttl_s=told.lease_s,
        secrets=SecretPlaces(Path(told.secrets), os.environ),
    )
    try:
        event_loop.run(Worker(settings).run)
    except BaseException as error:  # noqa: BLE001 - as in `bulk.cli.app.main`
        return errors.exit_code_of(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
