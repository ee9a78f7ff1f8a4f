"""The process of the sandbox that another command starts (`sandbox_process.py`).

It ends when its standard input does, so that no sandbox outlives that command, however the command ended.
"""

import sys

from bulk.cli import app
from bulk.cli.stdin_end import end_with_stdin

if __name__ == "__main__":
    end_with_stdin()
    sys.exit(app.main(["sandbox", *sys.argv[1:]]))
