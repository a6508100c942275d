"""Table 2: the constructs of regular expressions, each with its language and its automaton."""

from __future__ import annotations

from itertools import islice

from experiments.relm.outcomes import Outcome, Row, Setting
from formalm import Language, Regex

__all__ = ["CONSTRUCTS", "table_2"]

CONSTRUCTS: dict[str, tuple[str, Language]] = {
    "a": ("a symbol, {a}", Regex("a")),
    "ε": ("the empty string, {ε}", Regex("")),
    "∅": ("the empty set, {}", Regex("a") - Regex("a")),
    "r1|r2": ("disjunction", Regex("a|b")),
    "r1r2": ("concatenation", Regex("ab")),
    "r*": ("zero or more repetitions", Regex("a*")),
    "(r)": ("binding precedence", Regex("(a|b)a")),
}
FEW = 4


def table_2(_: Setting) -> Outcome:
    """Lists the members of each construct."""
    rows: list[Row] = []
    data = {}
    pictures = {}
    for construct, (meaning, language) in CONSTRUCTS.items():
        automaton = language.to_automaton()
        members = [str(one) for one in islice(automaton.enumerate(), FEW)]
        more = "" if automaton.is_finite else ", …"
        shown = "{" + ", ".join(one or "ε" for one in members) + more + "}"
        rows.append((construct, meaning, shown))
        data[construct] = {"members": members, "finite": automaton.is_finite}
        pictures[f"{construct}: {shown}"] = automaton.to_svg()
    return Outcome(
        "table_2",
        "Constructs of regular expressions and their interpretations.",
        rows,
        data,
        pictures,
        "Written as in Python's re: ε is the empty pattern, ∅ a difference of equal languages.",
    )
