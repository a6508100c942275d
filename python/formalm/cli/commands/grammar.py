"""``formalm grammar``: check, diagram, count and sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer

from formalm.cli.commands.grammar_report import as_data, as_text
from formalm.cli.exit_status import print_json, reported
from formalm.cli.language_files import read_grammar, read_indentation
from formalm.cli.shared_options import CommandGroup, Json, register
from formalm.cli.terminal_output import remark, say, write_data
from formalm.errors import ArgumentError
from formalm.languages.grammar.language import Syntax
from formalm.languages.grammar.lark_objects import Lexing

if TYPE_CHECKING:
    from formalm.automata import Automaton
    from formalm.languages import Grammar

__all__ = ["grammar"]

grammar = typer.Typer(
    cls=CommandGroup, help="Inspect grammars: check, draw, count, sample.", no_args_is_help=True
)

File = Annotated[
    Path,
    typer.Argument(help="A grammar file: Lark, GBNF (.gbnf) or EBNF (.ebnf).", show_default=False),
]
MaxBytes = Annotated[int, typer.Option(min=0, help="Maximum length of the members, in bytes.")]
IndentationRules = Literal["python", "lark"]


@grammar.callback()
def group() -> None:
    """Inspect grammars: check, draw, count, sample."""


@dataclass(frozen=True)
class GrammarOptions:
    """Options for reading a grammar file."""

    panel: ClassVar[str] = "Reading the file"

    syntax: Annotated[
        Syntax | None,
        typer.Option(help="Notation. Default: by the file name, otherwise lark."),
    ] = None
    lexing: Annotated[
        Lexing | None,
        typer.Option(
            help="Lexer: the longest match, the first match, or any. Default: by the notation."
        ),
    ] = None
    start: Annotated[
        str | None, typer.Option(help="Start rule. Default: by the notation.", metavar="RULE")
    ] = None
    indentation: Annotated[
        IndentationRules | None,
        typer.Option(
            help="Derive _NEWLINE, _INDENT and _DEDENT from indentation, by the rules of Python or"
            " of Lark."
        ),
    ] = None
    brackets: Annotated[
        str,
        typer.Option(
            help="With --indentation: pairs of brackets inside which line breaks do not count; ''"
            " for none."
        ),
    ] = "()[]{}"

    def read(self, file: Path) -> Grammar:
        """Read the grammar in a file."""
        rules, brackets = self.indentation, self.brackets
        levels = None if rules is None else read_indentation(rules, brackets)
        return read_grammar(file, self.syntax, self.lexing, self.start, levels)


def check(
    file: File,
    options: GrammarOptions,
    rules: Annotated[bool, typer.Option("--rules", help="Also show how each rule begins.")] = False,
    json: Json = False,
) -> None:
    """Check a grammar: first bytes, examples, counts, ambiguity, unused rules."""
    with reported(json):
        read = options.read(file)
        if json:
            print_json(as_data(read))
        else:
            say(as_text(read, rules))


def diagram(
    file: File,
    options: GrammarOptions,
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", help="Draw only this rule. Repeatable.", metavar="RULE"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the drawing to this file.")
    ] = None,
    part_limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum parts of the drawing. Default: 3,000.")
    ] = None,
) -> None:
    """Draw the rules of a grammar as railroad diagrams (SVG)."""
    with reported(False):
        limits = {} if part_limit is None else {"part_limit": part_limit}
        picture = options.read(file).to_svg(rules=rule or None, **limits)
        if output is None:
            write_data(picture.encode(), after="", keep="\n\t")
            return
        try:
            output.write_text(picture, encoding="utf-8")
        except OSError as error:
            message = f"--output: cannot write {str(output)!r}: {error.strerror}"
            raise ArgumentError(message) from None


def count(
    file: File,
    options: GrammarOptions,
    max_bytes: MaxBytes = 16,
    state_limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum states of the automaton. Default: 100,000.")
    ] = None,
    trees: Annotated[
        bool, typer.Option("--trees", help="Count parse trees instead of members.")
    ] = False,
    json: Json = False,
) -> None:
    """Count the members of a grammar by length, or their parse trees.

    Counting trees needs no automaton, so it reaches much longer members. If each member has exactly
    one tree, the counts are the same.
    """
    with reported(json):
        read = options.read(file)
        if trees:
            if state_limit is not None:
                raise ArgumentError("--state-limit does not apply to --trees")
            counts = read.tree_counts(max_bytes, unit="bytes")
        else:
            counts = [
                *written_out(read, max_bytes, state_limit or 100_000).counts(
                    max_bytes, unit="bytes"
                )
            ]
        if json:
            print_json({"counts": counts})
            return
        remark(f"bytes  {'trees' if trees else 'members'}")
        for length, number in enumerate(counts):
            say(f"{length:5}  {'infinitely many' if number is None else f'{number:,}'}")


def sample(
    file: File,
    options: GrammarOptions,
    n: Annotated[
        int, typer.Option("--count", "-n", min=0, help="Number of members.", metavar="N")
    ] = 10,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed; the same seed repeats the members.")
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(min=0, help="Draw uniformly among the members of at most N bytes."),
    ] = None,
    state_limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="With --max-bytes: maximum states of the automaton. Default: 100,000."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Draw members of a grammar without a model.

    With --max-bytes the draws are uniform; otherwise they are random walks, varied but not uniform.
    """
    with reported(json):
        read = options.read(file)
        if max_bytes is None:
            if state_limit is not None:
                raise ArgumentError("--state-limit requires --max-bytes")
            members = read.sample(n, seed=seed)
        else:
            written = written_out(read, max_bytes, state_limit or 100_000)
            members = written.sample(n, seed=seed, max_length=max_bytes, unit="bytes")
        for member in members:
            if json:
                hexed = {"hex": member.hex()} if isinstance(member, bytes) else {}
                print_json({"text": None if hexed else member, **hexed})
            else:
                say(repr(member))


def written_out(read: Grammar, max_bytes: int, state_limit: int) -> Automaton:
    """Return the automaton of the members of at most ``max_bytes``."""
    return read.to_automaton(max_bytes=max_bytes, state_limit=state_limit)


for command in (check, diagram, count, sample):
    register(grammar, command)
