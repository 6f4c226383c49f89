"""The command refsched-calibrate; for now it only says that it is not built yet."""

import sys

NOT_AVAILABLE = 6  # refsched's exit code for "something needed is not there"


def main() -> int:
    """Say in one line that measuring is not built yet, and return the exit code for something missing."""
    print("refsched-calibrate: measuring is not built yet; this version only reserves the command", file=sys.stderr)
    return NOT_AVAILABLE


if __name__ == "__main__":
    sys.exit(main())
