"""Trees counted by length, against enumerations that know no convolution and no automaton."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random

import pytest

from formalm import Grammar, LanguageError, LimitError, Regex, SpecialToken
from formalm.errors import FormalmError, TokenError
from formalm.grammars import JSON
from tests.property.random_grammars import grammar_text

Rules = list[list[list[str]]]
TERMINALS = {
    '"a"': ["a"],
    '"ab"': ["ab"],
    "[ab]": ["a", "b"],
    '"b"?': ["", "b"],
    "[ab]{1,2}": ["a", "b", "aa", "ab", "ba", "bb"],
}
LONGEST = 4
#: More trees than short texts have, if they do not have them without end.
MANY = 10**15


def random_rules(random: Random) -> Rules:
    """Alternatives of symbols: numbers of rules, and terminals."""
    count = random.randint(1, 4)
    symbols = [str(number) for number in range(count)] + ['"a"', '"ab"', "[ab]"]
    return [
        [random.choices(symbols, k=random.choice([0, 1, 1, 2, 2, 3])) for _ in range(width)]
        for width in random.choices([1, 2, 3], k=count)
    ]


def written(rules: Rules) -> str:
    """The same as text of GBNF; the first rule is the start."""

    def shown(symbol: str) -> str:
        return f"r{symbol}" if symbol.isdigit() else symbol

    lines = ["root ::= r0"]
    for number, alternatives in enumerate(rules):
        bodies = [" ".join(map(shown, one)) or '""' for one in alternatives]
        lines.append(f"r{number} ::= {' | '.join(bodies)}")
    return "\n".join(lines)


def enumerated(rules: Rules) -> list[int | None]:
    """Trees by the length of their text: all trees of a height, until higher ones add none."""
    trees: list[Counter[str]] = [Counter() for _ in rules]

    def higher() -> list[Counter[str]]:
        """Trees that are at most one higher."""
        result = []
        for alternatives in rules:
            sums: Counter[str] = Counter()
            for one in alternatives:
                row: Counter[str] = Counter({"": 1})
                for symbol in one:
                    part = (
                        trees[int(symbol)]
                        if symbol.isdigit()
                        else Counter(dict.fromkeys(TERMINALS[symbol], 1))
                    )
                    longer: Counter[str] = Counter()
                    for (left, ways), (right, others) in product(row.items(), part.items()):
                        if len(left) + len(right) <= LONGEST:
                            text = left + right
                            longer[text] = min(longer[text] + ways * others, MANY)
                    row = longer
                sums += row
            result.append(sums)
        return result

    def totals() -> list[int]:
        counts = [0] * (LONGEST + 1)
        for text, ways in trees[0].items():
            counts[len(text)] += ways
        return counts

    # On a path without the same rule over the same text there are so many rules at most.
    height = len(rules) * (LONGEST + 2) + 2
    for _ in range(height):
        trees = higher()
    settled = totals()
    for _ in range(height):
        trees = higher()
    return [
        one if one == other < MANY else None for one, other in zip(settled, totals(), strict=True)
    ]


@pytest.mark.parametrize("block", range(12))
def test_counts_are_those_of_all_trees(block: int) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(block * 25, block * 25 + 25):
        rules = random_rules(Random(seed))
        expected = enumerated(rules)
        counts = Grammar(written(rules), "gbnf").tree_counts(LONGEST)
        assert counts == expected, written(rules)
        kinds["endless"] += None in counts
        kinds["empty"] += not any(one is None or one for one in counts)
        kinds["many"] += any(one is not None and one > 4 for one in counts)
    assert kinds["endless"] >= 1
    assert kinds["many"] >= 1


def told(grammar: Grammar, letters: str, length: int) -> int | None:
    """The trees of all texts of a length, parsed one by one."""
    total = 0
    for row in product(letters, repeat=length):
        try:
            ways = grammar.parse("".join(row)).ways
        except TokenError:
            continue
        if ways is None:
            return None
        total += ways
    return total


@pytest.mark.parametrize("lexing", ["any", "longest", "first"])
def test_counts_are_those_of_parsing(lexing: str) -> None:
    compared, refused = 0, 0
    for seed in range(120):
        grammar = Grammar(grammar_text(Random(seed)), lexing=lexing)
        try:
            counts = grammar.tree_counts(4)
        except LanguageError:
            refused += 1
            continue
        try:
            grammar.automaton()
        except FormalmError:
            assert not any(counts)
            continue
        assert counts == [told(grammar, "abc", length) for length in range(5)], grammar.text
        compared += 1
    assert compared >= (90 if lexing == "any" else 5)
    assert (refused > 0) == (lexing != "any")


ORDERED = [
    'start: N ("+" N)* | "(" start ")"\nN: /[0-9]+/\n%ignore " "',
    'start: (N | W | S)*\nN: /1+/\nW: /[ab]/\nS: "\\"" /[^"]/* "\\""\n%ignore /[ ]+/',
    'start: "if" start "fi" | N\nN: /[0-9]+(\\.[0-9]+)?/\n%ignore /[ ]/\n%ignore /#[ab]*;/',
    'start: A start ";" | <|x|>\nA: /[ab]c/',
]


@pytest.mark.parametrize("text", ORDERED)
@pytest.mark.parametrize("lexing", ["longest", "any"])
def test_ordered_lexemes_that_cannot_be_taken_for_others(text: str, lexing: str) -> None:
    """Trees are members where no text has several."""
    grammar = Grammar(text, lexing=lexing)
    try:
        counts = grammar.tree_counts(6, unit="bytes")
    except LanguageError:
        assert text == ORDERED[1]
        assert lexing == "longest"
        return
    members = grammar.to_automaton(max_bytes=6).counts(6, unit="bytes")
    if lexing == "longest":
        assert counts == members
    assert all(one is not None and one >= other for one, other in zip(counts, members, strict=True))


def test_long_texts_are_counted_at_once() -> None:
    known = JSON.to_automaton(max_bytes=8).counts(8, unit="bytes")
    counts = JSON.tree_counts(150, unit="bytes")
    assert counts[:9] == known
    assert len(str(counts[150])) > 300
    catalan = Grammar('root ::= "(" root ")" root | ""', "gbnf").tree_counts(60)
    assert catalan[60] == 3814986502092304
    assert catalan[59] == 0


def test_units() -> None:
    grammar = Grammar('root ::= [éa] root | "€"', "gbnf")
    assert grammar.tree_counts(3) == [0, 1, 2, 4]
    assert grammar.tree_counts(5, unit="bytes") == [0, 0, 0, 1, 1, 2]
    special = Grammar("start: <|x|> /a+/")
    assert special.tree_counts(9, unit="bytes")[8:] == [1, 1]
    with pytest.raises(LanguageError, match="UTF-8"):
        special.tree_counts(9)
    assert special.matches(SpecialToken("<|x|>").data + b"a")


def test_languages_of_any_kind_within_rules() -> None:
    inner = Grammar('root ::= "(" root ")" | "x"', "gbnf")
    text = "%declare inner\nstart: inner+"
    grammar = Grammar(text, lexing="any", languages={"inner": inner})
    assert grammar.tree_counts(6) == [0, 1, 1, 2, 3, 5, 8]
    with pytest.raises(LanguageError, match="parse trees cannot be counted by length if embedded"):
        Grammar(text, languages={"inner": inner}).tree_counts(3)


def test_refusals_say_why() -> None:
    with pytest.raises(LanguageError, match="the input after N can extend it to a longer N"):
        Grammar("start: N N\nN: /[0-9]+/").tree_counts(3)
    with pytest.raises(LanguageError, match="can match the same string"):
        Grammar('start: A | B\nA: "a"\nB: /[ab]/').tree_counts(3)
    with pytest.raises(LanguageError, match="can match a prefix of"):
        Grammar('start: A | B\nA: /ab/\nB: "a"', lexing="first").tree_counts(3)
    with pytest.raises(LanguageError, match="looks ahead"):
        Grammar('start: A "b"\nA: /a(?=b)/', lexing="any").tree_counts(3)
    with pytest.raises(LimitError):
        Grammar('root ::= root "a" | "b"', "gbnf").tree_counts(100, step_limit=50)
    with pytest.raises(LimitError):
        Grammar('root ::= "a"', "gbnf").tree_counts(10**7)
    assert Grammar('root ::= root "a"', "gbnf").tree_counts(2) == [0, 0, 0]
    assert not Regex("a").is_empty()


@pytest.mark.parametrize("lexing", ["longest", "first"])
def test_terminals_that_are_read_and_ignored_are_refused(lexing: str) -> None:
    grammar = Grammar('start: "c"?\n%ignore "c"', lexing=lexing)
    with pytest.raises(LanguageError, match="used in rules and ignored"):
        grammar.tree_counts(3)
