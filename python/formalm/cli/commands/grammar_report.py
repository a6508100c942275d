"""The report of ``formalm grammar check``, as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from formalm.automata.text_of_bytes import SPECIAL, shown_text
from formalm.cli.terminal_output import counted
from formalm.errors import LanguageError, LimitError
from formalm.languages.first_bytes_summary import Overview, overview

if TYPE_CHECKING:
    from formalm.languages import Ambiguity, Grammar, Note

__all__ = ["as_data", "as_text"]

SHOWN_CONFLICTS = 8
"""Maximum LR conflicts in the text report. Chosen, not measured."""

#: Maximum lengths tried for counting, in bytes, and the limit of states for each. Chosen, not
#: measured.
COUNTED, STATES = (8, 4, 2, 1, 0), 2_000


def as_data(read: Grammar) -> dict[str, object]:
    """Return the report as data."""
    found, ambiguity = overview(read), read.ambiguity()
    return {
        "syntax": read.syntax,
        "lexing": read.lexing,
        "empty_is_member": found.empty,
        "first_bytes": list(found.first_bytes),
        "examples": [None if one is None else _text(one) for one in found.examples],
        "counts": _counts(read),
        "ambiguity": {
            "excluded": ambiguity.is_excluded,
            "certain": ambiguity.is_certain,
            "lexemes_are_free": ambiguity.free,
            "doubled": list(ambiguity.doubled),
            "conflicts": [
                {name: _plain(value) for name, value in asdict(one).items()}
                for one in ambiguity.conflicts
            ],
        },
        "rules": [
            {
                "name": one.name,
                "line": None if one.span is None else _line(read, one.span[0]),
                "begins_with": None if one.begins is None else list(one.begins),
                "may_be_empty": one.may_be_empty,
            }
            for one in read.rules
        ],
        "notes": [
            {"message": note.message, "line": line(read, note), "span": note.span}
            for note in read.notes
        ],
    }


def as_text(read: Grammar, rules: bool) -> str:
    """Return the report as text."""
    lines = [f"notation {read.syntax}, lexing {read.lexing}", *_beginnings(overview(read))]
    lines += _counted(read)
    lines += _trees(read.ambiguity())
    if rules:
        lines += _rules(read)
    for note in read.notes:
        place = "" if note.span is None else f"line {line(read, note)}: "
        lines.append(f"note: {place}{note.message}")
    return "\n".join(lines)


def _beginnings(found: Overview) -> list[str]:
    lines = ["the empty string is a member"] if found.empty else []
    if found.first_bytes:
        lines.append("first byte, and a shortest member that begins with it:")
    for byte, example in zip(found.first_bytes, found.examples, strict=True):
        shown = "(none found within the limits)" if example is None else repr(_text(example))
        begins = f"{chr(byte)!r:8}" if byte < 128 else f"byte {byte:02x} "
        lines.append(f"{'special ' if byte == SPECIAL[0] else begins} {shown}")
    return lines


def _counts(read: Grammar) -> list[int] | None:
    """Return the number of members by length in bytes, or None if counting takes too long."""
    for most in COUNTED:
        try:
            written = read.to_automaton(max_bytes=most, state_limit=STATES)
            return list(written.counts(most, unit="bytes"))
        except LimitError:
            continue
        except LanguageError:
            return None
    return None


def _counted(read: Grammar) -> list[str]:
    counts = _counts(read)
    if counts is None:
        return ["members: not counted (too many states)"]
    numbers = ", ".join(f"{one:,}" for one in counts)
    return [f"members by length, 0 to {counted(len(counts) - 1, 'byte')}: {numbers}"]


def _trees(found: Ambiguity) -> list[str]:
    what, several = ("sequence", "sequences") if found.free else ("member", "members")
    of = " of lexemes" if found.free else ""
    if found.is_excluded:
        lines = [f"ambiguity: none, each {what}{of} has exactly one parse tree"]
    elif found.is_certain:
        lines = [f"ambiguity: some {several}{of} have several parse trees"]
    else:
        lines = [f"ambiguity: unknown whether each {what}{of} has one parse tree"]
    if found.doubled:
        lines.append(f"  rules with two derivations of one string: {', '.join(found.doubled)}")
    lines += [f"  {one}" for one in found.conflicts[:SHOWN_CONFLICTS]]
    if len(found.conflicts) > SHOWN_CONFLICTS:
        lines.append(f"  … {len(found.conflicts) - SHOWN_CONFLICTS:,} more")
    return lines


def _rules(read: Grammar) -> list[str]:
    lines = []
    for one in read.rules:
        begins = (
            "too many terminals to list"
            if one.begins is None
            else ", ".join(one.begins) or "nothing"
        )
        empty = "; may be empty" if one.may_be_empty else ""
        lines.append(f"rule {one.name}: begins with {begins}{empty}")
    return lines


def _text(member: str | bytes) -> str:
    return member if isinstance(member, str) else shown_text(member)


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def line(read: Grammar, note: Note) -> int | None:
    """Return the line of a note, from 1."""
    return None if note.span is None else _line(read, note.span[0])


def _line(read: Grammar, at: int) -> int:
    return read.text.count("\n", 0, at) + 1
