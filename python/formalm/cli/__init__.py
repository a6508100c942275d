"""The command line: ``formalm generate | search | mask | automaton | tokenize | doctor``."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line and leave with its exit code."""
    from formalm.cli.app import app

    app(prog_name="formalm")
