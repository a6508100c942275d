"""Reader of the queries of a suite file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from formalm.languages import Regex
from formalm.suites.fact_rows import Rows
from formalm.suites.files.toml_section import TomlSection
from formalm.suites.oracles.oracle import Oracle
from formalm.suites.slots_and_templates import Slot, Template
from formalm.suites.suite_items import Item, item_of
from formalm.suites.suite_parts import ASKS, Question

__all__ = ["DRAWS", "TOLERANCE", "Parts", "columns_of", "read_question"]

FIELDS: dict[str, Any] = {
    "event": str,
    "tokenization": str,
    "decoded": str,
    "renormalize": bool,
    "boundary": str,
    "unique": str,
    "max_tokens": int,
    "bos": (int, str),
    "decoding": dict,
    "limits": dict,
    "edits": dict,
    "without": dict,
}
"""Fields of a suite's query that are fields of a query file, and their types."""
TOLERANCE = 1e-6
BOUNDED = ("mass", "table")
EVENTFUL = ("mass", "table", "score", "distortion")
"""Kinds of queries that require an event: they sum over strings, or compare one with all others."""
OF_TOKENS = ("search", "score", "distortion")
"""Kinds of queries about token sequences."""
DRAWS = {"score": 1000, "free": 1000, "distortion": 2000}
"""Kinds of queries that draw, and their default numbers of draws. Chosen, not measured."""
OF_SCORES = ("event", "bos", "limits")
OF_FREE = ("event", "bos", "max_tokens", "decoding")
OF_DISTORTIONS = ("event", "bos", "decoding", "limits", "max_tokens", "without")


@dataclass(frozen=True)
class Parts:
    """The parts of a suite that a query can refer to."""

    templates: Mapping[str, Template]
    slots: Mapping[str, Slot]
    rows: Mapping[str, Rows]
    oracles: Mapping[str, Oracle]


def columns_of(question: Question, rows: Mapping[str, Rows]) -> tuple[str, ...]:
    """Returns the columns of the rows of a query; none without rows."""
    return () if question.rows is None else rows[question.rows].columns


def read_question(part: TomlSection, name: str, parts: Parts) -> Question:
    """Reads a query and builds its first item, so that errors are found early."""
    ask = part.one_of("ask", ASKS)
    rows = part.one_of("rows", tuple(parts.rows)) if "rows" in part.left else None
    columns = () if rows is None else parts.rows[rows].columns
    chosen = _templates(part, parts, columns)
    each = _each(part, chosen, parts)
    given, prompt = part.take("given", (bool, str), None), part.take("prompt", str, None)
    if isinstance(given, str):
        _check_given(part, given, [parts.templates[one] for one in chosen], (*each, *columns))
    _check_openings(part, ask, [parts.templates[one] for one in chosen], (*each, *columns), given)
    begins = part.take("begins", str, None)
    if begins is not None and given is not None:
        part.refuse(f"{part.where} must not have both given and begins", "begins")
    tolerance = part.take("tolerance", (int, float), TOLERANCE if ask in BOUNDED else None)
    if ask not in BOUNDED and tolerance is not None:
        part.refuse(f"{part.where}.tolerance applies to masses only, got a {ask}", "tolerance")
    if tolerance is not None and not 0 <= tolerance <= 1:
        part.refuse(f"{part.where}.tolerance must be from 0 to 1, got {tolerance}", "tolerance")
    more: dict[str, Any] = {"begins": begins}
    more |= _drawn(part, ask) | _judged(part, ask, chosen, parts)
    if ask == "score":
        more |= _wanted(part, columns)
    fields = {key: part.take(key, kind) for key, kind in FIELDS.items() if key in part.left}
    part.close()
    question = Question(
        name,
        ask,
        chosen,
        each,
        True if given is None else given,
        prompt,
        tolerance,
        rows,
        fields=fields,
        **more,
    )
    _check_question(part, question, parts)
    return question


def _templates(part: TomlSection, parts: Parts, columns: tuple[str, ...]) -> tuple[str, ...]:
    chosen = part.texts("templates", list(parts.templates))
    if not chosen:
        part.refuse(f"{part.where}.templates must not be empty", "templates")
    for number, template in enumerate(chosen):
        if template not in parts.templates:
            part.wrong("templates", number, f"must be a template, got {template!r:.60}")
        for slot in parts.templates[template].slots:
            if slot not in columns and slot not in parts.slots:
                message = (
                    f"{{{slot}}} in the template {template!r} must be a slot or a column of rows"
                )
                part.refuse(
                    f"{part.where}: {message}", hint=f"set rows to a table with a column {slot!r}"
                )
            source = parts.slots[slot].words_of if slot in parts.slots else None
            if source is not None and source not in columns:
                part.refuse(f"{part.where}: {{{slot}}} requires rows with a column {source!r}")
    return chosen


def _each(part: TomlSection, chosen: tuple[str, ...], parts: Parts) -> tuple[str, ...]:
    each = part.texts("each", [])
    for number, slot in enumerate(each):
        missing = [one for one in chosen if slot not in parts.templates[one].slots]
        if slot not in parts.slots or missing:
            known = slot in parts.slots
            where = f"not a slot of the template {missing[0]!r}" if known else "not a slot"
            part.wrong("each", number, f"is {slot!r:.60}, which is {where}")
        if parts.slots[slot].texts is None:
            part.wrong("each", number, f"must be a slot with a list of texts, got {slot!r}")
    return each


def _check_openings(
    part: TomlSection,
    ask: str,
    chosen: list[Template],
    filled: tuple[str, ...],
    given: bool | str | None,
) -> None:
    for template in chosen:
        opened = [piece.is_slot and piece.text not in filled for piece in template.pieces]
        if not any(opened) and (ask != "mass" or isinstance(given, bool)):
            part.refuse(
                f"{part.where}: the template {template.name!r} must have an open slot", "each"
            )
        if opened[:1] == [True] and given is True:
            part.refuse(
                f"{part.where}: {template.name!r} must not begin with an open slot", "given"
            )


def _check_given(
    part: TomlSection, given: str, chosen: list[Template], filled: tuple[str, ...]
) -> None:
    """Checks that a given slot is filled and that no open slot precedes it."""
    for template in chosen:
        names = template.slots
        if given not in names or any(
            name not in filled for name in names[: names.index(given) + 1]
        ):
            message = f"must be a filled slot of {template.name!r} after filled slots only"
            part.refuse(f"{part.where}.given {message}, got {given!r:.60}", "given")


def _drawn(part: TomlSection, ask: str) -> dict[str, Any]:
    drawn: dict[str, Any] = {}
    if ask in DRAWS:
        for key, default, least in (("draws", DRAWS[ask], 1), ("seed", 0, 0)):
            drawn[key] = part.take(key, int, default)
            if drawn[key] < least:
                part.refuse(f"{part.where}.{key} must be an integer of at least {least}", key)
    return drawn


def _judged(
    part: TomlSection, ask: str, chosen: tuple[str, ...], parts: Parts
) -> dict[str, str | None]:
    if ask not in ("search", "free"):
        return {}
    oracle = part.one_of("oracle", tuple(parts.oracles)) if "oracle" in part.left else None
    common = set.intersection(*(set(parts.templates[one].slots) for one in chosen))
    if oracle is None or "judge" not in part.left:
        return {"oracle": oracle}
    return {"oracle": oracle, "judge": part.one_of("judge", sorted(common & set(parts.slots)))}


def _wanted(part: TomlSection, columns: tuple[str, ...]) -> dict[str, Any]:
    """Reads the strings to be scored."""
    if ("targets" in part.left) == ("answer" in part.left):
        part.refuse(
            f"{part.where} must have either targets or an answer, the column with each row's target"
        )
    if "answer" in part.left:
        return {"answer": part.one_of("answer", columns)}
    targets = part.texts("targets")
    if not targets:
        part.refuse(f"{part.where}.targets must not be empty", "targets")
    return {"targets": targets}


def _check_question(part: TomlSection, question: Question, parts: Parts) -> None:
    event = question.fields.get("event")
    if question.ask in OF_TOKENS and event not in (None, "complete", "token_prefix"):
        known = "'complete' or 'token_prefix'"
        part.refuse(f"{part.where}.event must be {known} for a {question.ask}", "event")
    if question.ask == "table" and event == "never":
        part.refuse(
            f"{part.where}.event must not be 'never' for a table, which sorts members", "event"
        )
    first = {name: (parts.slots[name].texts or ("",))[0] for name in question.each}
    label: str | None = None
    row: Mapping[str, str] = {}
    if question.rows is not None:
        label, row = next(parts.rows[question.rows].labeled())
    for name in question.templates:
        template = parts.templates[name]
        item = part.built(
            None, partial(item_of, question, template, parts.slots, first, label, row)
        )
        _check_limits(part, question, item)
        if question.ask in CHECKS:
            CHECKS[question.ask](part, question, item)
    if question.ask in EVENTFUL and event is None:
        part.refuse(f"{part.where}.event must be given for a {question.ask}")


def _check_limits(part: TomlSection, question: Question, item: Item) -> None:
    limits = item.query.limits
    listing = (limits.hits, limits.beams) != (None, None)
    if question.ask not in ("search", "score") and listing:
        part.refuse(f"{part.where}.limits.hits and .beams apply to searches only", "limits")
    if question.ask in ("search", "score") and limits.hits is None:
        part.refuse(f"{part.where}.limits.hits must be given for a {question.ask}", "limits")


def _only(part: TomlSection, question: Question, known: tuple[str, ...]) -> None:
    for key in question.fields:
        if key not in known:
            part.refuse(f"{part.where}.{key} does not apply to a {question.ask}", key)


def _check_score(part: TomlSection, question: Question, item: Item) -> None:
    _only(part, question, OF_SCORES)
    if question.prompt is not None:
        part.refuse(f"{part.where}.prompt must be part of the template", "prompt")
    if item.query.limits.beams is not None:
        part.refuse(
            f"{part.where}.limits.beams must not be given, because a beam has no exact ranks",
            "limits",
        )
    if len(item.open) != 1:
        part.refuse(f"{part.where}: a template of scores must have exactly one open slot", "each")
    key = "targets" if question.answer is None else "answer"
    for text in item.targets:
        if not item.query.effective_language.matches(item.filled(text)):
            part.refuse(
                f"{part.where}.{key} must contain texts of the slot only, got {text!r:.60}", key
            )
    language = item.query.effective_language
    if not part.built(None, language.to_automaton).is_finite:
        part.refuse(f"{part.where}: ranks require a slot with finitely many texts", "templates")
    if (
        item.query.event == "token_prefix"
        and not (language & (language + Regex("(?s).+"))).is_empty()
    ):
        part.refuse(
            f"{part.where}.event must be 'complete', because one text of the slot is a prefix of"
            " another"
        )


def _check_free(part: TomlSection, question: Question, _: Item) -> None:
    _only(part, question, OF_FREE)
    if "max_tokens" not in question.fields:
        part.refuse(f"{part.where}.max_tokens must be given: the length of a free text")
    if question.fields.get("event", "complete") not in ("complete", "prefix", "contains"):
        part.refuse(f"{part.where}.event must be 'complete', 'prefix' or 'contains'", "event")


def _check_distortion(part: TomlSection, question: Question, item: Item) -> None:
    _only(part, question, OF_DISTORTIONS)
    if item.query.given is not None:
        part.refuse(f"{part.where}: pass the given part in 'prompt'", "given")


CHECKS = {"score": _check_score, "free": _check_free, "distortion": _check_distortion}
