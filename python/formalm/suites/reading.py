"""Reader of suite files: TOML to a checked :class:`Suite`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from formalm.errors import ArgumentError, SuiteError
from formalm.languages import JsonSchema, Regex
from formalm.query.toml import toml_data
from formalm.suites.oracles import KINDS, Oracle
from formalm.suites.places import places_of
from formalm.suites.questions import Parts, read_question
from formalm.suites.rows import Rows, listed_rows, read_lines
from formalm.suites.scoring import read_assertion, read_comparison, read_metric
from formalm.suites.section import Section, Source
from formalm.suites.slots import NAME, Slot, Template
from formalm.suites.suite import Suite

__all__ = ["FORMAT", "TEXTS", "VERSION", "read_suite", "read_text"]

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
            f"the suite is no TOML: {error}", source=text, span=_span(error, text)
        ) from None
    top = Section(data, (), Source(text, places_of(text)))
    if top.take("format", str) != FORMAT:
        top.refuse(f"this is {data['format']!r:.60}, not {FORMAT!r}", "format")
    if top.take("version", int) != VERSION:
        top.refuse(f"the format has version {data['version']}, readable is {VERSION}", "version")
    name = top.take("name", str)
    if not SUITE_NAME.fullmatch(name):
        hint = "such as memorization.urls"
        top.refuse("suite.name is words of small letters with dots between", "name", hint=hint)
    title, texts = top.take("title", str), {key: top.take(key, str, "") for key in TEXTS}
    slots = _slots(top.section("slots", {}), folder)
    rows = _named(_rows(part, name, slots, folder) for name, part in top.sections("rows"))
    oracles = _named(_oracle(part, name, folder) for name, part in top.sections("oracles"))
    known = {*slots, *(column for one in rows.values() for column in one.columns)}
    templates = _named(_templates(top.section("templates"), known))
    parts = Parts(templates, slots, rows, oracles)
    queries = _named(read_question(part, name, parts) for name, part in top.sections("queries"))
    if not queries:
        top.refuse("a suite has a query: [queries.NAME]")
    metrics = _named(
        read_metric(part, name, queries, parts) for name, part in top.sections("metrics")
    )
    comparisons = _named(
        read_comparison(part, name, metrics, queries, slots)
        for name, part in top.sections("comparisons")
    )
    assertions = tuple(
        read_assertion(
            Section(one, ("assertions", number), top.source), metrics, comparisons, slots
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


def _slots(table: Section, folder: Path | None) -> dict[str, Slot]:
    slots = {}
    for name in table.left:
        if not NAME.fullmatch(name) or name in ("template", "row"):
            table.refuse(f"{name!r} is no name of a slot: letters, digits and _", name)
        slots[name] = _slot(table, name, folder)
    for slot in slots.values():
        if slot.without is not None and slots.get(slot.without, slot).texts is None:
            table.refuse(f"{table.where}.{slot.name}.without is a slot that has texts", slot.name)
    return slots


def _slot(table: Section, name: str, folder: Path | None) -> Slot:
    value = table.take(name, (list, dict))
    if isinstance(value, list):
        return Slot(name, _texts_of(table, name, table.checked_texts(name, value)))
    part = Section(value, (*table.path, name), table.source)
    found = {key: part.take(key, str, None) for key in SLOT_KINDS}
    without = part.take("without", str, None)
    part.close()
    given = [key for key in SLOT_KINDS if found[key] is not None]
    if len(given) != 1:
        part.refuse(f"{part.where} has one of {', '.join(SLOT_KINDS)}")
    if without is not None and given[0] == "schema":
        part.refuse(f"{part.where}.without is about words", "without")
    if given[0] == "file":
        listed = part.built("file", partial(_listed, _place(part, "file", found["file"], folder)))
        texts = _texts_of(part, "file", listed)
        return Slot(name, texts, file=found["file"], without=without)
    slot = Slot(name, without=without, **{given[0]: found[given[0]]})
    if slot.pattern is not None:
        groups = part.built("pattern", partial(Regex, slot.group)).groups
        if sum(group.name is not None for group in groups) > 1:
            part.refuse(f"{part.where}.pattern has named groups; the slot is one", "pattern")
    if slot.schema is not None:
        part.built("schema", partial(_schema, slot.schema))
    return slot


def _schema(text: str) -> JsonSchema:
    try:
        return JsonSchema(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"the schema is no JSON: {error}") from None


def _place(part: Section, key: str, file: str, folder: Path | None) -> Path:
    if folder is None and not Path(file).is_absolute():
        part.refuse(f"{part.where}.{key} is somewhere, and no folder was named", key)
    return Path(file) if folder is None else folder / file


def _listed(path: Path) -> tuple[str, ...]:
    """Returns the distinct lines of a word list in order, without empty ones."""
    return tuple(dict.fromkeys(line for line in read_text(path).splitlines() if line))


def _texts_of(table: Section, key: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    if not texts or "" in texts:
        table.refuse(f"{table.where}.{key} has texts, none of them empty", key)
    return texts


def _rows(part: Section, name: str, slots: Mapping[str, Slot], folder: Path | None) -> Rows:
    label, file = part.take("label", str, None), part.take("file", str, None)
    listed, last_word = part.take("rows", list, None), part.take("last_word", str, None)
    part.close()
    if (file is None) == (listed is None):
        part.refuse(f"{part.where} has rows or a file")
    if last_word is not None and file is None:
        part.refuse(f"{part.where}.last_word is a column of a file", "last_word")
    key = "rows" if file is None else "file"
    if file is not None:
        path = _place(part, "file", file, folder)
        listed = part.built("file", lambda: read_lines(path, read_text(path), last_word))
    rows = Rows(name, part.built(key, partial(listed_rows, listed, label)), label, file, last_word)
    for column in rows.columns:
        if not NAME.fullmatch(column) or column in ("template", "row"):
            part.refuse(f"{part.where} has a column {column!r:.60}: letters, digits and _", key)
        if column in slots:
            part.refuse(f"{part.where} has a column {column!r}, and so is a slot called", key)
    return rows


def _oracle(part: Section, name: str, folder: Path | None) -> Oracle:
    kind = part.one_of("kind", KINDS)
    if kind == "checksum":
        part.close()
        return Oracle(name, kind)
    if kind == "http":
        rate = float(part.take("rate", (int, float), 1.0))
        if not 0 < rate <= 100:
            part.refuse(f"{part.where}.rate is above 0 and at most 100 requests a second", "rate")
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


def _templates(table: Section, known: Collection[str]) -> list[Template]:
    templates = []
    for name in table.left:
        template = Template(name, table.take(name, str))
        for slot in table.built(name, partial(getattr, template, "slots")):
            if slot not in known:
                hint = f"there are {', '.join(known)}" if known else "[slots] is where they are"
                table.refuse(
                    f"{table.where}.{name} has {{{slot}}}, which is no slot", name, hint=hint
                )
        templates.append(template)
    if not templates:
        table.refuse(f"{table.where} has a template")
    return templates
