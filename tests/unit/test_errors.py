"""Every kind of error is raised somewhere, says what to do, and survives pickling."""

from __future__ import annotations

import pickle

import pytest

import formalm.errors as tree
from formalm import (
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    Parser,
    Regex,
    StringLiteral,
    TableModel,
    TypeScript,
    Vocabulary,
    VocabularyError,
    fill_bitmasks,
    generate,
    new_bitmask,
    score,
)
from formalm.constraint_cache import ConstraintCache
from formalm.suites import Suite

VOCABULARY = Vocabulary.from_tokens([b"a", b"b"])
MODEL = TableModel(VOCABULARY, {}, default=[0.5, 0.5])


def one_matcher_twice_at_once() -> None:
    """A batch is filled in parallel, so this is one matcher in two threads."""
    matcher = Constraint(Regex("[ab]*"), VOCABULARY).matcher()
    fill_bitmasks([matcher, matcher], new_bitmask(2, len(VOCABULARY)))


class Broken(Parser):
    """A parser that copies nothing."""

    is_accepting = True  # type: ignore[assignment]

    def append(self, text: str) -> None:
        """Reads anything."""

    def copy(self) -> Broken:
        return self


RAISED = {
    tree.LanguageError: lambda: Regex("a("),
    tree.LimitError: lambda: generate(MODEL, None, StringLiteral("aab"), max_tokens=2, finish=True),
    tree.DeadlineError: lambda: Constraint(Regex(r"(?!x)\w{9}"), VOCABULARY, timeout_seconds=1e-9),
    tree.VocabularyError: lambda: VOCABULARY.encode("a"),
    tree.TokenError: lambda: Constraint(StringLiteral("a"), VOCABULARY).matcher().advance(1),
    tree.ConcurrencyError: one_matcher_twice_at_once,
    tree.ParserError: lambda: Broken().matches("a"),
    tree.ModelError: lambda: TableModel(VOCABULARY, {}).next_logprobs([()]),
    tree.SuiteError: lambda: Suite.from_toml("format = 3"),
    tree.ArgumentError: lambda: new_bitmask(0, 1),
}


def kinds() -> set[type]:
    return {getattr(tree, name) for name in tree.__all__} - {tree.FormalmError}


def test_the_table_is_complete() -> None:
    assert set(RAISED) == kinds()


@pytest.mark.parametrize("kind", sorted(kinds(), key=lambda kind: kind.__name__))
def test_every_kind_is_raised(kind: type[tree.FormalmError]) -> None:
    with pytest.raises(kind) as caught:
        RAISED[kind]()
    error = caught.value
    assert isinstance(error, tree.FormalmError)
    assert error.message
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert str(again) == str(error)


def test_a_caret_marks_the_span() -> None:
    error = tree.LanguageError("no", source="ab(cd", span=(2, 3), hint="close it")
    assert str(error).splitlines() == ["no", "  ab(cd", "    ^", "  hint: close it"]
    far = tree.LanguageError("no", source="x" * 500 + "(", span=(500, 501))
    _, window, caret = str(far).splitlines()
    assert window[len(caret) - 1] == "("


def test_a_position_in_a_file_has_a_line() -> None:
    source = "a = 1\nname = 3\n"
    error = tree.SuiteError("no", source=source, span=(13, 14), hint="append it")
    lines = ["no (line 2, column 8)", "  name = 3", "         ^", "  hint: append it"]
    assert str(error).splitlines() == lines
    assert tree.SuiteError("no").line is None


def test_builtin_kinds_catch_ours() -> None:
    with pytest.raises(ValueError, match="tokenizer"):
        VOCABULARY.encode("a")
    assert issubclass(VocabularyError, ValueError)
    with pytest.raises(TimeoutError, match="compile needs more than") as caught:
        RAISED[tree.DeadlineError]()
    assert caught.value.errno is None


SURROGATES = {
    "pattern": lambda: Regex("a\ud800"),
    "literal": lambda: StringLiteral("a\ud800"),
    "choice": lambda: Choice(["a\ud800"]),
    "grammar": lambda: Grammar('start: "\ud800"'),
    "schema-as-value": lambda: JsonSchema({"const": "a\ud800"}),
    "schema-as-text": lambda: JsonSchema('{"const": "a\ud800"}'),
    "property-name": lambda: JsonSchema({"properties": {"a\ud800": True}}),
    "type": lambda: TypeScript("'a\ud800'"),
    "prompt": lambda: generate(MODEL, "a\ud800", Regex("a")),
    "stop": lambda: generate(MODEL, "a", Regex("a"), stop="a\ud800"),
    "score": lambda: score(MODEL, ["a\ud800"]),
}


@pytest.mark.parametrize("case", SURROGATES)
def test_a_lone_surrogate_is_refused_with_its_place_and_what_to_do(case: str) -> None:
    with pytest.raises(tree.FormalmError, match=r"got the lone surrogate '\\ud800' at index \d"):
        SURROGATES[case]()
    with pytest.raises(tree.FormalmError, match="hint: a lone surrogate comes from decoding with"):
        SURROGATES[case]()


@pytest.mark.parametrize("seconds", [1e10, 10**400], ids=["float", "huge-integer"])
def test_a_time_beyond_the_clock_is_refused_with_the_bound(seconds: float) -> None:
    bound = r"must be below 8,589,934,592 seconds \(272 years\), got 1"
    with pytest.raises(tree.ArgumentError, match="timeout_seconds " + bound):
        Constraint(Regex("a"), VOCABULARY, timeout_seconds=seconds)
    with pytest.raises(tree.ArgumentError, match="error_seconds " + bound):
        ConstraintCache(VOCABULARY, error_seconds=seconds)


def test_how_long_errors_are_kept_may_be_0_and_not_negative() -> None:
    ConstraintCache(VOCABULARY, error_seconds=0)
    with pytest.raises(tree.ArgumentError, match="a positive number of seconds or 0, got -1"):
        ConstraintCache(VOCABULARY, error_seconds=-1)
