"""``formalm automaton``: counts, lists, draws and compares the members of a language."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from formalm.cli.exit_status import NOTHING, print_json, reported
from formalm.cli.shared_options import Json, LanguageOptions, VocabularyOptions
from formalm.cli.terminal_output import say, write_data
from formalm.errors import ArgumentError, LimitError

if TYPE_CHECKING:
    from formalm.argument_checks import Relation
    from formalm.automata import Automaton, TokenAutomaton
    from formalm.languages import Language

__all__ = ["automaton", "shown_tokens"]

SHOWN = 5
"""Members listed in the summary. Chosen, not measured."""
LENGTHS = 8
"""Maximum length counted in the summary. Chosen, not measured."""
BOUNDS = "Details of the question"


@dataclass(frozen=True)
class QuestionOptions:
    """One question about the automaton; without any, a summary is printed."""

    panel: ClassVar[str] = "Question (one of these; without any, a summary)"

    count: Annotated[bool, typer.Option("--count", help="Count the members.")] = False
    members: Annotated[
        int | None,
        typer.Option("--list", min=0, help="List the first N members.", metavar="N"),
    ] = None
    sample: Annotated[
        int | None, typer.Option(min=0, help="Draw N members uniformly.", metavar="N")
    ] = None
    dot: Annotated[bool, typer.Option("--dot", help="Print Graphviz source.")] = False
    svg: Annotated[bool, typer.Option("--svg", help="Draw the automaton as SVG.")] = False
    table: Annotated[
        bool, typer.Option("--table", help="Print the table of states by classes of bytes.")
    ] = False
    trace: Annotated[
        str | None,
        typer.Option(
            help="Show how the automaton reads TEXT; with --output, as an animated SVG.",
            metavar="TEXT",
        ),
    ] = None
    equivalent_to: Annotated[
        str | None,
        typer.Option(help="Check whether a regex has the same members.", metavar="REGEX"),
    ] = None
    subset_of: Annotated[
        str | None,
        typer.Option(help="Check whether a regex has all the members.", metavar="REGEX"),
    ] = None
    length: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Only members of exactly N characters, or tokens.",
            metavar="N",
            rich_help_panel=BOUNDS,
        ),
    ] = None
    max_length: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Only members of at most N characters, or tokens.",
            metavar="N",
            rich_help_panel=BOUNDS,
        ),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seed for --sample; the same seed repeats the draws.",
            metavar="N",
            rich_help_panel=BOUNDS,
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write --dot, --svg or --trace to this file.",
            rich_help_panel=BOUNDS,
        ),
    ] = None

    def selected(self) -> str:
        """Return the question; raise ArgumentError for options that do not belong to it."""
        questions = {
            "count": self.count,
            "list": self.members is not None,
            "sample": self.sample is not None,
            "dot": self.dot,
            "svg": self.svg,
            "table": self.table,
            "trace": self.trace is not None,
            "equivalent-to": self.equivalent_to is not None,
            "subset-of": self.subset_of is not None,
        }
        selected = [name for name, wanted in questions.items() if wanted]
        if len(selected) > 1:
            raise ArgumentError(f"--{selected[0]} and --{selected[1]} are mutually exclusive")
        question = selected[0] if selected else "summary"
        for name, given, where in (
            ("length", self.length, ("count", "list", "sample")),
            ("max-length", self.max_length, ("count", "list", "sample")),
            ("seed", self.seed, ("sample",)),
            ("output", self.output, ("dot", "svg", "trace")),
        ):
            if given is not None and question not in where:
                names = " or ".join(f"--{each}" for each in where)
                raise ArgumentError(f"--{name} requires {names}")
        return question

    @property
    def pattern(self) -> str:
        """The regular expression to compare with."""
        return self.equivalent_to or self.subset_of or ""


def automaton(
    language: LanguageOptions,
    question: QuestionOptions,
    vocabulary: VocabularyOptions,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Build the automaton over tokens instead of bytes.")
    ] = False,
    state_limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum states before minimization. Default: 100,000; for comparisons 1,000,000"
            " pairs of states.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Inspect a language as an automaton: size, members, counts, samples, drawings, comparisons."""
    with reported(json):
        from formalm.languages import Regex

        selected = question.selected()
        wanted = language.required()
        if selected in ("equivalent-to", "subset-of"):
            if tokens or vocabulary.given:
                raise ArgumentError(
                    f"--{selected} compares languages of text, without --tokens, --model or"
                    " --tokenizer"
                )
            other = Regex(question.pattern, dialect=language.dialect)
            _compare(wanted, other, selected, state_limit or 1_000_000, json)
            return
        automaton = _written_out(wanted, vocabulary, tokens, state_limit or 100_000)
        view = _View(automaton, tokens)
        if selected in ("dot", "svg"):
            _draw(view.automaton, selected, question.output, json)
        elif selected == "table":
            print_json({"table": str(automaton)}) if json else say(automaton)
        elif selected == "trace":
            _trace(view, question.trace or "", question.output, json)
        elif selected == "summary":
            _summarize(view, json)
        else:
            _answer(view, selected, question, json)


def _written_out(
    language: Language, vocabulary: VocabularyOptions, tokens: bool, state_limit: int
) -> Automaton | TokenAutomaton:
    if not tokens:
        if vocabulary.given:
            raise ArgumentError("--model and --tokenizer require --tokens")
        return language.to_automaton(state_limit=state_limit)
    from formalm.constraint import Constraint

    return Constraint(language, vocabulary.load()).to_automaton(state_limit=state_limit)


@dataclass(frozen=True)
class _View:
    """An automaton over bytes or over tokens, with one interface."""

    automaton: Any
    tokens: bool

    def bounds(self, question: QuestionOptions) -> dict[str, int | None]:
        exact = "tokens" if self.tokens else "length"
        return {exact: question.length, f"max_{exact}": question.max_length}

    def first(self, count: int, bounds: dict[str, int | None]) -> list[Any]:
        return list(islice(self.automaton.enumerate(**bounds), count))

    def named(self, member: Any) -> object:
        """Return a member for JSON."""
        return member.hex() if isinstance(member, bytes) else member

    def line(self, member: Any) -> str:
        """Return a member for a line of text."""
        return shown_tokens(member, self.automaton.vocabulary) if self.tokens else repr(member)


def shown_tokens(token_ids: Any, vocabulary: Any) -> str:
    """Return token ids, followed by the bytes of each."""
    ids = ",".join(str(token_id) for token_id in token_ids)
    tokens = [vocabulary.token_bytes(token_id) for token_id in token_ids]
    spelled = " ".join("(special)" if token is None else repr(token)[1:] for token in tokens)
    return f"{ids or '(none)'}  {spelled}".rstrip()


def _compare(
    language: Language, other: Language, selected: str, state_limit: int, json: bool
) -> None:
    relation: Relation = "equivalence" if selected == "equivalent-to" else "inclusion"
    witness = language.witness(other, relation, state_limit=state_limit)
    holds = witness is None
    within = None if witness is None else language.matches(witness)
    if json:
        bytes_of = {"witness_hex": witness.hex()} if isinstance(witness, bytes) else {}
        text = None if isinstance(witness, bytes) else witness
        found = {"witness": text, **bytes_of, "witness_is_member": within}
        print_json({"relation": relation, "holds": holds, **found})
    elif holds:
        say("equivalent" if relation == "equivalence" else "a subset")
    else:
        where = (
            "is in the language, but does not match the regex"
            if within
            else "matches the regex, but is not in the language"
        )
        what = "not equivalent" if relation == "equivalence" else "not a subset"
        say(f"{what}: {witness!r} {where}")
    if not holds:
        raise typer.Exit(NOTHING)


def _draw(automaton: Any, kind: str, output: Path | None, json: bool) -> None:
    try:
        picture: str = automaton.to_svg() if kind == "svg" else automaton.to_dot()
    except LimitError as error:
        hint = "--dot has no limit of size"
        raise LimitError(error.what, error.needed, error.allowed, hint) from None
    if output is None:
        if json:
            print_json({kind: picture})
        else:
            write_data(picture.encode(), after="", keep="\n\t")
        return
    _write(output, picture, json)


def _write(output: Path, picture: str, json: bool) -> None:
    try:
        output.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"--output: cannot write {str(output)!r}: {error.strerror}") from None
    if json:
        print_json({"output": str(output), "characters": len(picture)})


def _trace(view: _View, text: str, output: Path | None, json: bool) -> None:
    if view.tokens:
        raise ArgumentError("--trace reads text, without --tokens")
    trace = view.automaton.trace(text)
    if output is not None:
        _write(output, trace.to_svg(), json)
    elif json:
        print_json({"states": trace.states, "accepted": trace.is_accepted})
    else:
        say(trace)
    if not trace.is_accepted:
        raise typer.Exit(NOTHING)


def _answer(view: _View, selected: str, question: QuestionOptions, json: bool) -> None:
    bounds = view.bounds(question)
    unbounded = all(bound is None for bound in bounds.values())
    if selected != "list" and unbounded and not view.automaton.is_finite:
        hint = "give --length or --max-length"
        raise ArgumentError("the language has infinitely many members", hint=hint)
    if selected == "count":
        count = view.automaton.count(**bounds)
        print_json({"count": count}) if json else say(count)
        return
    members = (
        view.first(question.members or 0, bounds)
        if selected == "list"
        else view.automaton.sample(question.sample, seed=question.seed, **bounds)
    )
    for member in members:
        if json:
            print_json({_name(view, member): view.named(member)})
        else:
            say(view.line(member))
    if selected == "list" and question.members and not members:
        raise typer.Exit(NOTHING)


def _name(view: _View, member: object) -> str:
    return "token_ids" if view.tokens else "bytes_hex" if isinstance(member, bytes) else "text"


def _summarize(view: _View, json: bool) -> None:
    from formalm.errors import LanguageError

    automaton = view.automaton
    # Members that are not UTF-8 have no characters, so their lengths are in bytes.
    unit = "tokens" if view.tokens else "characters"
    extra: dict[str, Any] = {}
    try:
        counts = automaton.counts(LENGTHS)
    except LanguageError:
        unit, extra = "bytes", {"unit": "bytes"}
        counts = automaton.counts(LENGTHS, **extra)
    first = list(islice(automaton.enumerate(**extra), SHOWN))
    count = automaton.count() if automaton.is_finite else None
    if json:
        print_json(
            {
                "states": automaton.state_count,
                "edges": automaton.edge_count,
                "accepting": len(automaton.accepting),
                "is_finite": automaton.is_finite,
                "count": count,
                "unit": unit,
                "counts": counts,
                "first": [{_name(view, member): view.named(member)} for member in first],
            }
        )
        return
    lines = {
        "states": f"{automaton.state_count:,} ({len(automaton.accepting):,} accepting)",
        "edges": f"{automaton.edge_count:,}",
        "members": "infinitely many" if count is None else f"{count:,}",
        "by length": f"{', '.join(f'{one:,}' for one in counts)} (of 0 to {LENGTHS} {unit})",
        "shortest": view.line(first[0]) if first else "none",
    }
    for name, text in lines.items():
        say(f"{name:10}  {text}")
    for member in first[1:]:
        say(f"{'':10}  {view.line(member)}")
    if count is None or count > len(first):
        say(f"{'':10}  …")
