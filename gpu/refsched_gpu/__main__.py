"""The command refsched-calibrate: `refsched calibrate` under another name."""

import runpy
import sys

COMMAND = "calibrate"


def main() -> None:
    """Run `refsched calibrate` with the arguments given; it ends the process with its exit code."""
    if sys.argv[1:2] != [COMMAND]:
        sys.argv.insert(1, COMMAND)
    runpy.run_module("refsched", run_name="__main__")


if __name__ == "__main__":
    main()
