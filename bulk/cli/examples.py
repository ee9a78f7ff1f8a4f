"""Copies the example manifests that come with Bulk to where a user can read, change and run them."""

import shutil
from importlib import resources
from pathlib import Path

from bulk.errors import UsageError
from bulk.storage.new_files import arriving, settle


def copy_examples(folder: Path) -> None:
    """Copy all examples into `folder`, which is made where it is not there.

    Raises:
        UsageError: the folder holds something already, or can't be written.
    """
    package = Path(str(resources.files("bulk_jobs")))
    # a wheel has the examples in the package, a working copy beside it
    examples = next(place for place in (package / "examples", package.parent / "examples") if place.is_dir())
    try:
        settle(folder)
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise UsageError(f"{folder} exists already, and nothing is overwritten: name a new folder")
        with arriving(folder) as part:
            for file in examples.rglob("*"):
                if file.is_file() and file.suffix != ".py" and "__pycache__" not in file.parts:
                    place = part / file.relative_to(examples)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, place)
    except OSError as error:
        raise UsageError(f"{folder}: can't be written: {error.strerror}; name another folder") from None
