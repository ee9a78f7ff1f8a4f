"""The flaw of an items file without items: a pipeline that had nothing to write looks like one that broke."""

from bulk.manifest.manifest import Job


def no_items(job: Job, size: int = 0) -> str:
    """Return the flaw of an items file, or of a list in the manifest, that holds no items.

    Args:
        size: size of the file (bytes).
    """
    what = "holds no items" if size else "is empty"
    if size and job.items_path is not None and job.items_path.suffix == ".csv":
        what = "holds a header and no items"
    return f"{what}: add some, or write allow_empty: true into the job {job.name}, where that is fine"
