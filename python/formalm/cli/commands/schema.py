"""``formalm schema``: checks of a JSON Schema, and random instances."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formalm.cli.exit_status import NOTHING, print_json, reported
from formalm.cli.language_files import read_schema
from formalm.cli.shared_options import CommandGroup, Json, Seed, register
from formalm.cli.terminal_output import say, write_data
from formalm.languages.json_schema.schema_options import PropertyOrder

if TYPE_CHECKING:
    from formalm.languages import JsonSchema
    from formalm.languages.json_schema.schema_check import SchemaCheck

__all__ = ["schema"]

schema = typer.Typer(
    cls=CommandGroup, help="Inspect JSON Schemas: check, sample.", no_args_is_help=True
)

#: The draft of schemas without ``$schema``.
NEWEST = "https://json-schema.org/draft/2020-12/schema"

File = Annotated[
    Path,
    typer.Argument(help="A JSON Schema file, or a TypeScript type (.ts).", show_default=False),
]
Order = Annotated[
    PropertyOrder,
    typer.Option("--property-order", help="Order of properties: that of the schema, or any."),
]
Resources = Annotated[
    list[str] | None,
    typer.Option(
        "--resource", help="A schema that this one refers to. Repeatable.", metavar="URI=FILE"
    ),
]


@schema.callback()
def group() -> None:
    """Inspect JSON Schemas: check, sample."""


def check(
    file: File, order: Order = "schema", resource: Resources = None, json: Json = False
) -> None:
    """Check a schema: exactness, unsatisfiable parts, first bytes, examples.

    Exit code 3: the schema cannot be enforced exactly; JsonSchema needs approximate=True.
    """
    with reported(json):
        from formalm.languages.json_schema.schema_check import check_schema

        found = check_schema(read(file, order, resource or [], approximate=False))
        if json:
            print_json(as_data(found))
        else:
            say(as_text(found))
        if not found.is_exact:
            raise typer.Exit(NOTHING)


def sample(
    file: File,
    count: Annotated[
        int, typer.Option("--count", "-n", help="Number of instances.", metavar="N")
    ] = 1,
    seed: Seed = None,
    random_bytes: Annotated[
        int, typer.Option(help="After N bytes, complete each instance as briefly as possible.")
    ] = 200,
    approximate: Annotated[
        bool,
        typer.Option("--approximate", help="Accept a schema that is not enforced exactly."),
    ] = False,
    order: Order = "schema",
    resource: Resources = None,
    json: Json = False,
) -> None:
    """Draw instances without a model, one per line; with --json, each as a JSON string."""
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


def read(
    file: Path, order: PropertyOrder, resources: list[str], *, approximate: bool
) -> JsonSchema:
    """Read a schema whose instances have no whitespace."""
    return read_schema(
        file, resources, property_order=order, max_whitespace=0, approximate=approximate
    )


def as_data(found: SchemaCheck) -> dict[str, object]:
    """Return the report as data."""
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
    """Return the report as text."""
    from formalm.languages.exactness_report import counted

    lines = [found.draft or "draft 2020-12 (the schema has no $schema)"]
    lines.append("exact" if found.is_exact else "not exact: refused without approximate=True")
    if found.overview.first_bytes:
        lines.append("first byte, and a shortest instance that begins with it:")
    for byte, example in zip(found.overview.first_bytes, found.overview.examples, strict=True):
        shown = "(none found within the limits)" if example is None else example
        lines.append(f"{chr(byte)!r:8} {shown!s}")
    for note in found.notes:
        effect = "note" if note.effect == "exact" else f"not exact ({note.effect})"
        lines.append(f"{effect}: {note.place}: {note.message}")
    lines += counted(found.paths)
    lines += [f"unsatisfiable: {place} has no instance" for place in found.unsatisfiable]
    if not found.complete:
        lines.append("not all parts were checked for instances: there are too many")
    return "\n".join(lines)
