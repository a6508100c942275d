"""``formalm schema check`` and ``formalm schema sample``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formalm.cli.exit_status import NOTHING, print_json, reported
from formalm.cli.language_files import read_schema
from formalm.cli.shared_options import CommandGroup, Json, one_of, register
from formalm.cli.terminal_output import say, write_data

if TYPE_CHECKING:
    from formalm.languages import JsonSchema
    from formalm.languages.schema_check import SchemaCheck

__all__ = ["schema"]

schema = typer.Typer(cls=CommandGroup, help="Look at JSON Schemas.", no_args_is_help=True)

#: The draft of schemas that name none.
NEWEST = "https://json-schema.org/draft/2020-12/schema"

File = Annotated[Path, typer.Argument(help="A JSON Schema; a TypeScript type if it ends in .ts.")]
Order = Annotated[str, one_of("schema", "any", help="Order of members.")]
Resources = Annotated[
    list[str] | None,
    typer.Option("--resource", help="URI=FILE: a schema that this one refers to; may be repeated."),
]


@schema.callback()
def group() -> None:
    """Look at JSON Schemas."""


def check(
    file: File, order: Order = "schema", resource: Resources = None, json: Json = False
) -> None:
    """Tell what of a schema is exact, what can never be, how instances begin, and some of them.

    Exit code 3: the schema is not exact, and refused unless approximate.
    """
    with reported(json):
        from formalm.languages.schema_check import check_schema

        found = check_schema(read(file, order, resource or [], approximate=False))
        if json:
            print_json(as_data(found))
        else:
            say(as_text(found))
        if not found.is_exact:
            raise typer.Exit(NOTHING)


def sample(
    file: File,
    count: Annotated[int, typer.Option("-n", "--count", help="How many.")] = 1,
    seed: Annotated[int | None, typer.Option(help="Makes the same draws again.")] = None,
    random_bytes: Annotated[
        int, typer.Option(help="From so many bytes on, the shortest way to an end is taken.")
    ] = 200,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="Take a schema that is not enforced exactly.")
    ] = False,
    order: Order = "schema",
    resource: Resources = None,
    json: Json = False,
) -> None:
    """Draw instances without a model, one a line; --json prints each as a string."""
    with reported(json):
        language = read(file, order, resource or [], approximate=approximate)
        for text in language.sample(count, seed=seed, random_bytes=random_bytes):
            if json:
                shown = text if isinstance(text, str) else text.decode(errors="replace")
                print_json(shown)
            else:
                write_data(text.encode() if isinstance(text, str) else text)


for command in (check, sample):
    register(schema, command)


def read(file: Path, order: str, resources: list[str], *, approximate: bool) -> JsonSchema:
    """The schema in a file, without whitespace."""
    return read_schema(
        file, resources, property_order=order, max_whitespace=0, approximate=approximate
    )


def as_data(found: SchemaCheck) -> dict[str, object]:
    """Everything found, for other programs."""
    return {
        "draft": found.draft or NEWEST,
        "exact": found.is_exact,
        "notes": [note._asdict() for note in found.notes],
        "unsatisfiable": list(found.unsatisfiable),
        "complete": found.complete,
        "paths": [path._asdict() for path in found.paths],
        "first_bytes": list(found.overview.first_bytes),
        "examples": list(found.overview.examples),
    }


def as_text(found: SchemaCheck) -> str:
    """Everything found, for people."""
    from formalm.languages.report import counted

    lines = [found.draft or "draft 2020-12, since no $schema names another"]
    lines.append("exact" if found.is_exact else "not exact: refused unless approximate=True")
    for byte, example in zip(found.overview.first_bytes, found.overview.examples, strict=True):
        shown = "(no instance found within the limits)" if example is None else example
        lines.append(f"{chr(byte)!r:8} {shown!s}")
    for note in found.notes:
        effect = "note" if note.effect == "exact" else f"not exact ({note.effect})"
        lines.append(f"{effect}: {note.place}: {note.message}")
    lines += counted(found.paths)
    lines += [f"never: {place} has no instance" for place in found.unsatisfiable]
    if not found.complete:
        lines.append("there are too many parts: not all were asked whether they have an instance")
    return "\n".join(lines)
