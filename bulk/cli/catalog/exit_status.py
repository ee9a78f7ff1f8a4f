"""Exit codes as a section of the manual page, which the generator of manual pages leaves out: `make man` appends it."""

import sys

from bulk.cli.app import EPILOG


def section() -> str:
    """Return `EXIT STATUS` as roff: each code with what it means, then what else is said of them."""
    lines = ['.SH "EXIT STATUS"']
    rows, _, rest = EPILOG.partition("\n  ")[2].partition("\nAfter")
    for row in rows.splitlines():
        code, _, meaning = row.strip().partition("  ")
        lines += [".TP", f"\\fB{code}\\fP", meaning.strip()]
    return "\n".join([*lines, ".PP", *f"After{rest}".splitlines()]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(section())
