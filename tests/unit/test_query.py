"""Query: what it refuses, what it lowers to, and that it survives print, pickle and files."""

import math
import pickle
import re
from itertools import product

import pytest

from formalm import (
    ArgumentError,
    Choice,
    Grammar,
    LanguageError,
    LimitError,
    Limits,
    Query,
    Regex,
    StringLiteral,
    Vocabulary,
)
from formalm.languages import Region, from_data, to_data
from formalm.query import Decoding, Edits, plan
from formalm.query.prefixes import members

SAT = Regex("The (man|woman) (sat|ran)")
QUERIES = [
    Query(SAT),
    Query(["a", "b"]),
    Query(SAT, given="The "),
    Query(SAT, Regex("The (man|woman)"), "complete", prefix_weights={"The man": 2, "The woman": 1}),
    Query(SAT, decoding=Decoding(0.5, top_k=3, top_p=0.9, min_p=0.1), renormalize=True),
    Query(SAT, edits=Edits(1, "abc", ("insert",), Region(before=StringLiteral("n"))), bos=None),
    Query(SAT, edits=2, without=Regex("[a-z ]+"), max_tokens=7, bos=3, unique="tokens"),
    Query(SAT, given="The", prefix_cost="zero", unique="tokens", limits=Limits(5, None, 2.5, 99)),
    Query(Choice([b"\xff", 'q"\n\\\x7f€'])),
]
LANGUAGES = [
    Regex("a+", re.I | re.S),
    Regex("a+", dialect="ecma"),
    Regex("a(?P<x>b)c").edits(1, region="x"),
    StringLiteral("a").edits(1, operations=("delete",)) & ~StringLiteral("b"),
    (StringLiteral("ab") * (2, None)) - StringLiteral("abab") | Choice(["x", b"\xfe"]),
    StringLiteral("a big dog").rewrite({"big": ["large", "huge"]}, optional=True).reverse(),
    StringLiteral("a") + Regex("b") * 3,
    Grammar('start: "a" start "b" | "c"'),
    Grammar('root ::= "a" root | "b"', syntax="gbnf"),
    Grammar('begin: "a"', lexing="any", start="begin"),
]


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_query_comes_back_from_every_form(query: Query) -> None:
    for back in (
        Query.from_json(query.to_json()),
        Query.from_toml(query.to_toml()),
        Query.from_data(query.to_data()),
        pickle.loads(pickle.dumps(query)),  # noqa: S301
    ):
        assert back == query
        assert hash(back) == hash(query)
        assert repr(back) == repr(query)
        assert back.to_json() == query.to_json()


@pytest.mark.parametrize("language", LANGUAGES, ids=str)
def test_a_language_comes_back_from_data(language: object) -> None:
    assert from_data(to_data(language)) == language


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({}, "must have the key 'kind'"),
        ({"kind": "prose"}, "got 'prose'"),
        ({"kind": "regex"}, "must have the key 'pattern'"),
        ({"kind": "regex", "pattern": "a", "extra": 1}, "'extra'"),
        ({"kind": "regex", "pattern": 3}, "pattern must be a string"),
        ({"kind": "regex", "pattern": "a", "flags": ["Q"]}, r"flags\[0\]"),
        ({"kind": "union", "of": [{"kind": "regex"}, 3]}, r"of\[0\] must have"),
        ({"kind": "union", "of": []}, "two languages"),
        ({"kind": "choice", "texts": [{"bytes": "zz"}]}, "hexadecimal"),
        (
            {"kind": "repetition", "of": {"kind": "literal", "text": "a"}, "minimum": True},
            "minimum",
        ),
        ([], "a table"),
    ],
)
def test_wrong_data_is_refused_with_its_location(data: object, place: str) -> None:
    with pytest.raises(ArgumentError, match=place):
        from_data(data)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", "not valid JSON"),
        ("[]", "a table"),
        ("{}", "must have the key 'format'"),
        ('{"format": "x", "version": 1}', "got 'x'"),
        ('{"format": "formalm-query", "version": 2}', "got 2"),
        ('{"format": "formalm-query", "version": 1}', "must have the key 'language'"),
        (Query(SAT).to_json().replace('"language"', '"lenguage"'), "must have the key 'language'"),
        (Query(SAT, event="prefix").to_json().replace('"event"', '"evnt"'), "'evnt'"),
    ],
)
def test_wrong_files_are_refused_with_their_location(text: str, place: str) -> None:
    with pytest.raises(ArgumentError, match=place):
        Query.from_json(text)
    with pytest.raises(ArgumentError, match="not valid TOML"):
        Query.from_toml("a = ")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"event": "maybe"}, "event"),
        ({"tokenization": "canonical-given"}, "tokenization"),
        ({"boundary": "glue", "given": "The"}, "boundary"),
        ({"unique": "bytes"}, "unique"),
        ({"bos": "x"}, "bos"),
        ({"bos": True}, "bos"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"limits": 3}, "limits"),
        ({"limits": Limits(forwards=0)}, "forwards"),
        ({"decoding": 3}, "decoding"),
        ({"renormalize": True}, "renormalize"),
        ({"decoded": "prefix"}, "decoded"),
        ({"decoded": "both", "given": "The"}, "decoded"),
        ({"prefix_cost": "joint"}, "prefix_cost"),
        ({"prefix_cost": "zero", "given": "The"}, "prefix_cost"),
        ({"prefix_weights": "model"}, "prefix_weights"),
        ({"prefix_weights": {"The": -1}, "given": "The"}, "prefix_weights"),
        ({"prefix_weights": {"The": 0}, "given": "The"}, "prefix_weights"),
        ({"prefix_weights": {"A": 1}, "given": "The"}, "prefix_weights"),
        ({"prefix_weights": (("The", 1), ("The", 2)), "given": "The"}, "twice"),
        ({"edits": "x"}, "edits"),
        ({"edits": -1}, "edits"),
    ],
)
def test_wrong_fields_are_named(options: dict, field: str) -> None:
    with pytest.raises(ArgumentError, match=field):
        Query(SAT, **options)


def test_given_must_be_a_prefix_of_a_member() -> None:
    with pytest.raises(LanguageError, match="'The cat'") as caught:
        Query(SAT, given=Regex("The (man|cat|woman)"))
    assert caught.value.span == (4, 7)
    with pytest.raises(LanguageError, match="prefix of a member"):
        Query(SAT, given=Regex("The (man|woman)( sat)*"))
    Query(SAT, given=Regex("(The)|(The man)"))
    Query(Regex("ab*c"), given=Regex("ab*"))
    Query(SAT, given="whatever", event="contains")


def test_edits_do_not_change_given_by_default() -> None:
    near = Query(SAT, given=Regex("The (man|woman)"), edits=1).effective_language
    assert near.matches("The man sut")
    assert not near.matches("Thy man sat")
    everywhere = Query(SAT, given="The man", edits=Edits(1, region=Region())).effective_language
    assert everywhere.matches("Thy man sat")
    fewer = Query(SAT, edits=1, without=SAT).effective_language
    assert fewer.matches("The man sa")
    assert not fewer.matches("The man sat")


def test_members_of_a_prefix_language() -> None:
    assert members(Regex("b{1,3}|a")) == [b"a", b"b", b"bb", b"bbb"]
    with pytest.raises(LimitError):
        members(Regex("a+"), limit=100)


def test_a_plan_counts() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", b"ba", None], end_token_ids=[4])
    told = plan(Query(Regex("(a|b){3}")), vocabulary)
    assert (told.texts.count, told.texts.longest, told.texts.states) == (8, 3, 4)
    tokens = [b"a", b"b", b"ab", b"ba"]
    spelled = [b"".join(parts) for n in range(4) for parts in product(tokens, repeat=n)]
    assert told.tokens.count == sum(len(text) == 3 for text in spelled)
    assert told.tokens.prefixes == sum(len(text) <= 3 for text in spelled)
    endless = plan(Query(Regex("a*b")), vocabulary)
    assert endless.texts.count is endless.tokens.prefixes is endless.encodings_per_member is None
    assert "infinitely many" in str(endless)
    short = plan(Query(Regex("(a|b){3}")), vocabulary, state_limit=3)
    assert short.texts is short.tokens is None
    assert len(short.notes) == 2
    empty = plan(Query(Regex("a"), without=Regex("a")), vocabulary)
    assert (empty.texts.count, empty.tokens) == (0, None)
    assert "members: 0" in str(empty)
    assert "'The man', 'The woman'" in str(plan(Query(SAT, given=Regex("The (man|woman)"))))


def test_a_plan_counts_beyond_all_numbers() -> None:
    told = plan(Query(Regex("[0-9]{400}")))
    assert told.texts.count == 10**400
    assert "about 10^" in str(told)


def test_a_grammar_is_asked_like_other_languages() -> None:
    nested = Grammar('start: "a" start "b" | "c"')
    query = Query(nested, given="aa")
    assert Query.from_toml(query.to_toml()) == query
    with pytest.raises(LanguageError, match="prefix of a member"):
        Query(nested, given="b")
    with pytest.raises(LanguageError, match="cannot be edited"):
        Query(nested, edits=1)
    told = plan(query)
    assert told.texts is None
    assert "the number of members is unknown" in str(told)


def test_toml_is_a_text() -> None:
    with pytest.raises(ArgumentError, match="TOML must be a string, got int"):
        Query.from_toml(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_queries_nested_too_deeply_are_refused(depth: int) -> None:
    for wrap in (
        lambda data: {"kind": "reversal", "of": data},
        lambda data: {"kind": "complement", "of": [data]},
        lambda data: {"kind": data},
        lambda data: [data],
    ):
        data: object = {"kind": "literal", "text": "a"}
        for _ in range(depth):
            data = wrap(data)
        label = {"format": "formalm-query", "version": 1}
        for wrong in ({**label, "language": data}, {**label, "format": data}):
            with pytest.raises(ArgumentError):
                Query.from_data(wrong)


@pytest.mark.parametrize("text", [None, 3, b"\xff", {}])
def test_data_that_is_not_a_string_is_not_a_query(text: object) -> None:
    for read in (Query.from_json, Query.from_toml):
        with pytest.raises(ArgumentError):
            read(text)


@pytest.mark.parametrize("number", [math.inf, math.nan, 10**400, -1, True])
def test_numbers_that_no_file_could_have_are_refused(number: float) -> None:
    with pytest.raises(ArgumentError, match=r"limits\.seconds"):
        Query(Regex("a"), limits=Limits(seconds=number))
    with pytest.raises(ArgumentError, match="got 'a'"):
        Query(Regex("ab"), given="a", prefix_weights={"a": number})
