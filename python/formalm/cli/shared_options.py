"""Options that several commands share, and the adapter that hands them to Typer.

A group of options is a dataclass. A command that takes a group as a parameter is registered
through :func:`register`, which replaces the parameter with the options of the group. The class
that declares an option names the panel of the help that lists it.

An option with fixed values is annotated with a ``Literal`` of the library. Typer receives an
``Enum`` of the same values, so the help lists them, the shell completes them and any other value is
refused; the command receives the string again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import reduce, wraps
from operator import or_
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import typer
from typer.core import TyperCommand, TyperGroup

from formalm.cli.exit_status import USAGE, is_usage_error, report_usage_error, want_traceback
from formalm.cli.language_files import read_grammar, read_schema
from formalm.errors import ArgumentError, ModelError, VocabularyError
from formalm.languages.regex import Dialect

if TYPE_CHECKING:
    from formalm.languages import Language
    from formalm.models import LanguageModel
    from formalm.vocabulary import Vocabulary

__all__ = [
    "Command",
    "CommandGroup",
    "Json",
    "LanguageOptions",
    "Prompt",
    "Seed",
    "Traceback",
    "VocabularyOptions",
    "chosen_model",
    "grouped",
    "register",
    "shown_name",
    "tokenizer_vocabulary",
]

OUTPUT = "Output"

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object per line.", rich_help_panel=OUTPUT),
]
Traceback = Annotated[
    bool,
    typer.Option(
        "--traceback",
        help="Print the traceback of an internal error.",
        rich_help_panel=OUTPUT,
    ),
]
Prompt = Annotated[
    str | None, typer.Option(help="Text before the output. It is not part of the language.")
]
Seed = Annotated[int | None, typer.Option(help="Seed of the draws; the same seed repeats them.")]

METAVARS = ((bool, ""), (int, "N"), (float, "NUMBER"), (Path, "FILE"), (str, "TEXT"))
"""Placeholder for a value of each type; a flag has none."""

LISTED_WIDTH = 26
"""Maximum width, in columns, of ``[a|b|c]`` as a placeholder. Longer lists go into the help text
instead, because a terminal of 80 columns would break them inside a word. Chosen, not measured."""


def _set_metavar(parameter: Any) -> None:
    """Remove the placeholder of flags, and of arguments, whose name is enough."""
    if hasattr(parameter, "display_type_rich") and parameter.param_type_name == "argument":
        parameter.display_type_rich = lambda ctx: ""
    elif parameter.metavar is None and getattr(parameter, "is_flag", False):
        parameter.metavar = ""


class Command(TyperCommand):
    """A command with plain placeholders in its help and one-line usage errors."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, including ``--help``."""
        found = super().get_params(ctx)
        for parameter in found:
            _set_metavar(parameter)
        return found

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Parse the arguments; report a usage error in one line, or as JSON with ``--json``."""
        as_json = "--json" in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except Exception as error:
            if not is_usage_error(error):
                raise
            report_usage_error(error, as_json)
            raise typer.Exit(USAGE) from None


class CommandGroup(TyperGroup):
    """A group of commands with plain placeholders in its help."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, including ``--help``."""
        found = super().get_params(ctx)
        for parameter in found:
            _set_metavar(parameter)
        return found


@dataclass(frozen=True)
class LanguageOptions:
    """Options that define a language: the union of all that are given."""

    panel: ClassVar[str] = "Language (several options form a union)"

    regex: Annotated[
        list[str] | None,
        typer.Option("--regex", "-r", help="A regular expression. Repeatable."),
    ] = None
    choice: Annotated[
        list[str] | None, typer.Option("--choice", "-c", help="One of several strings. Repeatable.")
    ] = None
    literal: Annotated[
        list[str] | None,
        typer.Option("--literal", "-l", help="Exactly this string. Repeatable."),
    ] = None
    schema: Annotated[
        list[Path] | None,
        typer.Option(help="A JSON Schema file, or a TypeScript type (.ts). Repeatable."),
    ] = None
    grammar: Annotated[
        list[Path] | None,
        typer.Option(help="A grammar file in Lark, GBNF (.gbnf) or EBNF (.ebnf). Repeatable."),
    ] = None
    dialect: Annotated[Dialect, typer.Option(help="Syntax of the regular expressions.")] = "python"

    def language(self) -> Language | None:
        """Return the union of what the options define, or None without any."""
        from formalm.languages import Choice, Regex, StringLiteral

        if self.dialect != "python" and not self.regex:
            raise ArgumentError("--dialect requires --regex")
        parts: list[Language] = [
            Regex(pattern, dialect=self.dialect) for pattern in self.regex or []
        ]
        if self.choice:
            parts.append(Choice(self.choice))
        parts += [StringLiteral(text) for text in self.literal or []]
        parts += [read_schema(file) for file in self.schema or []]
        parts += [read_grammar(file) for file in self.grammar or []]
        return reduce(or_, parts) if parts else None

    def required(self) -> Language:
        """Return the union of what the options define; raise ArgumentError without any."""
        language = self.language()
        if language is None:
            raise ArgumentError(
                "a language is required",
                hint="give --regex, --choice, --literal, --schema or --grammar",
            )
        return language


@dataclass(frozen=True)
class VocabularyOptions:
    """Options that name a vocabulary: that of a model, or of a tokenizer file."""

    panel: ClassVar[str] = "Vocabulary"

    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="canary (the embedded model), or a model directory. Default: canary.",
        ),
    ] = None
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="A tokenizer.json, .gguf or SentencePiece .model file, or a directory with one."
        ),
    ] = None

    @property
    def given(self) -> bool:
        """True if either option was given."""
        return self.model is not None or self.tokenizer is not None

    def load(self) -> Vocabulary:
        """Load the vocabulary."""
        if self.tokenizer is None:
            return _model_vocabulary("canary" if self.model is None else self.model)
        if self.model is not None:
            raise ArgumentError("--model and --tokenizer are mutually exclusive")
        return tokenizer_vocabulary(self.tokenizer)


def tokenizer_vocabulary(path: str) -> Vocabulary:
    """Load the vocabulary of a tokenizer file, or of a directory that has one."""
    try:
        return _read_vocabulary(path)
    except OSError as error:
        raise VocabularyError(f"cannot read the tokenizer: {error}") from None


def _read_vocabulary(path: str) -> Vocabulary:
    from formalm.vocabulary import Vocabulary

    if Path(path).is_dir():
        return Vocabulary.from_pretrained(path)
    readers = {".gguf": Vocabulary.from_gguf, ".model": Vocabulary.from_sentencepiece}
    return readers.get(Path(path).suffix, Vocabulary.from_tokenizer_json)(path)


def _model_vocabulary(name: str) -> Vocabulary:
    """Load the vocabulary of a model, without its weights if possible."""
    from formalm.vocabulary import Vocabulary

    if name == "canary":
        return chosen_model(name).vocabulary
    return Vocabulary.from_pretrained(_model_folder(name))


def shown_name(name: str) -> str:
    """Return the name of a model for messages; a URL loses its secrets."""
    if "://" not in name:
        return name
    from formalm.models.http.transport import without_secrets

    return without_secrets(name)


def _model_folder(name: str) -> Path:
    from pathlib import Path

    if not Path(name, "config.json").is_file():
        shown = shown_name(name)
        raise ArgumentError(
            f"--model must be canary or a directory with a config.json, got {shown!r}",
            hint="download a model of the Hugging Face Hub first: hf download NAME --local-dir DIR",
        )
    return Path(name)


def chosen_model(name: str) -> LanguageModel:
    """Load the embedded model, or one from a directory that transformers can read."""
    from formalm.models.canary import WEIGHTS, canary, load

    if name == "canary":
        return canary()
    folder = _model_folder(name)
    try:
        tokenizer = folder / "tokenizer.json"
        own = (WEIGHTS / tokenizer.name).read_bytes()
        if tokenizer.is_file() and tokenizer.read_bytes() == own:
            return load(folder)
        from formalm.models.transformers import from_transformers

        return from_transformers(folder)
    except OSError as error:
        raise ModelError(f"cannot read the model: {error}") from None


def register(app: typer.Typer, command: Callable[..., None]) -> None:
    """Add a command, with the options of its groups as options of its own."""
    app.command(cls=Command)(grouped(command))


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command for Typer: groups expanded, fixed values as enums, ``--traceback``."""
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    parameters = []
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            annotation = _option(name, kind, None)
            parameters.append(parameter.replace(annotation=annotation))
            continue
        options = get_type_hints(kind, include_extras=True)
        groups[name] = kind, [field.name for field in fields(kind)]
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=field.default,
                annotation=_option(field.name, options[field.name], _panel(kind, field.name)),
            )
            for field in fields(kind)
        ]
    parameters.append(
        inspect.Parameter(
            "traceback",
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=False,
            annotation=_option("traceback", Traceback, None),
        )
    )

    @wraps(command)
    def expanded(traceback: bool = False, **values: Any) -> None:
        if traceback:
            want_traceback(True)
        values = {
            name: value.value if isinstance(value, Enum) else value
            for name, value in values.items()
        }
        for name, (kind, names) in groups.items():
            values[name] = kind(**{each: values.pop(each) for each in names})
        command(**values)

    # A group has no default, so commands list groups first; keyword-only parameters may mix.
    signature = inspect.Signature(
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    )
    expanded.__signature__ = signature  # type: ignore[attr-defined]
    expanded.__annotations__ = {p.name: p.annotation for p in parameters}
    return expanded


def _panel(kind: type[Any], name: str) -> str | None:
    """Return the panel of the class that declares an option."""
    for each in kind.__mro__:
        if name in inspect.get_annotations(each):
            return getattr(each, "panel", None)
    return None


def _option(name: str, annotation: Any, panel: str | None) -> Any:
    """Return the annotation of an option, with its panel, placeholder and enum of values."""
    kind, *extras = get_args(annotation)
    values = _literal_values(kind)
    found = []
    for extra in extras:
        given = copy(extra)
        if type(extra).__name__ == "OptionInfo":
            given.rich_help_panel = given.rich_help_panel or panel
            if values:
                given.metavar, given.help = _listed(name, values, given.help or "")
            elif given.metavar is None:
                given.metavar = _metavar(kind)
        found.append(given)
    if values:
        make: Any = Enum  # mypy wants the members of an enum to be literals
        choices = make("Values", {value: value for value in values}, type=str)
        kind = Union[choices, None] if type(None) in get_args(kind) else choices
    return Annotated.__class_getitem__((kind, *found))  # type: ignore[attr-defined]


def _literal_values(kind: Any) -> tuple[str, ...]:
    """Return the values of a ``Literal``, which may be optional; nothing for other types."""
    for each in (kind, *get_args(kind)):
        if get_origin(each) is Literal:
            return get_args(each)
    return ()


def _listed(name: str, values: tuple[str, ...], help: str) -> tuple[str, str]:
    """Return the placeholder and the help of an option with fixed values, which either lists."""
    listed = f"[{'|'.join(values)}]"
    if len(listed) <= LISTED_WIDTH:
        return listed, help
    spelled = [value for value in values if value not in help]
    if spelled:
        help += f" One of {', '.join(values[:-1])} or {values[-1]}."
    return name.upper(), help


def _metavar(kind: Any) -> str | None:
    parts = {kind} | set(get_args(kind))
    parts |= {inner for part in parts for inner in get_args(part)}
    return next((word for each, word in METAVARS if each in parts), None)
