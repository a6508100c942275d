"""Terminals with lookahead against Python's patterns, for longest and for any lexemes."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from itertools import product
from random import Random

import pytest

from formalm import Constraint, Grammar, LanguageError, LimitError, Vocabulary

CASES = int(os.environ.get("FORMALM_CASES", "80"))
LETTERS = "abc"

#: Patterns with and without look-ahead over three letters.
PATTERNS = [
    "a",
    "b",
    "ab",
    "[ab]+",
    "a*b",
    "bc?",
    "a(?=b)",
    "a(?!b)",
    r"[ab]+\b",
    "a*b(?=a|c)",
    "(a|ab)(?!c)",
    "b(?=$)",
    "a$",
    "b(?!.*a)",
    "[ab](?=[ab]{2})",
    "(?:b(?!bb))+",
    "a(?=bc)b",
    "a+(?=(?!ab)[ab])",
    r"b\Z|b(?=a)",
    r"[ab]\B",
]
IGNORED = ["c+", "c", "ca?", "c(?!c)", "c+(?=a)"]


def letters(body: str, names: list[str]) -> str:
    return re.sub(r"T\d+", lambda found: f'"{chr(65 + names.index(found[0]))}"', body)


class Case:
    """A random grammar, its patterns in order of preference, and its sequences of terminals."""

    def __init__(self, seed: int, lexing: str) -> None:
        random = Random(seed)
        names = [f"T{at}" for at in range(random.randint(1, 4))]
        rules = ["start", "left", "right"][: random.randint(1, 3)]
        lines = []
        for rule in rules:
            sequences = []
            for _ in range(random.randint(1, 3)):
                symbols = random.choices([*names, *names, *rules], k=random.randint(0, 3))
                sequences.append(" ".join(one + random.choice(["", "", "?"]) for one in symbols))
            lines.append(f"{rule}: {' | '.join(sequences)}")
        patterns = dict(zip(names, random.sample(PATTERNS, len(names)), strict=True))
        self.ignored = random.choice([None, *IGNORED])
        text = [*lines, *(f"{name}: /{pattern}/" for name, pattern in patterns.items())]
        if self.ignored is not None:
            text.append(f"IGNORED: /{self.ignored}/\n%ignore IGNORED")
            patterns["IGNORED"] = self.ignored
        self.lexing = lexing
        self.text = "\n".join(text)
        self.patterns = list(patterns.values())
        # Of the same length the one that may be longer is preferred, then the one written first.
        widths = [re._parser.parse(one).getwidth()[1] for one in self.patterns]  # type: ignore[attr-defined]
        self.order = sorted(range(len(widths)), key=lambda at: -widths[at])
        self.sequences = Grammar("\n".join(letters(one, names) for one in lines), lexing="any")

    def ends(self, text: str, at: int, begin: int) -> list[int]:
        """Where lexemes of a terminal may end, the text behind them being seen."""
        pattern = self.patterns[at]
        return [
            end
            for end in range(begin + 1, len(text) + 1)
            if compiled(pattern, len(text) - end).match(text[begin:])
        ]

    def accepts(self, text: str) -> bool:
        ways = {(0, "")}
        while ways:
            begin, read = ways.pop()
            if begin == len(text) and self.sequences.matches(read):
                return True
            for at, end in self.lexemes(text, begin, read):
                is_ignored = self.ignored is not None and at == len(self.patterns) - 1
                ways.add((end, read if is_ignored else read + chr(65 + at)))
        return False

    def lexemes(self, text: str, begin: int, read: str) -> list[tuple[int, int]]:
        last = len(self.patterns) - 1
        fits = [
            (at, end)
            for at in self.order
            if (self.ignored is not None and at == last)
            or self.sequences.is_viable(read + chr(65 + at))
            for end in self.ends(text, at, begin)
        ]
        if self.lexing == "any" or not fits:
            return fits
        longest = max(end for _, end in fits)
        return [next(one for one in fits if one[1] == longest)]


@lru_cache(None)
def compiled(pattern: str, behind: int) -> re.Pattern[str]:
    """The pattern, to end so many characters before the end of the text."""
    return re.compile(rf"(?:{pattern})(?=[abc]{{{behind}}}\Z)")


ALL = ["".join(one) for n in range(6) for one in product(LETTERS, repeat=n)]
VOCABULARY = Vocabulary.from_tokens(
    [one.encode() for one in ALL if 0 < len(one) < 4] + [b"<end>"], end_token_ids=[39]
)


@pytest.mark.parametrize("lexing", ["longest", "any"])
@pytest.mark.parametrize("seed", range(CASES))
def test_looking_ahead_is_the_definition(seed: int, lexing: str) -> None:
    case = Case(seed, lexing)
    try:
        case.sequences.automaton()
    except LanguageError:
        return
    members = [text for text in ALL if case.accepts(text)]
    alive = {text[:end] for text in members for end in range(len(text) + 1)}
    grammar = Grammar(case.text, lexing=lexing)
    try:
        matcher = Constraint(grammar, VOCABULARY).matcher()
    except LanguageError:
        assert not members, (case.text, members[:3])
        return
    except LimitError:
        return
    for text in ALL:
        try:
            matches, viable = grammar.matches(text), grammar.is_viable(text)
            whole = grammar.shortest(text) if viable and len(text) < 4 else None
        except LimitError:
            return
        assert matches == (text in members), (case.text, text)
        assert viable or text not in alive, (case.text, text)
        if whole is not None:
            assert case.accepts(whole.decode()), (case.text, text, whole)
            allowed = matcher.fork()
            for letter in text:
                allowed.advance(LETTERS.index(letter))
            try:
                check_mask(grammar, allowed.mask().tolist(), text)
            except LimitError:
                # The search for a member was given up.
                return


def check_mask(grammar: Grammar, mask: list[bool], text: str) -> None:
    for token, allowed in enumerate(mask[:39]):
        more = ALL[token + 1]
        assert allowed == grammar.is_viable(text + more), (grammar.text, text, more)
    assert mask[39] == grammar.matches(text), (grammar.text, text)
