"""Options that several commands share, and what they stand for.

A group of options is a dataclass. A command that takes a group as a parameter is registered through
:func:`grouped`, which puts the group's options in the parameter's place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce, wraps
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from formalm.cli.language_files import read_grammar, read_schema
from formalm.errors import ArgumentError, ModelError, VocabularyError

if TYPE_CHECKING:
    from formalm.languages import Language
    from formalm.models import LanguageModel
    from formalm.vocabulary import Vocabulary

__all__ = [
    "Json",
    "LanguageOptions",
    "VocabularyOptions",
    "chosen_model",
    "grouped",
    "tokenizer_vocabulary",
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]


@dataclass(frozen=True)
class LanguageOptions:
    """What names a language: the union of all that is given."""

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
    dialect: Annotated[str, typer.Option(help="Syntax of the patterns: python, ecma or rust.")] = (
        "python"
    )

    def language(self) -> Language | None:
        """The union of what the options name, or None."""
        from formalm.languages import Choice, Literal, Regex
        from formalm.languages.regex import DIALECTS

        if self.dialect not in DIALECTS:
            raise ArgumentError(
                f"--dialect must be one of {', '.join(DIALECTS)}, got {self.dialect!r}"
            )
        if self.dialect != "python" and not self.regex:
            raise ArgumentError("--dialect is about patterns, and there is no --regex")
        parts: list[Language] = [
            Regex(pattern, dialect=self.dialect) for pattern in self.regex or []
        ]
        if self.choice:
            parts.append(Choice(self.choice))
        parts += [Literal(text) for text in self.literal or []]
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


def _model_folder(name: str) -> Path:
    from pathlib import Path

    if not Path(name, "config.json").is_file():
        raise ArgumentError(f"{name!r} is neither canary nor a folder with config.json in it")
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


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer is to see it: groups of options spelled out."""
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    parameters = []
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters.append(parameter.replace(annotation=kind))
            continue
        options = get_type_hints(kind, include_extras=True)
        groups[name] = kind, [field.name for field in fields(kind)]
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=field.default,
                annotation=options[field.name],
            )
            for field in fields(kind)
        ]

    @wraps(command)
    def spelled_out(**values: Any) -> None:
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
