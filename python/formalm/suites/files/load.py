"""Reader of suite files: TOML to a checked :class:`Suite`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formalm.errors import ArgumentError, SuiteError
from formalm.languages import JsonSchema, Regex
from formalm.query.toml import toml_data
from formalm.suites.fact_rows import Rows, listed_rows, read_lines
from formalm.suites.files.load_metrics import read_assertion, read_comparison, read_metric
from formalm.suites.files.load_questions import Parts, read_question
from formalm.suites.files.toml_locations import toml_locations
from formalm.suites.files.toml_section import Source, TomlSection
from formalm.suites.oracles.oracle import KINDS, Oracle
from formalm.suites.slots_and_templates import NAME, Slot, Template
from formalm.suites.suite import Suite

if TYPE_CHECKING:
    from formalm.suites.suite import Suite

__all__ = ["FORMAT", "TEXTS", "VERSION", "read_suite", "read_text", "replaced"]

FORMAT = "formalm-suite"
VERSION = 1
TEXTS = ("description", "warning", "citation", "license")
SLOT_KINDS = ("pattern", "file", "words_of", "schema")
SUITE_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*")


def read_text(path: Path) -> str:
    """Returns the text of a file; raises a SuiteError if there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SuiteError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SuiteError(f"{str(path)!r} is not UTF-8: {error}") from None


def read_suite(text: str, folder: Path | None) -> Suite:
    """Reads a suite; see :meth:`formalm.suites.Suite.from_toml`."""
    try:
        data = toml_data(text)
    except ArgumentError:
        raise
    except (ValueError, RecursionError) as error:
        raise SuiteError(
            f"the suite is not valid TOML: {error}", source=text, span=_span(error, text)
        ) from None
    top = TomlSection(data, (), Source(text, toml_locations(text)))
    if top.take("format", str) != FORMAT:
        top.refuse(f"format must be {FORMAT!r}, got {data['format']!r:.60}", "format")
    if top.take("version", int) != VERSION:
        top.refuse(f"version must be {VERSION}, got {data['version']}", "version")
    name = top.take("name", str)
    if not SUITE_NAME.fullmatch(name):
        hint = "such as memorization.urls"
        top.refuse("suite.name must be lowercase words separated by dots", "name", hint=hint)
    title, texts = top.take("title", str), {key: top.take(key, str, "") for key in TEXTS}
    slots = _slots(top.section("slots", {}), folder)
    rows = _named(_rows(part, name, slots, folder) for name, part in top.sections("rows"))
    oracles = _named(_oracle(part, name, folder) for name, part in top.sections("oracles"))
    known = {*slots, *(column for one in rows.values() for column in one.columns)}
    templates = _named(_templates(top.section("templates"), known))
    parts = Parts(templates, slots, rows, oracles)
    queries = _named(read_question(part, name, parts) for name, part in top.sections("queries"))
    if not queries:
        top.refuse("a suite must have at least one query: [queries.NAME]")
    metrics = _named(
        read_metric(part, name, queries, parts) for name, part in top.sections("metrics")
    )
    comparisons = _named(
        read_comparison(part, name, metrics, queries, slots)
        for name, part in top.sections("comparisons")
    )
    assertions = tuple(
        read_assertion(
            TomlSection(one, ("assertions", number), top.source), metrics, comparisons, slots
        )
        for number, one in enumerate(top.take("assertions", list, []))
    )
    top.close()
    named: dict[str, Any] = {**texts, "rows": rows, "oracles": oracles}
    return Suite(name, title, slots, templates, queries, metrics, comparisons, assertions, **named)


def _span(error: Exception, text: str) -> tuple[int, int] | None:
    """Returns the position at which the TOML parser stopped."""
    found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
    if found is None:
        return (len(text), len(text)) if "end of document" in str(error) else None
    lines = text.split("\n")
    start = sum(len(line) + 1 for line in lines[: int(found[1]) - 1]) + int(found[2]) - 1
    return start, start + 1


def _named(parts: Any) -> dict[str, Any]:
    return {part.name: part for part in parts}


def _slots(table: TomlSection, folder: Path | None) -> dict[str, Slot]:
    slots = {}
    for name in table.left:
        if not NAME.fullmatch(name) or name in ("template", "row"):
            table.refuse(f"slot names must consist of letters, digits and _, got {name!r}", name)
        slots[name] = _slot(table, name, folder)
    for slot in slots.values():
        if slot.without is not None and slots.get(slot.without, slot).texts is None:
            table.refuse(
                f"{table.where}.{slot.name}.without must name a slot with texts", slot.name
            )
    return slots


def _slot(table: TomlSection, name: str, folder: Path | None) -> Slot:
    value = table.take(name, (list, dict))
    if isinstance(value, list):
        return Slot(name, _texts_of(table, name, table.checked_texts(name, value)))
    part = TomlSection(value, (*table.path, name), table.source)
    found = {key: part.take(key, str, None) for key in SLOT_KINDS}
    without = part.take("without", str, None)
    part.close()
    given = [key for key in SLOT_KINDS if found[key] is not None]
    if len(given) != 1:
        part.refuse(f"{part.where} must have exactly one of {', '.join(SLOT_KINDS)}")
    if without is not None and given[0] == "schema":
        part.refuse(f"{part.where}.without applies to words only", "without")
    if given[0] == "file":
        listed = part.built("file", partial(_listed, _place(part, "file", found["file"], folder)))
        texts = _texts_of(part, "file", listed)
        return Slot(name, texts, file=found["file"], without=without)
    slot = Slot(name, without=without, **{given[0]: found[given[0]]})
    if slot.pattern is not None:
        groups = part.built("pattern", partial(Regex, slot.group)).groups
        if sum(group.name is not None for group in groups) > 1:
            part.refuse(
                f"{part.where}.pattern must not have named groups, because the slot itself is one",
                "pattern",
            )
    if slot.schema is not None:
        part.built("schema", partial(_schema, slot.schema))
    return slot


def _schema(text: str) -> JsonSchema:
    try:
        return JsonSchema(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"the schema is not valid JSON: {error}") from None


def _place(part: TomlSection, key: str, file: str, folder: Path | None) -> Path:
    if folder is None and not Path(file).is_absolute():
        part.refuse(f"{part.where}.{key} must be inline, because the suite has no folder", key)
    return Path(file) if folder is None else folder / file


def _listed(path: Path) -> tuple[str, ...]:
    """Returns the distinct lines of a word list in order, without empty ones."""
    return tuple(dict.fromkeys(line for line in read_text(path).splitlines() if line))


def _texts_of(table: TomlSection, key: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    if not texts or "" in texts:
        table.refuse(f"{table.where}.{key} must be a nonempty list of nonempty strings", key)
    return texts


def _rows(part: TomlSection, name: str, slots: Mapping[str, Slot], folder: Path | None) -> Rows:
    label, file = part.take("label", str, None), part.take("file", str, None)
    listed, last_word = part.take("rows", list, None), part.take("last_word", str, None)
    part.close()
    if (file is None) == (listed is None):
        part.refuse(f"{part.where} must have either rows or a file")
    if last_word is not None and file is None:
        part.refuse(f"{part.where}.last_word must name a column of a file", "last_word")
    key = "rows" if file is None else "file"
    if file is not None:
        path = _place(part, "file", file, folder)
        listed = part.built("file", lambda: read_lines(path, read_text(path), last_word))
    rows = Rows(name, part.built(key, partial(listed_rows, listed, label)), label, file, last_word)
    for column in rows.columns:
        if not NAME.fullmatch(column) or column in ("template", "row"):
            part.refuse(
                f"{part.where}: column names must consist of letters, digits and _, got"
                f" {column!r:.60}",
                key,
            )
        if column in slots:
            part.refuse(f"{part.where}: no column may have the name of a slot, got {column!r}", key)
    return rows


def _oracle(part: TomlSection, name: str, folder: Path | None) -> Oracle:
    kind = part.one_of("kind", KINDS)
    if kind == "checksum":
        part.close()
        return Oracle(name, kind)
    if kind == "http":
        rate = float(part.take("rate", (int, float), 1.0))
        if not 0 < rate <= 100:
            part.refuse(
                f"{part.where}.rate must be above 0 and at most 100 requests per second", "rate"
            )
        part.close()
        return Oracle(name, kind, rate=rate)
    if kind == "texts" and "texts" in part.left:
        texts = part.texts("texts")
        part.close()
        return Oracle(name, kind, texts)
    file, digest = part.take("file", str), part.take("digest", str, None)
    part.close()
    path = _place(part, "file", file, folder)
    if kind == "texts":
        return Oracle(name, kind, part.built("file", partial(_listed, path)), file)
    return Oracle(name, kind, file=file, digest=digest, folder=folder)


def _templates(table: TomlSection, known: Collection[str]) -> list[Template]:
    templates = []
    for name in table.left:
        template = Template(name, table.take(name, str))
        for slot in table.built(name, partial(getattr, template, "slots")):
            if slot not in known:
                hint = f"the slots are {', '.join(known)}" if known else "declare slots in [slots]"
                table.refuse(
                    f"{table.where}.{name} must refer to declared slots, got {{{slot}}}",
                    name,
                    hint=hint,
                )
        templates.append(template)
    if not templates:
        table.refuse(f"{table.where} must have a template")
    return templates


def replaced(
    suite: Suite,
    slots: Mapping[str, str | PathLike[str]],
    rows: Mapping[str, str | PathLike[str]],
) -> Suite:
    """Returns a suite with its data replaced; see :meth:`formalm.suites.Suite.replaced`."""
    new_slots, new_rows = dict(suite.slots), dict(suite.rows)
    for name, file in slots.items():
        if name not in suite.slots or suite.slots[name].texts is None:
            listed = [slot.name for slot in suite.slots.values() if slot.texts is not None]
            raise SuiteError(
                f"the suite {suite.name!r} must have a slot with texts named {name!r}",
                hint=f"its slots with texts are {', '.join(listed) or 'none'}",
            )
        new_slots[name] = replace(new_slots[name], file=str(Path(file).resolve()))
    for name, file in rows.items():
        if name not in suite.rows:
            raise SuiteError(
                f"the suite {suite.name!r} must have rows named {name!r}",
                hint=f"its rows are {', '.join(suite.rows) or 'none'}",
            )
        new_rows[name] = replace(new_rows[name], file=str(Path(file).resolve()))
    # Written with the files' names and read again, so that all checks of a file apply.
    text = replace(suite, slots=new_slots, rows=new_rows).to_toml()
    return type(suite).from_toml(text, folder=Path.cwd())
