"""Run the command line: python3 -m refsched."""

from refsched.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
