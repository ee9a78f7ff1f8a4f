"""Exit codes as the help lists them, and as a section of the manual page, which `make man` appends to it."""

import sys

EPILOG = """\b
Exit codes:
  0         every item succeeded or was unchanged
  1         the run is complete, some items failed or were skipped
  2         wrong command line or manifest, or a credential's source is missing
  3         stopped early with work left
  4         a credential was refused
  5         the run directory belongs to another manifest, is in use or damaged
  6         the run is complete, the outcome of some items is unknown
  7         an audit or diff --exit-code found a change or a violated policy
  8         the question was answered with no, or --yes is missing; nothing was sent
  70        a bug in Bulk; a file that the message names has the details
  130, 143  interrupted
After 3, 4, 70, 130 and 143 the last line on standard error is the command that
goes on."""


def section() -> str:
    """Return `EXIT STATUS` as roff: each code with its meaning, then the sentence below the codes."""
    lines = ['.SH "EXIT STATUS"']
    rows, _, rest = EPILOG.partition("\n  ")[2].partition("\nAfter")
    for row in rows.splitlines():
        code, _, meaning = row.strip().partition("  ")
        lines += [".TP", f"\\fB{code}\\fP", meaning.strip()]
    return "\n".join([*lines, ".PP", *f"After{rest}".splitlines()]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(section())
