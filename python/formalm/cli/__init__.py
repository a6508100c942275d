"""The command line: ``formalm generate | search | mass | sample | … | doctor``."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and leave with its exit code."""
    from formalm.cli.app import app

    try:
        app(prog_name="formalm")
    except OSError as error:  # what commands expect they report themselves: this is a full disk
        # What is left in the buffer would be tried again at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(1) from None
