"""Suite files, read and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from formalm.errors import ArgumentError, SuiteError
from formalm.languages import Regex
from formalm.query.toml import toml_data
from formalm.suites.items import item_of
from formalm.suites.parts import ASKS, Question
from formalm.suites.places import places_of
from formalm.suites.scoring import read_assertion, read_comparison, read_metric
from formalm.suites.section import Section, Source
from formalm.suites.slots import NAME, Slot, Template
from formalm.suites.suite import Suite

__all__ = ["FORMAT", "TEXTS", "VERSION", "read_suite", "read_text"]

FORMAT = "formalm-suite"
VERSION = 1
TEXTS = ("description", "warning", "citation", "licence")
SUITE_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*")
FIELDS: dict[str, Any] = {
    "event": str,
    "tokenization": str,
    "decoded": str,
    "renormalise": bool,
    "boundary": str,
    "unique": str,
    "max_tokens": int,
    "bos": (int, str),
    "decoding": dict,
    "limits": dict,
    "edits": dict,
    "without": dict,
}
"""What a query of a suite says in the words of a query file."""
EPS = 1e-6


def read_text(path: Path) -> str:
    """The text of a file; a SuiteError if there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SuiteError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SuiteError(f"{str(path)!r} is not UTF-8: {error}") from None


def read_suite(text: str, folder: Path | None) -> Suite:
    """See :meth:`formalm.suites.Suite.from_toml`."""
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
    templates = {
        template.name: template for template in _templates(top.section("templates"), slots)
    }
    queries = _named(
        _question(part, name, templates, slots) for name, part in top.sections("queries")
    )
    if not queries:
        top.refuse("a suite has a query: [queries.NAME]")
    metrics = _named(
        read_metric(part, name, queries, templates, slots) for name, part in top.sections("metrics")
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
    return Suite(name, title, slots, templates, queries, metrics, comparisons, assertions, **texts)


def _span(error: Exception, text: str) -> tuple[int, int] | None:
    """Where the reader of TOML says that it stopped."""
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
        if not NAME.fullmatch(name) or name == "template":
            table.refuse(f"{name!r} is no name of a slot: letters, digits and _", name)
        slots[name] = _slot(table, name, folder)
    return slots


def _slot(table: Section, name: str, folder: Path | None) -> Slot:
    value = table.take(name, (list, dict))
    if isinstance(value, list):
        return Slot(name, _texts_of(table, name, table.checked_texts(name, value)))
    part = Section(value, (*table.path, name), table.source)
    pattern, file = part.take("pattern", str, None), part.take("file", str, None)
    if (pattern is None) == (file is None):
        part.refuse(f"{part.where} has a pattern or a file")
    part.close()
    if file is not None:
        if folder is None:
            part.refuse(f"{part.where}.file is somewhere, and no folder was named", "file")
        listed = part.built("file", partial(_listed, folder / file))
        return Slot(name, _texts_of(part, "file", listed), file=file)
    slot = Slot(name, pattern=pattern)
    groups = part.built("pattern", partial(Regex, slot.group)).groups
    if sum(group.name is not None for group in groups) > 1:
        part.refuse(f"{part.where}.pattern has named groups; the slot is one", "pattern")
    return slot


def _listed(path: Path) -> tuple[str, ...]:
    """The lines of a word list, in order and once each; empty ones are left out."""
    return tuple(dict.fromkeys(line for line in read_text(path).splitlines() if line))


def _texts_of(table: Section, key: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    if not texts or "" in texts:
        table.refuse(f"{table.where}.{key} has texts, none of them empty", key)
    return texts


def _templates(table: Section, slots: Mapping[str, Slot]) -> list[Template]:
    templates = []
    for name in table.left:
        template = Template(name, table.take(name, str))
        for slot in table.built(name, partial(getattr, template, "slots")):
            if slot not in slots:
                hint = f"there are {', '.join(slots)}" if slots else "[slots] is where they are"
                table.refuse(
                    f"{table.where}.{name} has {{{slot}}}, which is no slot", name, hint=hint
                )
        templates.append(template)
    if not templates:
        table.refuse(f"{table.where} has a template")
    return templates


def _question(
    part: Section, name: str, templates: Mapping[str, Template], slots: Mapping[str, Slot]
) -> Question:
    ask = part.one_of("ask", ASKS)
    chosen = part.texts("templates", list(templates))
    if not chosen:
        part.refuse(f"{part.where}.templates has a template", "templates")
    for number, template in enumerate(chosen):
        if template not in templates:
            part.wrong("templates", number, f"is {template!r:.60}, which is no template")
    each = part.texts("each", [])
    for number, slot in enumerate(each):
        missing = [one for one in chosen if slot not in templates[one].slots]
        if slot not in slots or missing:
            where = f"no slot of the template {missing[0]!r}" if slot in slots else "no slot"
            part.wrong("each", number, f"is {slot!r:.60}, which is {where}")
        if slots[slot].texts is None:
            part.wrong("each", number, f"is {slot!r}, which has no list of texts to go through")
    given, prompt = part.take("given", bool, None), part.take("prompt", str, None)
    for template in chosen:
        before, opened = _open_from(templates[template], each)
        if not opened and (ask != "mass" or given is not None):
            part.refuse(f"{part.where}: the template {template!r} has no open slot", "each")
        if not before and given is True:
            part.refuse(f"{part.where}: {template!r} begins with an open slot", "given")
    eps = part.take("eps", (int, float), None if ask == "search" else EPS)
    if ask == "search" and eps is not None:
        part.refuse(f"{part.where}.eps is about masses, and this is a search", "eps")
    if eps is not None and not 0 <= eps <= 1:
        part.refuse(f"{part.where}.eps is from 0 to 1", "eps")
    fields = {key: part.take(key, kind) for key, kind in FIELDS.items() if key in part.left}
    part.close()
    question = Question(name, ask, chosen, each, given is not False, prompt, eps, fields)
    _check_asked(part, question, templates, slots)
    return question


def _open_from(template: Template, each: tuple[str, ...]) -> tuple[bool, bool]:
    """Whether something stands before the first open slot, and whether there is one."""
    opened = [piece.is_slot and piece.text not in each for piece in template.pieces]
    return opened[:1] != [True], any(opened)


def _check_asked(
    part: Section, question: Question, templates: Mapping[str, Template], slots: Mapping[str, Slot]
) -> None:
    """Build the first item of each template, so that what cannot be asked is refused here."""
    if question.ask == "mass" and "event" not in question.fields:
        part.refuse(f"{part.where} lacks 'event': a mass needs one")
    if question.ask == "table" and question.fields.get("event") == "never":
        part.refuse(f"{part.where}.event is 'never', which has no member to sort", "event")
    first = {name: (slots[name].texts or ("",))[0] for name in question.each}
    for name in question.templates:
        item = part.built(None, partial(item_of, question, templates[name], slots, first))
        limits = item.query.limits
        if question.ask != "search" and (limits.hits, limits.beam) != (None, None):
            part.refuse(f"{part.where}.limits.hits and .beam are about searches", "limits")
        if question.ask == "search" and limits.hits is None:
            part.refuse(f"{part.where}: a search has limits.hits", "limits")
