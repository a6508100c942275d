"""What ``formalm grammar check`` tells, for people and for other programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from formalm.automata.encoding import SPECIAL, shown_text
from formalm.errors import LanguageError, LimitError
from formalm.languages.summary import Overview, overview

if TYPE_CHECKING:
    from formalm.languages import Ambiguity, Grammar, Note

__all__ = ["as_data", "as_text"]

TOLD = 8

#: Members of so many bytes are counted: the first that take no more than so many states.
COUNTED, STATES = (8, 4, 2, 1, 0), 2_000


def as_data(read: Grammar) -> dict[str, object]:
    """Everything found, for other programs."""
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
    """Everything found, for people."""
    lines = [f"{read.syntax}, lexemes: {read.lexing}", *_beginnings(overview(read))]
    lines += _counted(read)
    lines += _trees(read.ambiguity())
    if rules:
        lines += _rules(read)
    for note in read.notes:
        place = "" if note.span is None else f"line {line(read, note)}: "
        lines.append(f"note: {place}{note.message}")
    return "\n".join(lines)


def _beginnings(found: Overview) -> list[str]:
    lines = ["the empty text is a member"] if found.empty else []
    for byte, example in zip(found.first_bytes, found.examples, strict=True):
        shown = "(no member found within the limits)" if example is None else repr(_text(example))
        begins = f"{chr(byte)!r:8}" if byte < 128 else f"byte {byte:02x} "
        lines.append(f"{'special ' if byte == SPECIAL[0] else begins} {shown}")
    return lines


def _counts(read: Grammar) -> list[int] | None:
    """Numbers of members by their bytes, as far as that is quick; None where it is not."""
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
        return ["members: not counted"]
    numbers = ", ".join(f"{one:,}" for one in counts)
    return [f"members of 0 to {len(counts) - 1} bytes: {numbers}"]


def _trees(found: Ambiguity) -> list[str]:
    what, several = ("sequence", "sequences") if found.free else ("member", "members")
    of = " of lexemes" if found.free else ""
    if found.is_excluded:
        lines = [f"trees: each {what}{of} has exactly one"]
    elif found.is_certain:
        lines = [f"trees: some {several}{of} have several"]
    else:
        lines = [f"trees: not known whether each {what}{of} has one"]
    if found.doubled:
        lines.append(f"  derived in two ways: something of {', '.join(found.doubled)}")
    lines += [f"  {one}" for one in found.conflicts[:TOLD]]
    if len(found.conflicts) > TOLD:
        lines.append(f"  and {len(found.conflicts) - TOLD} more places")
    return lines


def _rules(read: Grammar) -> list[str]:
    lines = []
    for one in read.rules:
        begins = "too many to tell" if one.begins is None else ", ".join(one.begins) or "nothing"
        empty = "; may be empty" if one.may_be_empty else ""
        lines.append(f"rule {one.name}: begins with {begins}{empty}")
    return lines


def _text(member: str | bytes) -> str:
    return member if isinstance(member, str) else shown_text(member)


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def line(read: Grammar, note: Note) -> int | None:
    """The line that a note is about, from 1."""
    return None if note.span is None else _line(read, note.span[0])


def _line(read: Grammar, at: int) -> int:
    return read.text.count("\n", 0, at) + 1
