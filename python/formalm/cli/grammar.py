"""``formalm grammar``: check, diagram, count and sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from formalm.cli.exit_status import print_json, reported
from formalm.cli.grammar_report import as_data, as_text
from formalm.cli.language_files import read_grammar, read_indentation
from formalm.cli.shared_options import CommandGroup, Json, one_of, register
from formalm.cli.terminal_output import say, write_data
from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from formalm.automata import Automaton
    from formalm.languages import Grammar

__all__ = ["grammar"]

grammar = typer.Typer(cls=CommandGroup, help="Look at grammars.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The text of a grammar.")]
MaxBytes = Annotated[int, typer.Option(min=0, help="Members of at most so many bytes.")]


@grammar.callback()
def group() -> None:
    """Look at grammars."""


@dataclass(frozen=True)
class GrammarOptions:
    """How a file is read."""

    panel: ClassVar[str] = "How the file is read"

    syntax: Annotated[
        str | None,
        one_of("lark", "gbnf", "ebnf", help="The notation; by default what the file's name says."),
    ] = None
    lexing: Annotated[
        str | None, one_of("longest", "first", "any", help="How text is cut into lexemes.")
    ] = None
    start: Annotated[str | None, typer.Option(help="The rule to start with.")] = None
    indentation: Annotated[
        str | None,
        one_of("python", "lark", help="How lines and levels are told by indentation."),
    ] = None
    brackets: Annotated[
        str, typer.Option(help="Pairs of brackets in which lines do not matter; '' for none.")
    ] = "()[]{}"

    def read(self, file: Path) -> Grammar:
        """The grammar in a file."""
        rules, brackets = self.indentation, self.brackets
        levels = None if rules is None else read_indentation(rules, brackets)
        return read_grammar(file, self.syntax, self.lexing, self.start, levels)


def check(
    file: File,
    options: GrammarOptions,
    rules: Annotated[
        bool, typer.Option("--rules", help="Tell with what each rule begins.")
    ] = False,
    json: Json = False,
) -> None:
    """Tell what a grammar reads: how members begin, some of them and how many, ambiguity, useless
    rules.
    """
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
        list[str] | None, typer.Option("--rule", help="Draw this rule; repeat it for several.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the picture to this file.")
    ] = None,
    part_limit: Annotated[
        int | None, typer.Option(min=1, help="Most parts of a picture, 3,000 if not given.")
    ] = None,
) -> None:
    """Draw the rules of a grammar as railroad diagrams, in SVG."""
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
        int | None, typer.Option(min=1, help="Most states to write out, 100,000 if not given.")
    ] = None,
    trees: Annotated[
        bool, typer.Option("--trees", help="Count a member once for each of its trees.")
    ] = False,
    json: Json = False,
) -> None:
    """Count the members of a grammar by their length in bytes, or their trees.

    Trees are counted without writing members out: much longer ones, where each member has one.
    """
    with reported(json):
        read = options.read(file)
        if trees:
            if state_limit is not None:
                raise ArgumentError("--state-limit is about members, and these are trees")
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
        for length, number in enumerate(counts):
            say(f"{length:4}  {'without end' if number is None else f'{number:,}'}")


def sample(
    file: File,
    options: GrammarOptions,
    n: Annotated[int, typer.Option("-n", min=0, help="How many.")] = 10,
    seed: Annotated[int | None, typer.Option(min=0, help="Equal seeds, equal samples.")] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(min=0, help="Of members of at most so many bytes, each as likely as another."),
    ] = None,
    state_limit: Annotated[
        int | None, typer.Option(min=1, help="With --max-bytes: most states, 100,000 if not given.")
    ] = None,
    json: Json = False,
) -> None:
    """Draw members of a grammar without a model.

    With --max-bytes they are drawn uniformly; otherwise by random walks, which are varied and not
    uniform.
    """
    with reported(json):
        read = options.read(file)
        if max_bytes is None:
            if state_limit is not None:
                raise ArgumentError("--state-limit belongs to --max-bytes")
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
    """The members of at most so many bytes."""
    return read.to_automaton(max_bytes=max_bytes, state_limit=state_limit)


for command in (check, diagram, count, sample):
    register(grammar, command)
