"""python -m rehearsal."""

import sys

from rehearsal.cli import main
from rehearsal.errors import exit_status

if __name__ == "__main__":
    sys.exit(exit_status(main))
