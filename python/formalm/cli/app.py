"""The commands, put together. What a command needs is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from formalm.cli.automaton import automaton
from formalm.cli.distortion import distortion
from formalm.cli.doctor import doctor
from formalm.cli.exit_status import want_traceback
from formalm.cli.generate import generate
from formalm.cli.grammar import grammar
from formalm.cli.mask import mask
from formalm.cli.mass import mass
from formalm.cli.plan import plan
from formalm.cli.sample import sample
from formalm.cli.schema import schema
from formalm.cli.score import score
from formalm.cli.search import search
from formalm.cli.shared_options import CommandGroup, Traceback, register
from formalm.cli.suite import suite
from formalm.cli.terminal_output import say
from formalm.cli.tokenize import tokenize

__all__ = ["app"]

# One line a paragraph: the lines are kept as they are.
HELP = (
    "Formal languages for language models.\n\n"
    "Exit codes: 0 done, 1 an error of the input or of writing, 2 wrong usage or a wrong value of"
    " an option, 3 nothing found or decided, a text cut short or a relation that does not hold,"
    " 70 an internal error, 130 interrupted (what was found until then is printed), 141 nobody"
    " reads the output. Those of `formalm suite` are in its own help."
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
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    traceback: Traceback = False,
) -> None:
    """Read the options in front of the command."""
    want_traceback(traceback)


options.__doc__ = HELP
