"""`python -m bulk` is the command `bulk`."""

import sys

from bulk.cli import main

if __name__ == "__main__":
    sys.exit(main())
