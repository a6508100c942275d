"""Special tokens as parts of languages: exactly that token, never what spells its name."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from formalm import (
    Constraint,
    Grammar,
    Language,
    LanguageError,
    Query,
    Regex,
    Section,
    SpecialToken,
    StringLiteral,
    Structure,
    TableModel,
    TokenError,
    Vocabulary,
    VocabularyError,
    generate,
    mass,
    search,
    stream,
)
from formalm.automata.text_of_bytes import shown_text
from formalm.languages import from_data, to_data, until
from tests.support.special_tokens import CALL, CASES, DONE, ID, TOKENS, VOCABULARY


def read(language: Language, *tokens: int | bytes) -> list[int]:
    """The allowed tokens after some."""
    matcher = Constraint(language, VOCABULARY).matcher()
    for token in tokens:
        if isinstance(token, int):
            matcher.advance(token)
        else:
            matcher.advance_bytes(token)
    return matcher.allowed_token_ids().tolist()


def test_only_the_token_itself() -> None:
    language = CALL + Regex("[0-9]") + DONE
    assert read(language) == [264]
    assert read(language, 264) == [*range(48, 58)]
    assert read(language, 264, b"7") == [265]
    assert read(language, 264, b"7", 265) == [267]
    assert language.matches(CALL.data + b"7" + DONE.data)
    assert not language.matches("<|call|>7<|done|>")
    # The spelled name is text, and in no language but those that have the text.
    assert read(StringLiteral("<|call|>")) == [ord("<"), 256, 257]
    assert 264 not in read(Regex("(?s:.*)"))
    assert 260 not in read(Regex("(?s:.*)") | CALL)


@pytest.mark.parametrize("lexing", ["longest", "any", "first"])
def test_in_the_text_of_a_grammar(lexing: str) -> None:
    grammar = Grammar(
        r"""
        start: <|call|> NAME "(" [NAME ("," NAME)*] ")" <|done|> | <|call|> <|call|> "<|"
        NAME: /[a-z]+(?![0-9])/
        %ignore " "
        """,
        lexing=lexing,
    )
    assert read(grammar) == [ord(" "), 264]
    assert 264 in read(grammar, 264)
    assert 256 not in read(grammar, 264)
    assert read(grammar, 264, 264) == [ord(" "), ord("<"), 257]
    assert read(grammar, 264, b"ab()") == [ord(" "), 265]
    member = CALL.data + b"ab(c)" + DONE.data
    tree = grammar.parse(member)
    assert tree.children[-1].text == "<|done|>"
    assert [one.terminal for one in grammar.expected()] == ["<|call|>"]
    assert grammar.shortest() == CALL.data * 2 + b"<|"


def test_in_terminals_and_as_given_languages() -> None:
    text = '%declare MARK\nstart: MARK WORD | EITHER\nWORD: /[a-z]+/\nEITHER: <|done|> "x"'
    grammar = Grammar(text, languages={"MARK": CALL | StringLiteral("!")})
    assert read(grammar) == [ord("!"), 264, 265]
    assert read(grammar, 265) == [ord("x")]
    with pytest.raises(LanguageError, match="special token"):
        Grammar("start: <|a b|>")
    with pytest.raises(VocabularyError, match=r"no special token"):
        Constraint(Grammar("start: <|a|>"), VOCABULARY)


def test_names_are_those_of_the_vocabulary() -> None:
    with pytest.raises(VocabularyError) as caught:
        Constraint(SpecialToken("<|cal|>"), VOCABULARY)
    assert '"<|call|>"' in str(caught.value.hint)
    with pytest.raises(VocabularyError, match="is an end token"):
        Constraint(SpecialToken("<|end|>"), VOCABULARY)
    with pytest.raises(VocabularyError) as caught:
        Constraint(SpecialToken("call"), VOCABULARY)
    assert "as a string" in str(caught.value.hint)
    # Other ends, and it is a token as others are.
    others = Vocabulary.from_tokens(TOKENS, [266], special_tokens=ID)
    matcher = Constraint(SpecialToken("<|end|>") + StringLiteral("a"), others).matcher()
    assert matcher.forced_token_ids() == [267, 97]
    for name in ("", "\ud800", 3):
        with pytest.raises(LanguageError):
            SpecialToken(name)  # type: ignore[arg-type]


def test_meaningless_special_tokens_are_refused() -> None:
    with pytest.raises(LanguageError, match="FE"):
        Constraint(CALL | StringLiteral(b"\xfe"), VOCABULARY)
    with pytest.raises(LanguageError, match="cannot be reversed"):
        (CALL + StringLiteral("a")).reverse()
    with pytest.raises(LanguageError, match="UTF-8"):
        CALL.edits(1)
    with pytest.raises(LanguageError, match="prompt"):
        Query(CALL + StringLiteral("a"), given=CALL)
    model = TableModel(VOCABULARY, {}, default=np.full(len(TOKENS), 1 / len(TOKENS)))
    with pytest.raises(LanguageError, match="contains"):
        mass(model, CALL, event="contains")


def test_no_token_and_no_bytes_end_within_one() -> None:
    matcher = Constraint(CALL | DONE, VOCABULARY).matcher()
    assert matcher.forced_bytes() == b""
    for part in (b"\xfe", b"\xfe<|call|>"):
        with pytest.raises(TokenError):
            matcher.advance_bytes(part)
    assert matcher.explain(266).text == "token 266 is special, and the language does not name it"
    assert "expected is a special token" in matcher.explain(97).text
    assert matcher.explain(264).allowed
    matcher.advance_bytes(CALL.data)
    assert matcher.is_accepting
    assert matcher.text == CALL.data
    assert "'<|done|>' is not allowed" in matcher.explain(265).text
    assert matcher.explain(265).viable_bytes == 0
    ahead = Constraint(StringLiteral("x") + CALL + (DONE | CALL), VOCABULARY).matcher()
    assert ahead.forced_bytes() == b"x" + CALL.data


def test_set_operations() -> None:
    assert ((CALL | DONE) - CALL).equivalent(DONE)
    assert not (~CALL).matches(DONE.data)
    assert (~CALL).matches("<|call|>")
    grammar = Grammar('start: <|call|> A* | A\nA: "a" | <|done|>')
    rest = grammar - Regex("a")
    assert rest.matches(CALL.data)
    assert not rest.matches("a")
    assert (grammar & (CALL | DONE | StringLiteral("a"))).to_automaton(max_bytes=30).count(
        10, unit="bytes"
    ) == 2


def test_structures_are_parsed_into_sections() -> None:
    language = CASES[0]
    data = b"<|call|> is text " + CALL.data + b"12" + DONE.data + b"and <xab"
    assert language.matches(data)
    pieces = language.value(data)
    assert isinstance(pieces, list)
    kinds = [(piece.kind, piece.text) for piece in pieces]
    assert kinds == [
        ("free", "<|call|> is text "),
        ("section", "12"),
        ("free", "and "),
        ("section", "ab"),
    ]
    calls = CASES[3]
    shortest = calls.shortest(b"hi" + CALL.data)
    assert shortest is not None
    assert str(calls.value(shortest)) == "[Call(name='sub', arguments='0')]"
    thought = CASES[2]
    pieces = thought.value(CALL.data + b"<t> no" + DONE.data + b"x<t>aa" + DONE.data)
    assert isinstance(pieces, list)
    assert [piece.kind for piece in pieces] == ["reasoning", "free", "section"]
    # A text within the name of a special token is none.
    inner = Structure([Section("call", Regex("[0-9]")), Section(CALL, Regex("[a-z]"))])
    found = inner.value(CALL.data + b"zcall1")
    assert isinstance(found, list)
    assert [one.text for one in found] == ["z", "1"]
    with pytest.raises(LanguageError, match="could never be recognized"):
        Structure([Section(CALL, Regex("a")), Section(("x", CALL), Regex("a"))])


def test_a_marker_given_as_a_string_gets_a_hint_to_special_token() -> None:
    language = Structure([Section("<|call|>", Regex("a"))])
    with pytest.raises(LanguageError) as caught:
        Constraint(language, VOCABULARY)
    assert "SpecialToken('<|call|>')" in str(caught.value.hint)


def test_until_marks() -> None:
    language = until(("ab", CALL), "bx", DONE)
    assert language.matches(b"xxab" + CALL.data)
    assert not language.matches(b"bxab" + CALL.data)
    assert not language.matches(b"abab")
    assert until("ab", CALL).matches("xxab")


def test_values_travel() -> None:
    for language in [*CASES, CALL]:
        assert pickle.loads(pickle.dumps(language)) == language  # noqa: S301
        assert from_data(to_data(language)) == language
    constraint = pickle.loads(pickle.dumps(Constraint(CALL, VOCABULARY)))  # noqa: S301
    assert constraint.matcher().allowed_token_ids().tolist() == [264]
    assert constraint == Constraint(CALL, VOCABULARY)


def model() -> TableModel:
    weights = np.ones(len(TOKENS))
    weights[264:268] = 40
    return TableModel(VOCABULARY, {}, default=weights / weights.sum())


@pytest.mark.parametrize("number", [0, 2, 3, 6])
@pytest.mark.parametrize("finish", [False, True])
def test_generations(number: int, finish: bool) -> None:
    language, found = CASES[number], 0
    for seed in range(6):
        made = generate(model(), None, language, max_tokens=24, seed=seed, finish=finish)
        data = b"".join(
            SpecialToken(next(name for name, at in ID.items() if at == one)).data
            if one >= 264
            else TOKENS[one] or b""
            for one in made.token_ids
            if one != 267
        )
        assert made.data == data
        assert made.text == shown_text(data)
        assert b"\xfe" not in made.text.encode()
        assert made.is_accepting == language.matches(data)
        assert made.complete or not finish
        pieces = list(stream(model(), None, language, max_tokens=24, seed=seed, finish=finish))
        assert "".join(pieces) == made.text
        found += b"\xfe" in data
    assert found


def test_stop_values_are_strings() -> None:
    language = CALL + Regex("[a-d]*") + DONE + Regex("[a-d]*")
    for seed in range(8):
        made = generate(
            model(), None, language, max_tokens=40, seed=seed, stop=["call", "don", "ab"]
        )
        assert made.text.startswith("<|call|>")
        assert made.stop_text in (None, "ab")
        assert made.data.count(b"\xfe") % 2 == 0


def test_questions() -> None:
    language = (CALL + Regex("[ab]") + DONE) | StringLiteral("<|")
    hits = list(search(model(), Query(language, event="complete")))
    texts = [(hit.text, hit.data) for hit in hits]
    assert texts[0][0] == "<|" or "<|call|>a<|done|>" in [text for text, _ in texts]
    assert {data for _, data in texts} == {
        b"<|",
        CALL.data + b"a" + DONE.data,
        CALL.data + b"b" + DONE.data,
    }
    row = np.ones(len(TOKENS))
    row[264:268] = 40
    row /= row.sum()
    end = row[267]
    exact = 2 * row[264] * row[97] * row[265] * end + end * (row[257] + row[60] * row[124])
    bounds = mass(model(), language, event="complete", tolerance=1e-12)
    assert bounds.low <= exact <= bounds.high
    for hit in hits:
        assert language.matches(hit.data)


def test_two_names_of_one_token_are_refused() -> None:
    with pytest.raises(VocabularyError, match="name each token once"):
        Vocabulary.from_tokens([b"a", None], special_tokens={"<|a|>": 1, "<|b|>": 1})
