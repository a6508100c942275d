"""HTML reports: one self-contained page without scripts, for screens, phones and paper."""

from __future__ import annotations

import json
from collections.abc import Iterable

from formalm.reports.number_format import (
    escape,
    estimate,
    interval,
    measure,
    number,
    p_value,
    place,
    worth,
)
from formalm.reports.page_style import STYLE
from formalm.reports.plots import figures_of, side_by_side
from formalm.reports.report_contents import Contents, Part
from formalm.suites import Measurement
from formalm.suites.answers.query_answers import Answer

__all__ = ["document", "table", "to_html"]

MOST_HITS = 10
MOST_TEXTS = 5
MOST_OPEN = 24
CONTROLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"}
CONTROLS[0x7F] = 0x2421
TESTS = {"sign_flips": "sign-flip test", "mcnemar": "McNemar's test"}
SIGNS = {"pass": "✓", "fail": "✗", "inconclusive": "?"}


def to_html(contents: Contents, *, plots: bool = True) -> str:
    """Returns the page.

    Parameters
    ----------
    contents
        The contents.
    plots
        Whether to include plots, which need matplotlib.
    """
    suite = contents.suite
    blocks = [_banner(contents), _outcomes(contents), _comparisons(contents)]
    blocks += [_figures("Side by side", side_by_side(contents))] if plots else []
    blocks += [_part(part, contents, plots=plots) for part in contents.parts]
    blocks += [_reproduce(contents)]
    return document(f"{suite.name}: {contents.verdict}", "".join(blocks))


def document(title: str, body: str) -> str:
    """Returns a whole page around some blocks, with control characters of models made visible."""
    body = body.translate(CONTROLS)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def table(head: Iterable[str], rows: Iterable[Iterable[str]], kinds: str = "") -> str:
    """Returns a table; rows are HTML, and kinds mark columns of numbers (``n``)."""
    columns = list(head)
    marks = [
        ' class="n"' if kinds[place : place + 1] == "n" else "" for place in range(len(columns))
    ]
    top = "".join(
        f"<th{mark}>{escape(name)}</th>" for name, mark in zip(columns, marks, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{mark}>{cell}</td>" for cell, mark in zip(row, marks, strict=True))
        + "</tr>\n"
        for row in rows
    )
    inside = f"<thead><tr>{top}</tr></thead><tbody>\n{body}</tbody>"
    return f'<div class="wide"><table>{inside}</table></div>\n'


def _banner(contents: Contents) -> str:
    suite, model = contents.suite, contents.manifest.model
    weights = model["identity"] or f"weights {str(model['weights'])[:12]}"
    facts = [
        contents.extent,
        f"{model['kind']}, {weights}",
        f"{contents.seconds:.0f} s",
    ]
    warning = f'<p class="warning">{escape(suite.warning)}</p>' if suite.warning else ""
    return (
        f"<header><p class=name>{escape(suite.name)}</p><h1>{escape(suite.title)}</h1>\n"
        f"{_badge(contents.verdict)}<p>{escape(summary(contents))}</p>"
        f"<p class=facts>{escape(' · '.join(facts))}</p>{warning}"
        f"<p>{escape(suite.description.strip())}</p></header>\n"
    )


def summary(contents: Contents) -> str:
    """Returns a sentence on the requirements: how many are met, and which are not."""
    outcomes = contents.evaluation.outcomes
    if not outcomes:
        return "The suite has no requirements; it reports numbers."
    names = {
        verdict: [
            str(one.assertion.metric or one.assertion.comparison)
            for one in outcomes
            if one.verdict == verdict
        ]
        for verdict in ("pass", "fail", "inconclusive")
    }
    said = f"{len(names['pass']):,} of {len(outcomes):,} requirements are met"
    if names["fail"]:
        said += f"; not met: {', '.join(names['fail'])}"
    if names["inconclusive"]:
        said += f"; undecided: {', '.join(names['inconclusive'])}"
    return said + "."


def _badge(verdict: str) -> str:
    return f'<span class="badge {verdict}">{SIGNS[verdict]} {verdict}</span>'


def _outcomes(contents: Contents) -> str:
    outcomes = contents.evaluation.outcomes
    if not outcomes:
        return "<section><h2>Verdicts</h2><p>The suite has no requirements.</p></section>\n"
    rows = []
    for outcome in outcomes:
        one = outcome.assertion
        if one.comparison is not None:
            wanted = f"differ exactly: {', '.join(one.flagged) or 'none'}"
        else:
            least = "" if one.minimum is None else f"≥ {number(one.minimum)} "
            wanted = least + ("" if one.maximum is None else f"≤ {number(one.maximum)}")
        name = escape(str(one.metric or one.comparison))
        rows.append((_badge(outcome.verdict), name, escape(wanted), escape(outcome.why)))
    shown = table(("", "of", "required", "decided by"), rows)
    return f"<section><h2>Verdicts</h2>\n{shown}</section>\n"


def _figures(title: str, drawn: Iterable[str]) -> str:
    """Returns a section of plots; nothing without plots."""
    figures = "".join(f"<figure>{svg}</figure>\n" for svg in drawn)
    return f"<section><h2>{escape(title)}</h2>\n{figures}</section>\n" if figures else ""


def _comparisons(contents: Contents) -> str:
    blocks = []
    for name, found in contents.differences.items():
        words = {True: "<b>differs</b>", False: "within the margin", None: "open"}
        comparison = contents.suite.comparisons[name]
        if comparison.other is not None:
            words = {
                True: f"<b>above {escape(comparison.other)}</b>",
                False: "not above",
                None: "open",
            }
        rows = [
            (
                escape(one.value),
                estimate(one.mean),
                interval(one.mean),
                p_value(one.p_value),
                words[one.flagged],
            )
            for one in found
        ]
        tested = (
            f"mean of these templates, margin {comparison.margin:g}"
            if comparison.test == "exact"
            else f"{TESTS[comparison.test]}, level {comparison.level or 0:g}"
        )
        metric = contents.suite.metrics[comparison.metric]
        said = "difference" if comparison.other is not None else measure(metric, contents.suite)
        head = ("value", said, "interval", "p", "")
        kept = [column for column in range(5) if column != 3 or any(row[3] for row in rows)]
        shown = table(
            [head[column] for column in kept],
            [[row[column] for column in kept] for row in rows],
            "".join(" nnn "[column] for column in kept),
        )
        blocks.append(f"<h3>{escape(name)}</h3><p class=how>{escape(tested)}</p>{shown}")
    return f"<section><h2>Comparisons</h2>\n{''.join(blocks)}</section>\n" if blocks else ""


def _part(part: Part, contents: Contents, *, plots: bool) -> str:
    question, work = part.question, part.work
    spent = f"{work['forwards']:,} prefixes evaluated, {work['tokens_computed']:,} tokens read"
    cut = ", ".join(f"{count:,} stopped by {limit}" for limit, count in part.limits_reached.items())
    facts = f"{len(part.answered):,} of {part.total:,} items · {spent}" + (
        f" · {cut}" if cut else ""
    )
    languages = "".join(f"<code>{escape(text)}</code>" for text in part.patterns[:3])
    more = len(part.patterns) - 3
    languages += f"<p class=how>and {more:,} more templates</p>" if more > 0 else ""
    figures = (
        "".join(
            f"<figure>{svg}</figure>\n" for svg in figures_of(part, contents.suite, contents.parts)
        )
        if plots
        else ""
    )
    numbers = "".join(
        _numbers(name, measure(contents.suite.metrics[name], contents.suite), found)
        for name, found in part.measurements.items()
    )
    return (
        f"<section><h2>{escape(question.name)}</h2><p>{escape(part.description)}</p>"
        f"<details><summary>the query</summary>{languages}</details>\n"
        f"<p class=facts>{escape(facts)}</p>\n{figures}{numbers}{_shown(part)}</section>\n"
    )


def _numbers(name: str, said: str, found: tuple[Measurement, ...]) -> str:
    if not found:
        return f"<h3>{escape(name)}</h3><p>No numbers yet.</p>"
    several = len({one.where.get("template") for one in found}) > 1
    rows = [
        (
            escape(place(one.where, template=several)),
            estimate(one.quantity),
            interval(one.quantity),
            escape(worth(one.quantity)),
            escape("; ".join([one.quantity.method, *one.quantity.notes])),
        )
        for one in found
    ]
    head = ("of", said, "interval", "worth", "how")
    kept, constant = _columns(rows)
    shown = table(
        [head[column] for column in kept],
        [[row[column] for column in kept] for row in rows],
        "".join(" nn  "[column] for column in kept),
    )
    if constant:
        shown = f"<p class=how>{'; '.join(constant)}</p>{shown}"
    if len(rows) > MOST_OPEN:
        shown = f"<details><summary>{len(rows):,} numbers</summary>{shown}</details>\n"
    return f"<h3>{escape(name)}</h3>{shown}"


def _columns(rows: list[tuple[str, str, str, str, str]]) -> tuple[list[int], list[str]]:
    """Returns the columns whose cells differ, and the cells of those that say one thing for all.

    The first two columns are always kept.
    """
    kept, constant = [0, 1], []
    for column in (2, 3, 4):
        cells = {row[column] for row in rows}
        if len(cells) > 1 or (len(rows) == 1 and column == 2 and cells != {""}):
            kept.append(column)
        elif cells != {""}:
            constant.append(next(iter(cells)))
    return kept, constant


def _shown(part: Part) -> str:
    """Returns the best hits with their tokens, or some of the free texts."""
    blocks = [
        f"<h4>{escape(place(item.where))}</h4>{found}"
        for item, answer in part.answered[:MOST_TEXTS]
        if (found := _found(answer))
    ]
    if not blocks:
        return ""
    summary = "what was found" if part.question.ask != "free" else "what was written"
    return f"<details><summary>{summary}</summary>{''.join(blocks)}</details>\n"


def _found(answer: Answer) -> str:
    if answer["ask"] == "free":
        texts = answer["texts"][:MOST_TEXTS]
        return table(("the first texts", ""), ((_text(one["text"]), _known(one)) for one in texts))
    hits = answer.get("hits", [])[:MOST_HITS]
    if not hits:
        return ""
    if answer["ask"] == "score":
        rows = [(str(rank), number(p), _text(text)) for rank, (text, p) in enumerate(hits, 1)]
        return table(("rank", "log p", "text"), rows, "nn")
    listed = (
        (str(hit["rank"]), number(float(hit["logprob"])), _tokens(hit), _known(hit)) for hit in hits
    )
    return table(("rank", "log p", "tokens", ""), listed, "nn")


def _text(text: str) -> str:
    return f"<span class=text>{escape(text)}</span>"


def _tokens(hit: dict[str, object]) -> str:
    pieces = hit.get("tokens")
    shown = pieces if isinstance(pieces, list) else [hit["text"]]
    return "".join(f"<span class=token>{escape(str(one))}</span>" for one in shown)


def _known(row: dict[str, object]) -> str:
    if "valid" not in row:
        return ""
    return "✓ real" if row["valid"] else "not known"


def _reproduce(contents: Contents) -> str:
    manifest = contents.manifest
    commands = "\n".join(contents.commands)
    hashes = {key: value for key, value in manifest.model.items() if value is not None}
    data = json.dumps({"versions": manifest.versions, "model": hashes}, indent=2)
    citation = f"<p>{escape(manifest.suite.citation)}</p>" if manifest.suite.citation else ""
    return (
        "<section><h2>How to reproduce</h2><p>The first command computes every number of this page"
        " again from the journal, without a model; the last one evaluates a model on the missing"
        " items."
        f"</p><pre>{escape(commands)}</pre>{citation}\n"
        f"<details><summary>versions and hashes</summary><pre>{escape(data)}</pre></details>"
        f"<details><summary>the suite</summary><pre>{escape(manifest.suite.to_toml())}</pre>"
        "</details></section>\n"
    )
