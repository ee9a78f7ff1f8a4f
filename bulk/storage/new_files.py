"""New files for a user's own folder: all of them arrive, or none. A full disk leaves no half of them behind."""

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def arriving(folder: Path) -> Iterator[Path]:
    """Lend an empty folder; the files that are put into it move to `folder` when the block ends, which is made where it
    is not there. If the block raises, nothing of them is left.

    Raises:
        FileExistsError: one of them is there already; nothing is replaced, and none has moved.
        OSError: `folder` can't be written.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".arriving-", dir=folder))
    try:
        yield part
        places = {file: folder / file.relative_to(part) for file in sorted(part.rglob("*")) if not file.is_dir()}
        for place in places.values():
            if os.path.lexists(place):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
        for file, place in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            file.rename(place)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        with contextlib.suppress(OSError):  # somebody else has put something there meanwhile
            for made in missing:
                made.rmdir()
        raise
    shutil.rmtree(part, ignore_errors=True)
