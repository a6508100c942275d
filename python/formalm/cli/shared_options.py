"""Options that several commands share, and what they stand for.

A group of options is a dataclass. A command that takes a group as a parameter is registered
through :func:`register`, which puts the group's options in the parameter's place. The class that
declares an option names the panel of the help that shows it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce, wraps
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from formalm.cli.exit_status import want_traceback
from formalm.cli.language_files import read_grammar, read_schema
from formalm.errors import ArgumentError, ModelError, VocabularyError

if TYPE_CHECKING:
    from formalm.languages import Language
    from formalm.models import LanguageModel
    from formalm.vocabulary import Vocabulary

__all__ = [
    "Command",
    "CommandGroup",
    "Json",
    "LanguageOptions",
    "Traceback",
    "VocabularyOptions",
    "chosen_model",
    "grouped",
    "one_of",
    "register",
    "shown_name",
    "tokenizer_vocabulary",
]

REPORTING = "What is printed"


def one_of(*values: str, help: str, names: tuple[str, ...] = ()) -> Any:
    """An option with fixed values: the help and the shell's completion list them.

    Another value is refused by the command, as an error of ours, and as JSON with ``--json``.
    """

    def completed(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    metavar = f"[{'|'.join(values)}]"
    return typer.Option(*names, metavar=metavar, autocompletion=completed, help=help)


Json = Annotated[
    bool,
    typer.Option("--json", help="Print JSON, one object a line.", rich_help_panel=REPORTING),
]
Traceback = Annotated[
    bool,
    typer.Option(
        "--traceback",
        help="Print where an error came from that nobody expected.",
        rich_help_panel=REPORTING,
    ),
]
METAVARS = ((bool, ""), (int, "N"), (float, "NUMBER"), (Path, "FILE"), (str, "TEXT"))
"""What stands for a value of each type; what is switched on has none."""


def _name_value(parameter: Any) -> None:
    """Let the help show what stands for a value, not the name of its Python type."""
    if hasattr(parameter, "display_type_rich") and parameter.param_type_name == "argument":
        parameter.display_type_rich = lambda ctx: ""  # its name is enough
    elif parameter.metavar is None and getattr(parameter, "is_flag", False):
        parameter.metavar = ""


class Command(TyperCommand):
    """A command whose help names values in words."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, the option for help among them."""
        found = super().get_params(ctx)
        for parameter in found:
            _name_value(parameter)
        return found


class CommandGroup(TyperGroup):
    """A group of commands whose help names values in words."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, the option for help among them."""
        found = super().get_params(ctx)
        for parameter in found:
            _name_value(parameter)
        return found


@dataclass(frozen=True)
class LanguageOptions:
    """What names a language: the union of all that is given."""

    panel: ClassVar[str] = "Language"

    regex: Annotated[
        list[str] | None, typer.Option("--regex", "-r", help="A pattern; several are a union.")
    ] = None
    choice: Annotated[
        list[str] | None, typer.Option("--choice", "-c", help="One of several texts; repeat it.")
    ] = None
    literal: Annotated[
        list[str] | None, typer.Option("--literal", "-l", help="Exactly this text.")
    ] = None
    schema: Annotated[
        list[Path] | None,
        typer.Option(help="A file: a JSON Schema, or a TypeScript type if it ends in .ts."),
    ] = None
    grammar: Annotated[
        list[Path] | None,
        typer.Option(help="A file: a grammar in Lark, in GBNF if it ends in .gbnf, or .ebnf."),
    ] = None
    dialect: Annotated[
        str,
        one_of(
            "python", "python-3.11", "python-3.14", "ecma", "rust", help="Syntax of the patterns."
        ),
    ] = "python"

    def language(self) -> Language | None:
        """The union of what the options name, or None."""
        from formalm.languages import Choice, Regex, StringLiteral
        from formalm.languages.regex import DIALECTS

        if self.dialect not in DIALECTS:
            raise ArgumentError(
                f"--dialect must be one of {', '.join(DIALECTS)}, got {self.dialect!r}"
            )
        if self.dialect != "python" and not self.regex:
            raise ArgumentError("--dialect is about patterns, and there is no --regex")
        dialect: Any = self.dialect
        parts: list[Language] = [Regex(pattern, dialect=dialect) for pattern in self.regex or []]
        if self.choice:
            parts.append(Choice(self.choice))
        parts += [StringLiteral(text) for text in self.literal or []]
        parts += [read_schema(file) for file in self.schema or []]
        parts += [read_grammar(file) for file in self.grammar or []]
        return reduce(or_, parts) if parts else None

    def required(self) -> Language:
        """The union of what the options name; there must be something."""
        language = self.language()
        if language is None:
            raise ArgumentError("which language?", hint="give --regex, --choice or the like")
        return language


@dataclass(frozen=True)
class VocabularyOptions:
    """What names a vocabulary: a model's, or a file's."""

    panel: ClassVar[str] = "Vocabulary"

    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="canary (without either), or the folder of a model."),
    ] = None
    tokenizer: Annotated[
        str | None,
        typer.Option(help="A tokenizer.json, .gguf or SentencePiece .model file, or a folder."),
    ] = None

    @property
    def given(self) -> bool:
        """Whether either option was."""
        return self.model is not None or self.tokenizer is not None

    def load(self) -> Vocabulary:
        """The vocabulary."""
        if self.tokenizer is None:
            return _model_vocabulary("canary" if self.model is None else self.model)
        if self.model is not None:
            raise ArgumentError("--model and --tokenizer exclude each other")
        return tokenizer_vocabulary(self.tokenizer)


def tokenizer_vocabulary(path: str) -> Vocabulary:
    """The vocabulary of a tokenizer's file, or of a folder."""
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
    """The vocabulary of a model, without its weights where they are not needed."""
    from formalm.vocabulary import Vocabulary

    if name == "canary":
        return chosen_model(name).vocabulary
    return Vocabulary.from_pretrained(_model_folder(name))


def shown_name(name: str) -> str:
    """What was given as a model, as messages may show it: an address may have a key in it."""
    if "://" not in name:
        return name
    from formalm.models.http.transport import without_secrets

    return without_secrets(name)


def _model_folder(name: str) -> Path:
    from pathlib import Path

    if not Path(name, "config.json").is_file():
        shown = shown_name(name)
        raise ArgumentError(f"{shown!r} is neither canary nor a folder with config.json in it")
    return Path(name)


def chosen_model(name: str) -> LanguageModel:
    """The embedded model, or one from a folder: one like it, or any that transformers reads."""
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
    """Add a command whose groups of options are spelled out."""
    app.command(cls=Command)(grouped(command))


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer is to see it: groups of options spelled out, and ``--traceback``."""
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    parameters = []
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters.append(parameter.replace(annotation=_worded(kind, None)))
            continue
        options = get_type_hints(kind, include_extras=True)
        groups[name] = kind, [field.name for field in fields(kind)]
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=field.default,
                annotation=_worded(options[field.name], _panel(kind, field.name)),
            )
            for field in fields(kind)
        ]
    parameters.append(
        inspect.Parameter(
            "traceback",
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=False,
            annotation=_worded(Traceback, None),
        )
    )

    @wraps(command)
    def spelled_out(traceback: bool = False, **values: Any) -> None:
        if traceback:
            want_traceback(True)
        for name, (kind, names) in groups.items():
            values[name] = kind(**{each: values.pop(each) for each in names})
        command(**values)

    # A group has no default of its own, so commands name them first; options may come in any order.
    signature = inspect.Signature(
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    )
    spelled_out.__signature__ = signature  # type: ignore[attr-defined]
    spelled_out.__annotations__ = {p.name: p.annotation for p in parameters}
    return spelled_out


def _panel(kind: type[Any], name: str) -> str | None:
    """The panel of the class that declares an option."""
    for each in kind.__mro__:
        if name in inspect.get_annotations(each):
            return getattr(each, "panel", None)
    return None


def _worded(annotation: Any, panel: str | None) -> Any:
    """The annotation of an option with its panel, and with a word that stands for its value."""
    kind, *extras = get_args(annotation)
    found = []
    for extra in extras:
        is_option = type(extra).__name__ == "OptionInfo"
        given = copy(extra)
        if is_option:
            given.rich_help_panel = given.rich_help_panel or panel
            if given.metavar is None:
                given.metavar = _metavar(kind)
        found.append(given)
    return Annotated.__class_getitem__((kind, *found))  # type: ignore[attr-defined]


def _metavar(kind: Any) -> str | None:
    parts = {kind} | set(get_args(kind))
    parts |= {inner for part in parts for inner in get_args(part)}
    return next((word for each, word in METAVARS if each in parts), None)
