"""The Typer application. Commands import the library when they run, so that help is fast."""

from __future__ import annotations

from typing import Annotated

import typer

from formalm.cli.commands.automaton import automaton
from formalm.cli.commands.distortion import distortion
from formalm.cli.commands.doctor import doctor
from formalm.cli.commands.generate import generate
from formalm.cli.commands.grammar import grammar
from formalm.cli.commands.mask import mask
from formalm.cli.commands.mass import mass
from formalm.cli.commands.plan import plan
from formalm.cli.commands.sample import sample
from formalm.cli.commands.schema import schema
from formalm.cli.commands.score import score
from formalm.cli.commands.search import search
from formalm.cli.commands.suite import suite
from formalm.cli.commands.tokenize import tokenize
from formalm.cli.exit_status import want_traceback
from formalm.cli.shared_options import CommandGroup, Traceback, register
from formalm.cli.terminal_output import say

__all__ = ["app"]

# One line per paragraph: Typer keeps line breaks.
HELP = (
    "Formal languages for language models: constrained generation and exact model queries.\n\n"
    "Exit codes: 0 success, 1 an input or output error, 2 a usage error, 3 a negative or incomplete"
    " result (nothing found, undecided, cut short, a relation that does not hold), 70 an internal"
    " error, 130 interrupted (results so far are printed), 141 closed pipe. `formalm suite` has"
    " exit codes of its own."
)

app = typer.Typer(cls=CommandGroup, help=HELP, no_args_is_help=True, pretty_exceptions_enable=False)
COMMANDS = (
    *(generate, search, mass, sample, score, distortion, plan),
    *(mask, automaton, tokenize, doctor),
)
for command in COMMANDS:
    register(app, command)
app.add_typer(grammar, name="grammar")
app.add_typer(schema, name="schema")
app.add_typer(suite, name="suite")


def _print_version(wanted: bool) -> None:
    if wanted:
        from formalm import __version__

        say(f"formalm {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    traceback: Traceback = False,
) -> None:
    """Read the options before the command."""
    want_traceback(traceback)


options.__doc__ = HELP
