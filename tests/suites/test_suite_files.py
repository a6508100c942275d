"""Suite files: read, refused with the place of what is wrong, and written again."""

from pathlib import Path

import pytest

from formalm import ArgumentError, LimitError, Query, Regex, StringLiteral, SuiteError
from formalm.suites import Suite
from tests.suites.small_suites import TINY


def test_a_suite_is_read() -> None:
    suite = Suite.from_toml(TINY)
    assert suite.name == "tiny.letters"
    assert suite.slots["what"].texts == ("a", "b", "ab")
    assert suite.templates["turned round"].slots == ("what", "who")
    assert suite.queries["both"].templates == ("plain", "turned round")
    assert suite.metrics["rank"].targets == ("ab", "b")
    assert suite.comparisons["general"].level == 0.5
    assert suite.assertions[1].maximum == 5


def test_a_suite_is_written_as_it_was_read() -> None:
    suite = Suite.from_toml(TINY)
    again = Suite.from_toml(suite.to_toml())
    assert again == suite
    assert again.to_toml() == suite.to_toml()
    assert "level" in suite.to_toml()
    # Defaults are left out.
    assert "1e-06" not in suite.to_toml()


def test_items_are_what_is_asked() -> None:
    suite = Suite.from_toml(TINY)
    items = suite.items()
    assert len(items) == 2 + 2 * 2 + 2 * 3 + 2
    first = items[0]
    assert first.where == {"template": "plain", "who": "m"}
    assert first.open == ("what", "end")
    assert first.query.given == StringLiteral("m")
    assert first.query.language.equivalent(Regex(r"m (a|b|ab)[.!]"))
    turned = next(item for item in items if item.template == "turned round")
    assert turned.query.given is None
    assert turned.query.max_tokens == 6
    mass = next(item for item in items if item.question.name == "mass")
    assert mass.query.decoding.temperature == 0.5
    assert mass.query.given == StringLiteral("m a")
    assert isinstance(mass.query, Query)
    with pytest.raises(LimitError, match="14 items, but the limit is 13"):
        suite.items(item_limit=13)


def test_word_lists_are_read_from_the_folder_of_the_suite(tmp_path: Path) -> None:
    text = TINY.replace('what = ["a", "b", "ab"]', 'what = {file = "words.txt"}')
    (tmp_path / "suite.toml").write_text(text)
    with pytest.raises(SuiteError, match=r"cannot read .*words\.txt"):
        Suite.read(tmp_path / "suite.toml")
    (tmp_path / "words.txt").write_text("a\nb\n\nab\nb\n")
    suite = Suite.read(tmp_path / "suite.toml")
    assert suite.slots["what"].texts == ("a", "b", "ab")
    assert 'what = {file = "words.txt"}' in suite.to_toml()
    assert Suite.from_toml(suite.to_toml(), folder=tmp_path) == suite
    with pytest.raises(SuiteError, match="has no folder"):
        Suite.from_toml(text)
    (tmp_path / "words.txt").write_bytes(b"\xff")
    with pytest.raises(SuiteError, match="not UTF-8"):
        Suite.read(tmp_path / "suite.toml")
    (tmp_path / "words.txt").write_text("\n")
    with pytest.raises(SuiteError, match="nonempty strings"):
        Suite.read(tmp_path / "suite.toml")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="cannot read"):
        Suite.read(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    with pytest.raises(SuiteError, match="not UTF-8"):
        Suite.read(tmp_path / "latin.toml")


WRONG = [
    # what is replaced, by what, the message, the text that the place shows
    ('"formalm-suite"', '"other"', "must be 'formalm-suite'", '"other"'),
    ("version = 1", "version = 2", "version must be 1, got 2", "2"),
    ("version = 1", "version = true", "version must be an integer", "true"),
    ('"tiny.letters"', '"Tiny letters"', "lowercase words", '"Tiny letters"'),
    ("title =", "titel =", "must have the key 'title'", None),
    ("[slots]", "extra = 1\n[slots]", "unknown keys: 'extra'", "extra"),
    ('who = ["m", "w"]', 'who = ["m", "m"]', "repeats 'm'", '"m"'),
    ('who = ["m", "w"]', 'who = ["m", 3]', "must be a string, got 3", "3"),
    ('who = ["m", "w"]', 'who = ["m", ""]', "nonempty strings", '["m", ""]'),
    ('who = ["m", "w"]', "who = 3", "who must be a list or a table, got 3", "3"),
    ('who = ["m", "w"]', '"w h o" = ["m"]', "slot names must", '"w h o"'),
    ('pattern = "[.!]"', 'pattern = "[.!"', "suite.slots.end", '"[.!"'),
    ('pattern = "[.!]"', 'pattern = "(?P<x>a)"', "must not have named groups", '"(?P<x>a)"'),
    ('pattern = "[.!]"', 'pattren = "[.!]"', "unknown keys", "pattren"),
    ('pattern = "[.!]"', 'pattern = "[.!]", file = "x"', "one of pattern, file", "{pattern"),
    ("{who} {what}{end}", "{who} {what}{end", "expected '}'", '"{who} {what}{end"'),
    ("{who} {what}{end}", "{who} {what}{who}", "must not occur twice", '"{who}'),
    ("{who} {what}{end}", "{who} {what!r}", "must not have a format", '"{who}'),
    ("{who} {what}{end}", "{who} {nobody}", "declared slots", '"{who} {nobody}"'),
    ("{who} {what}{end}", "{} {what}", "is not a slot name", '"{} {what}"'),
    ('ask = "table"', 'ask = "guess"', "ask must be one of", '"guess"'),
    ('templates = ["plain"]', 'templates = ["plane"]', "must be a template", '"plane"'),
    ('templates = ["plain"]', "templates = []", "templates must not be empty", "[]"),
    ('each = ["who"]', 'each = ["end"]', "a list of texts", '"end"'),
    ('each = ["who"]', 'each = ["why"]', "which is not a slot", '"why"'),
    ('each = ["who"]', 'each = ["who", "what", "end"]', "a list of texts", '"end"'),
    ('each = ["who"]\ngiven = false', 'each = ["end"]\ngiven = false',
     "not a slot of the template 'turned round'", '"end"'),
    ('each = ["who"]\ngiven = false', 'each = ["who", "what"]\ngiven = false', "an open slot",
     '["who", "what"]'),
    ('each = ["who"]\ngiven = false', "given = true", "begin with an open slot", "true"),
    ('event = "complete"', 'event = "ended"', "event must be one of", "[queries.table]"),
    ('event = "complete"', 'event = "never"', "which sorts members", '"never"'),
    ('event = "complete"', 'events = "complete"', "'events'", "events"),
    ('event = "complete"', "tolerance = 2", "tolerance must be from 0 to 1", "2"),
    ('event = "complete"', "limits = {hits = 3}", "apply to searches", "{hits = 3}"),
    ('event = "complete"', 'limits = {"weeks" = 3}', "'weeks'", "[queries.table]"),
    ("limits = {hits = 5}", "tolerance = 0.1", "got a search", "0.1"),
    ("limits = {hits = 5}", "limits = {forwards = 5}", "hits must be given", "{forwards = 5}"),
    ("limits = {hits = 5}", "limits = {hits = 5, beams = 2}", "no ranks", '"likely"'),
    ('event = "prefix"\ndecoding', "decoding", "event must be given for a mass", "[queries.mass]"),
    ('event = "prefix"\nmax', 'tokenization = "canonical-given"\nmax', "requires given",
     "[queries.both]"),
    ('kind = "total_variation"', 'kind = "variance"', "kind must be one of", '"variance"'),
    ('query = "table"\nbetween', 'query = "mass"\nbetween', "has 'mass'", '"mass"'),
    ('query = "table"\nbetween', 'query = "tables"\nbetween', "query must be one of", '"tables"'),
    ('between = "who"', 'between = "what"', "between must be one of 'who'", '"what"'),
    ('of = "what"\n\n[metrics.div', 'of = "end"\n\n[metrics.div', "one of 'what'", '"end"'),
    ('targets = ["ab", "b"]', 'targets = ["c"]', "text of the slot", '"c"'),
    ('targets = ["ab", "b"]', "targets = []", "targets must not be empty", "[]"),
    ('metric = "ratio"\ntest = "exact"', 'metric = "mass"\ntest = "exact"', "one of 'ratio'",
     '"mass"'),
    ("margin = 0.1", "margin = -0.1", "margin must be at least 0", "-0.1"),
    ("margin = 0.1", "margin = nan", "margin must be a number", "nan"),
    ('correction = "none"\nlevel = 0.5', "level = 0.5", "no difference can be significant",
     '"sign_flips"'),
    ('correction = "none"', 'correction = "some"', "correction must be one of", '"some"'),
    ("level = 0.5", "level = 1.5", "between 0 and 1", "1.5"),
    ('metric = "distance"\nmax = 0.9', 'metric = "distance"', "must have 'min' or 'max'",
     "[[assertions]]"),
    ('metric = "distance"\nmax = 0.9', 'metric = "distance"\nmax = 1\nmin = 2', "above max", "2"),
    ('metric = "distance"\nmax = 0.9', "max = 0.9", "a metric or a comparison", "[[assertions]]"),
    ('metric = "distance"\nmax = 0.9', 'metric = "size"\nmax = 1', "got 'size'", '"size"'),
    ('comparison = "skewed"', 'comparison = "bent"', "got 'bent'", '"bent"'),
    ('flagged = ["a", "ab"]', 'flagged = ["a", "c"]', "text of 'what'", '"c"'),
    ('title = "Which letters follow?"', "title = ", "is not valid TOML", "\n"),
    ("[queries.table]", "[queries.table", "is not valid TOML", "\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "said", "shown"), WRONG, ids=[f"{new!r:.40}" for _, new, _, _ in WRONG]
)
def test_mistakes_are_shown_at_their_location(old, new, said, shown) -> None:
    assert old in TINY
    text = TINY.replace(old, new, 1)
    with pytest.raises(SuiteError) as caught:
        Suite.from_toml(text)
    error = caught.value
    assert said in str(error)
    if shown is None:
        assert error.span is None
        return
    assert error.span is not None
    start = error.span[0]
    assert text[start:].startswith(shown) or (shown == "\n" and text[start - 1 : start + 1])
    lines = text[:start].split("\n")
    assert (error.line, error.column) == (len(lines), len(lines[-1]) + 1)
    assert f"(line {error.line}, column {error.column})" in str(error)
    assert "^" in str(error)


def test_parts_that_have_to_be_there() -> None:
    head = TINY.split("[slots]", maxsplit=1)[0]
    with pytest.raises(SuiteError, match="must have the key 'templates'"):
        Suite.from_toml(head)
    with pytest.raises(SuiteError, match="must have a template"):
        Suite.from_toml(head + "[templates]")
    with pytest.raises(SuiteError, match="a suite must have at least one query"):
        Suite.from_toml(head + '[templates]\nx = "y"')
    with pytest.raises(SuiteError, match=r"declare slots in \[slots\]"):
        Suite.from_toml(head + '[templates]\nx = "{y}"')
    with pytest.raises(SuiteError, match="assertions\\[0\\] must be a table, got int"):
        Suite.from_toml("assertions = [3]\n" + TINY.split("[[assertions]]", maxsplit=1)[0])


def test_a_table_without_open_slots_is_refused() -> None:
    with pytest.raises(SuiteError, match="must have an open slot"):
        Suite.from_toml(TINY.replace('each = ["who"]', 'each = ["what", "who"]', 2))


def test_errors_of_queries_are_still_argument_errors_elsewhere() -> None:
    data = {"format": "formalm-query", "version": 1, "limits": {"x": 1}}
    data["language"] = {"kind": "regex", "pattern": "a"}
    with pytest.raises(ArgumentError, match=r"query\.limits has unknown keys"):
        Query.from_data(data)
