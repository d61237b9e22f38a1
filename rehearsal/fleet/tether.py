"""Run a command that dies with the process that started it: ``tether.py PARENT_PID COMMAND ARGUMENT...``."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Tie this process to its parent, then become the command; the tie survives exec."""
    parent, command = int(argv[1]), argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv)
