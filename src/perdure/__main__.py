"""The command `perdure`, and `python -m perdure`. An interrupt that comes while the command is
still being imported ends it as it does later: with a line, and no traceback."""

from __future__ import annotations

import sys


def main() -> None:
    """The command; what it is made of is imported here."""
    try:
        from perdure.cli.main import main as command

        command(prog_name="perdure")
    except KeyboardInterrupt:
        sys.stderr.write("perdure: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
