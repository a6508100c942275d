"""Alternatives that longest-match lexing makes unusable, against all short members."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from formalm import Grammar, LanguageError, LimitError, Regex
from formalm.languages import Lexeme

#: Terminals that overlap in every way there is, over three letters.
PIECES = [
    *('"a"', '"b"', '"ab"', '"ba"', '"abc"', "/a+/", "/b+c?/", "/[ab]+/", "/[^c]+/", "/a|ab/"),
    *("/[bc]/", "/c/", "/(ab)+/", "/a[bc]*/", "/ac|b/", "/[abc]{2}/"),
]
IGNORED = ["", "", "%ignore /c+/", '%ignore "b"', "%ignore /[ac]/"]
LETTERS = "abc"
#: Most letters of the members that are looked at.
MOST = 6


class Drawn:
    """A random grammar: alternatives of rules, terminals, and what is ignored."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.terminals = {
            f"T{at}": (random.choice(["", "", "", ".1"]), random.choice(PIECES))
            for at in range(random.randint(2, 4))
        }
        names = ["start", "left", "right"][: random.randint(1, 3)]
        self.rules = {
            name: [
                [
                    (random.choice([*self.terminals, *self.terminals, *names[1:]]), sign)
                    for sign in random.choices(["", "", "", "?", "*", "+"], k=random.randint(1, 3))
                ]
                for _ in range(random.randint(1, 3))
            ]
            for name in names
        }
        self.ignored = random.choice(IGNORED)

    def text(self) -> str:
        lines = [f"{name}: {' | '.join(map(body, all_))}" for name, all_ in self.rules.items()]
        lines += [f"{name}{first}: {piece}" for name, (first, piece) in self.terminals.items()]
        return "\n".join([*lines, self.ignored])

    def marked(self, rule: str, at: int) -> Grammar:
        """Sequences of terminals, as capitals, with a mark behind each use of an alternative."""
        lines = []
        for name, all_ in self.rules.items():
            bodies = [
                body(one) + (' "!"' if (name, number) == (rule, at) else "")
                for number, one in enumerate(all_)
            ]
            lines.append(f"{name}: {' | '.join(bodies)}")
        lines += [f'{name}: "{chr(65 + at)}"' for at, name in enumerate(self.terminals)]
        return Grammar("\n".join(lines), lexing="any")


def body(alternative: list[tuple[str, str]]) -> str:
    return " ".join(name + sign for name, sign in alternative)


def unusable(drawn: Drawn, grammar: Grammar) -> list[tuple[str, int]]:
    """The alternatives that are noted."""
    found = []
    for note in grammar.notes:
        for rule, all_ in drawn.rules.items():
            if note.message.startswith(f"the rule {rule} can never"):
                found += [(rule, at) for at in range(len(all_))]
            for at, one in enumerate(all_):
                if note.message.startswith(f"the alternative {body(one)} of {rule} can never"):
                    found.append((rule, at))
    return found


def members(grammar: Grammar) -> list[str]:
    words = ("".join(one) for count in range(MOST + 1) for one in product(LETTERS, repeat=count))
    return [word for word in words if grammar.matches(word)]


def terminals_of(grammar: Grammar, text: str, names: list[str]) -> str:
    """The terminals of a member as capitals: with the longest lexemes all trees have the same."""
    found, open_ = [], [grammar.parse(text, whole=True)]
    while open_:
        one = open_.pop()
        if isinstance(one, Lexeme):
            found += [chr(65 + names.index(one.terminal))] if one.terminal in names else []
        elif one is not None:
            open_ += reversed(one.children)
    return "".join(found)


def check(seed: int) -> int:
    """Compare the notes of a random grammar with its short members; how many there are."""
    drawn = Drawn(seed)
    grammar = Grammar(drawn.text())
    try:
        found = unusable(drawn, grammar)
    except (LanguageError, LimitError):
        return 0
    if not found:
        return 0
    names = list(drawn.terminals)
    sequences = {terminals_of(grammar, word, names) for word in members(grammar)}
    for rule, at in found:
        try:
            marked = drawn.marked(rule, at)
            marked.automaton()
        except LanguageError:
            continue
        for sequence in sequences:
            spaced = "!*" + "".join(f"{one}!*" for one in sequence)
            used = marked & Regex(spaced) & Regex("[^!]*!.*")
            with pytest.raises(LanguageError, match=r"empty|no string is a member"):
                raise AssertionError((drawn.text(), rule, at, sequence, used.shortest("")))
    return len(found)


def test_noted_alternatives_are_never_used() -> None:
    assert sum(check(seed) for seed in range(250)) > 40


@pytest.mark.slow
def test_noted_alternatives_are_never_used_in_more_grammars() -> None:
    assert sum(check(seed) for seed in range(1_000, 6_000)) > 800
