"""Names of files as text: the system lets a name be any bytes, and nothing else that Bulk writes may be."""


def is_text(given: str) -> bool:
    """Return whether an argument, a name or a path can be written into a file."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def text_of(given: str) -> str:
    r"""Return a name or a path as text that can be written: a byte that is not UTF-8 becomes `\xNN`."""
    return given if is_text(given) else given.encode(errors="surrogateescape").decode(errors="backslashreplace")
