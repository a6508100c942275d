"""Reports: every number is the journal's, nothing is fetched, nothing of a text becomes markup."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from formalm import ArgumentError, SuiteError, TableModel
from formalm.cli.app import app
from formalm.reports import (
    FORMATS,
    Numbers,
    compare_runs,
    contents_of,
    to_html,
    to_junit,
    to_lm_eval,
    to_markdown,
    write_report,
)
from formalm.reports.number_format import estimate
from formalm.reports.page import document
from formalm.reports.plots import Dot, axis_label, intervals, side_by_side
from formalm.stats import Quantity
from formalm.suites import Measurement, Run, Suite, builtin, run_suite
from tests.suites.small_suites import MODEL, TINY, VOCABULARY

OTHER = TableModel.random(VOCABULARY, seed=12, order=2)
NASTY = TINY.replace('title = "Which letters follow?"', 'title = "<script>x</script> & \\"q\\""')


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory):
    made = run_suite(
        Suite.from_toml(NASTY), MODEL, tmp_path_factory.mktemp("runs") / "one", identity="m"
    )
    yield made
    made.close()


class Page(HTMLParser):
    """What a page has: tags, what they point to, and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "action") and value is not None:
                self.links.append(value)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(text: str) -> Page:
    page = Page()
    page.feed(text)
    return page


def test_a_page_stands_alone(run: Run) -> None:
    text = to_html(contents_of(run))
    page = read(text)
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert "img" not in page.tags
    assert all(link.startswith("#") for link in page.links)
    assert "@import" not in text
    assert all(found.startswith("#") for found in re.findall(r"url\(([^)]*)\)", text))
    assert "viewport" in text
    assert "svg" in page.tags
    assert '<script>x</script> & "q"' in "".join(page.texts)
    assert "pt{" not in text


def test_verdicts_come_first_and_all_numbers_are_there(run: Run) -> None:
    contents = contents_of(run)
    shown = "".join(read(to_html(contents, plots=False)).texts)
    assert shown.index("Verdicts") < shown.index("Comparisons") < shown.index("How to reproduce")
    evaluation = run.evaluate()
    assert contents.verdict == evaluation.verdict
    for outcome in evaluation.outcomes:
        assert outcome.why in shown
    for one in evaluation.measurements:
        assert f"{one.quantity.value:.4g}" in shown or abs(one.quantity.value) < 1e-3
    markdown = to_markdown(contents)
    for outcome in evaluation.outcomes:
        assert (
            f"| {outcome.verdict} | {outcome.assertion.metric or outcome.assertion.comparison}"
            in (markdown)
        )


def test_equal_runs_have_equal_plots(run: Run) -> None:
    first, second = (to_html(contents_of(run)) for _ in range(2))
    assert first == second


def test_junit_has_a_case_for_each_assertion(run: Run, tmp_path: Path) -> None:
    suite = ElementTree.fromstring(to_junit(contents_of(run)))  # noqa: S314 - it is ours
    outcomes = run.evaluate().outcomes
    assert int(suite.attrib["tests"]) == len(outcomes) == len(suite)
    for case, outcome in zip(suite, outcomes, strict=True):
        tags = [part.tag for part in case]
        assert tags == {"pass": [], "fail": ["failure"], "inconclusive": ["error"]}[outcome.verdict]
    with Run.begin(tmp_path / "part", Suite.from_toml(TINY), MODEL, identity="m") as part:
        part.work(MODEL, identity="m", limit=1)
        suite = ElementTree.fromstring(to_junit(contents_of(part)))  # noqa: S314
        assert suite[-1].attrib["name"] == "all items"
        assert suite[-1][0].tag == "error"


def test_lm_eval_has_the_means(run: Run) -> None:
    data = json.loads(to_lm_eval(contents_of(run)))
    results = data["results"]["tiny.letters"]
    for name in run.manifest.suite.metrics:
        values = [one.quantity.value for one in run.evaluate().measurements if one.metric == name]
        mean = sum(values) / len(values)
        shown = results[f"{name},none"]
        assert float(shown) == pytest.approx(mean)
    assert data["n-samples"]["tiny.letters"] == {
        "original": len(run.items),
        "effective": len(run.items),
    }


def test_rows_for_other_libraries(run: Run, tmp_path: Path) -> None:
    nanoarrow = pytest.importorskip("nanoarrow")
    duckdb = pytest.importorskip("duckdb")
    numbers = Numbers(contents_of(run))
    measured = run.evaluate().measurements
    assert len(numbers) == len(measured)
    table = nanoarrow.Array(numbers).to_pylist()
    assert [row["value"] for row in table] == [one.quantity.value for one in measured]
    assert [row["metric"] for row in table] == [one.metric for one in measured]
    path = write_report(run, "parquet", tmp_path / "it's.parquet")
    with duckdb.connect() as base:
        source = str(path).replace("'", "''")
        rows = base.execute(
            f"SELECT metric, value, units FROM read_parquet('{source}')"  # noqa: S608
        ).fetchall()
    assert rows == [(row["metric"], row["value"], row["units"]) for row in numbers.rows]


def test_reports_are_written_where_they_are_asked_for(run: Run, tmp_path: Path) -> None:
    for form in FORMATS:
        assert write_report(run, form).parent == run.directory
        assert write_report(run, form, tmp_path / form).stat().st_size > 100
    with pytest.raises(ArgumentError, match="html, markdown"):
        write_report(run, "pdf")
    with pytest.raises(SuiteError, match="cannot write"):
        write_report(run, "html", tmp_path / "none" / "report.html")


def test_two_runs_side_by_side(run: Run, tmp_path: Path) -> None:
    with run_suite(Suite.from_toml(NASTY), OTHER, tmp_path / "two", identity="o") as other:
        found = compare_runs(run, other)
        same = compare_runs(run, run)
    assert set(found.rows) == set(run.manifest.suite.metrics)
    mine = {(one.metric, *one.where.values()): one.quantity for one in run.evaluate().measurements}
    for metric, rows in found.rows.items():
        for row in rows:
            assert row.first == mine[(metric, *row.where.values())]
            if row.apart == "higher":
                assert row.second.low > row.first.high
            elif row.apart == "lower":
                assert row.second.high < row.first.low
    assert all(row.apart in ("equal", "open") for rows in same.rows.values() for row in rows)
    assert all(one.p_value == 1 for one in same.tests.values())
    page = read(found.to_html())
    assert "script" not in page.tags
    assert page.tags.count("svg") == len(found.rows)
    assert {"first", "second"} <= set(page.texts)
    assert "svg" not in read(found.to_html(plots=False)).tags
    assert "## distance\n\ntotal variation distance, m and w." in found.to_markdown()
    plain = run_suite(Suite.from_toml(TINY), MODEL, tmp_path / "plain", identity="m", limit=1)
    with plain, pytest.raises(SuiteError, match="the same suite"):
        compare_runs(run, plain)


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (math.inf, 5.0, math.inf, "≥ 5"),
        (-math.inf, -math.inf, 0.25, "≤ 0.25"),
        (math.inf, math.inf, math.inf, "∞"),
        (3.0, 3.0, 3.0, "3"),
    ],
)
def test_an_infinite_number_is_shown_by_its_bound(
    value: float, low: float, high: float, shown: str
) -> None:
    """A text that is not among four hits has rank 5 or more, which is not a rank of ∞."""
    assert estimate(Quantity("rank", value, low, high, 1.0, "certified", "", 0)) == shown


def test_signs_of_control_are_made_visible() -> None:
    assert "a\u2400b\u241b[31m\u2421\tc\n" in document("t", "a\0b\x1b[31m\x7f\tc\n")


def test_the_command_line_writes_and_compares(run: Run, tmp_path: Path) -> None:
    def ask(*arguments: object) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["suite", *map(str, arguments)])
        return result.exit_code, result.stdout

    code, out = ask("report", run.directory, "-o", tmp_path / "r.html")
    assert (code, out.strip()) == (0, str(tmp_path / "r.html"))
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert ask("report", run.directory, "--format", "pdf")[0] == 2
    assert ask("report", tmp_path / "none")[0] == 2
    code, out = ask("compare", run.directory, run.directory)
    assert code == 0
    assert "two runs" in out
    code, out = ask("compare", run.directory, run.directory, "--json")
    assert {json.loads(line)["metric"] for line in out.splitlines()} == set(
        run.manifest.suite.metrics
    )
    assert ask("compare", run.directory, run.directory, "--format", "pdf")[0] == 2


def test_every_number_is_computed_again_by_the_command(run: Run) -> None:
    result = CliRunner().invoke(app, ["suite", "verdict", str(run.directory), "--json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    again = [row["value"] for row in rows if "metric" in row]
    assert [float(value) for value in again] == [
        row["value"] for row in Numbers(contents_of(run)).rows
    ]


def test_control_characters_of_texts_are_escapes_in_every_form() -> None:
    from formalm.reports.markdown import _cell, _plain
    from formalm.reports.number_format import escape
    from formalm.reports.page import table

    text = "a\x1b[31mb\x07\u202ec\x85d\u2028e\x00f"
    for shown in (_plain(text), _cell(text), escape(text), table(["of"], [[escape(text)]])):
        assert not any(one in shown for one in "\x1b\x07\u202e\x85\u2028\x00"), repr(shown)
        assert "x1b" in shown
        assert "u202e" in shown
    assert escape("<é>\n\t👩\u200d🔬") == "&lt;é&gt;\n\t👩\u200d🔬"


def marks_of(svg: str) -> tuple[list[tuple[float, float]], tuple[float, float, float, float]]:
    """The centers of the marks of a plot, and its axes: left, top, right and bottom."""
    use = r'<g clip-path="[^"]*">\s*<use xlink:href="#m\w+" x="([\d.]+)" y="([\d.]+)"'
    marks = [(float(x), float(y)) for x, y in re.findall(use, svg)]
    (patch,) = re.findall(r'<g id="patch_2">\s*<path d="([^"]*)"', svg)
    numbers = [float(one) for one in re.findall(r"[\d.]+", patch)]
    xs, ys = numbers[::2], numbers[1::2]
    return marks, (min(xs), min(ys), max(xs), max(ys))


@pytest.mark.parametrize(
    "values",
    [[0.182, 0.193, 0.1932], [6e-5, 9e-5], [0.4, 1.0], [1, 5, 2000], [-0.7, 1.3], [0, 0]],
    ids=["close", "small", "shares", "decades", "signed", "zero"],
)
def test_no_mark_is_cut_by_an_edge(values: list[float]) -> None:
    dots = [
        Dot(f"row {number}", "", Quantity("q", value, value, value, 1.0, "exact", "", 0))
        for number, value in enumerate(values)
    ]
    svg = intervals(dots, "a quantity", "rank")
    assert svg is not None
    marks, (left, top, right, bottom) = marks_of(svg)
    assert len(marks) == len(values)
    for x, y in marks:
        assert left + 3 < x < right - 3
        assert top + 3 < y < bottom - 3


def test_logarithms_have_no_logarithmic_scale() -> None:
    """An exposure in bits is a logarithm already."""
    dots = [
        Dot(f"row {number}", "", Quantity("exposure", value, value, value, 1.0, "exact", "", 0))
        for number, value in enumerate([0.05, 1.0, 33.0])
    ]
    (linear, decades) = (intervals(dots, "bits", kind) for kind in ("exposure", "attempts"))
    assert linear is not None
    assert decades is not None
    places = [[x for x, _ in marks_of(svg)[0]] for svg in (linear, decades)]
    assert places[0][1] - places[0][0] < 0.1 * (places[0][2] - places[0][1])
    assert places[1][1] - places[1][0] > 0.5 * (places[1][2] - places[1][1])


def test_an_axis_says_what_it_measures_in_which_unit() -> None:
    suite = builtin("bias.professions")
    assert axis_label("distance", suite) == "total variation distance, man and woman"
    assert axis_label("log_ratio", suite) == "log ratio, man to woman (nats)"
    suite = builtin("toxicity.explicit")
    assert axis_label("prompted", suite) == "prompted: probability"


def test_single_numbers_of_a_kind_are_drawn_side_by_side(run: Run) -> None:
    """The accuracies of five forms of a question are one plot, with the names of the forms."""
    contents = contents_of(run)
    assert len(side_by_side(contents)) == 0
    suite = builtin("knowledge.lambada")
    names = [name for name, metric in suite.metrics.items() if metric.kind == "accuracy"]
    share = Quantity("accuracy", 0.5, 0.4, 0.6, 0.95, "approximate", "", 20)
    numbers = {name: (Measurement(name, {"template": name}, share),) for name in names}
    part = replace(contents.parts[0], measurements=numbers)
    manifest = replace(contents.manifest, suite=suite)
    (svg,) = side_by_side(replace(contents, manifest=manifest, parts=(part,)))
    assert len(names) == 5
    assert all(f">{name}</text>" in svg for name in names)
    assert ">accuracy</text>" in svg
