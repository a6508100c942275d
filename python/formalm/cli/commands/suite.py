"""``formalm suite``: list, validate and run suites, resume runs, print verdicts and reports."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formalm.cli.commands.suite_reports import compare, report
from formalm.cli.exit_status import print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.shared_options import CommandGroup, Json, register
from formalm.cli.terminal_output import ProgressLine, counted, remark, say
from formalm.errors import ArgumentError, SuiteError

if TYPE_CHECKING:
    from formalm.suites import Evaluation, Run, Step, Suite

__all__ = ["suite"]

VERDICTS = {"pass": 0, "fail": 1, "inconclusive": 3}
"""Exit code of each verdict."""
ERROR = 2
FILE_CONTENTS, SHARE = "Contents of the suite", "Part of the suite"

# One line per paragraph: Typer keeps line breaks.
HELP = (
    "Evaluate models with suites of questions.\n\n"
    "Exit codes: 0 all assertions hold, 1 an assertion fails, 2 an error, 3 inconclusive (the"
    " bounds do not decide, or items are unanswered), 130 interrupted (answers so far are kept)."
)

suite = typer.Typer(cls=CommandGroup, help=HELP, no_args_is_help=True)
Directory = Annotated[Path, typer.Argument(help="The directory of the run.", show_default=False)]
File = Annotated[
    str,
    typer.Argument(
        help="A suite file, or the name of a built-in suite (see formalm suite ls).",
        show_default=False,
    ),
]
Identity = Annotated[
    str | None,
    typer.Option(help="A name for the model, if it has no identity of its own.", metavar="NAME"),
]
Limit = Annotated[
    int | None, typer.Option(min=1, help="Ask at most N items.", rich_help_panel=SHARE)
]
PerSlot = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Ask only about the first N texts of each slot and the first N rows. The rest stays"
        " unanswered.",
        rich_help_panel=SHARE,
    ),
]
MaxDraws = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Maximum draws per item. Metrics that need more stay inconclusive.",
        rich_help_panel=SHARE,
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        help="Shard I of N: every N-th item, from the I-th on.",
        metavar="I/N",
        rich_help_panel=SHARE,
    ),
]
Cache = Annotated[
    Path | None, typer.Option(help="A file of answers shared by runs. Created if missing.")
]
Slots = Annotated[
    list[str] | None,
    typer.Option(
        "--slot",
        help="Replace the texts of a slot by the lines of a file. Repeatable.",
        metavar="NAME=FILE",
        rich_help_panel=FILE_CONTENTS,
    ),
]
RowFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--rows",
        help="Replace rows by those of a .jsonl or .csv file. Repeatable.",
        metavar="NAME=FILE",
        rich_help_panel=FILE_CONTENTS,
    ),
]
StopWords = Annotated[
    Path | None,
    typer.Option(
        help="Words that do not count as answers; same as --slot stop_words=FILE.",
        rich_help_panel=FILE_CONTENTS,
    ),
]
AllowHttp = Annotated[
    bool, typer.Option("--allow-http", help="Let oracles of the suite send requests to servers.")
]


def ls(json: Json = False) -> None:
    """List the built-in suites."""
    with reported(json, error_code=ERROR):
        from formalm.suites import builtin, builtin_names

        names = builtin_names()
        width = max(map(len, names))
        if not json:
            remark(f"{'suite':{width}}  {'items':>5}  title")
        for name in names:
            found = builtin(name)
            count = len(found.items())
            if json:
                texts = {"title": found.title, "warning": found.warning}
                print_json({"name": name, "items": count, **texts})
            else:
                say(f"{name:{width}}  {count:5,}  {found.title}")


def validate(
    file: File,
    slot: Slots = None,
    rows: RowFiles = None,
    stop_words: StopWords = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print the parsed suite as TOML.")] = False,
    json: Json = False,
) -> None:
    """Check a suite without a model: build every query, and reject impossible ones."""
    with reported(json, error_code=ERROR):
        found = _read(file, slot, rows, stop_words)
        count = len(found.items())
        if json:
            text = {"toml": found.to_toml()} if toml else {}
            print_json({"name": found.name, "items": count, **text})
        elif toml:
            say(found.to_toml(), end="")
        else:
            say(f"{found.name}: {found.title}")
            if found.warning:
                say(f"warning: {found.warning}", color="yellow")
            for name, question in found.queries.items():
                say(f"  {question.ask:6}  {name}")
            say(f"{counted(count, 'item')}, {counted(len(found.assertions), 'assertion')}")


def run(
    file: File,
    directory: Directory,
    model: ModelOptions,
    identity: Identity = None,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Maximum prefixes per call of the model.")
    ] = 16,
    slot: Slots = None,
    rows: RowFiles = None,
    stop_words: StopWords = None,
    limit: Limit = None,
    shard: Shard = None,
    items_per_slot: PerSlot = None,
    max_draws: MaxDraws = None,
    cache: Cache = None,
    allow_http: AllowHttp = False,
    json: Json = False,
) -> None:
    """Run a suite on a model and print the verdict; an existing run of it is resumed."""
    with reported(json, error_code=ERROR):
        from formalm.suites import Run
        from formalm.suites.runs.run import check_packages

        wanted, parted = _read(file, slot, rows, stop_words), _parsed(shard)
        check_packages(wanted)
        source = model.load()
        begun = Run.begin(
            directory,
            wanted,
            source,
            identity=identity,
            batch_size=batch_size,
            max_draws=max_draws,
        )
        _work(begun, source, identity, limit, parted, items_per_slot, cache, allow_http, json)


def resume(
    directory: Directory,
    model: ModelOptions,
    identity: Identity = None,
    limit: Limit = None,
    shard: Shard = None,
    items_per_slot: PerSlot = None,
    cache: Cache = None,
    allow_http: AllowHttp = False,
    json: Json = False,
) -> None:
    """Resume a run and print the verdict."""
    with reported(json, error_code=ERROR):
        from formalm.suites import Run

        parted, begun = _parsed(shard), Run(directory)
        source = model.load()
        _work(begun, source, identity, limit, parted, items_per_slot, cache, allow_http, json)


def verdict(directory: Directory, json: Json = False) -> None:
    """Print the verdict of a run, without a model."""
    with reported(json, error_code=ERROR):
        from formalm.suites import Run

        with Run(directory) as found:
            _conclude(found, json)


for command in (ls, validate, run, resume, verdict, report, compare):
    register(suite, command)


def _read(
    name: str, slots: list[str] | None, rows: list[str] | None, stop_words: Path | None
) -> Suite:
    """Read a built-in suite or a file, with slots and rows replaced."""
    from formalm.suites import Suite, builtin, builtin_names

    built_in = builtin_names()
    if name not in built_in and not Path(name).exists():
        raise SuiteError(
            f"FILE must be a suite file or the name of a built-in suite, got {name!r}",
            hint="formalm suite ls lists the built-in suites",
        )
    found = builtin(name) if name in built_in else Suite.read(name)
    words = [*(slots or []), *([] if stop_words is None else [f"stop_words={stop_words}"])]
    if not words and not rows:
        return found
    return found.replaced(slots=_named("--slot", words), rows=_named("--rows", rows or []))


def _named(option: str, given: list[str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for one in given:
        name, equals, file = one.partition("=")
        if not name or not equals or not file:
            raise ArgumentError(f"{option} must be NAME=FILE, got {one!r}")
        if name in named:
            raise ArgumentError(f"{option} must name each slot or table once, got {name!r} twice")
        named[name] = file
    return named


def _work(
    begun: Run,
    model: Any,
    identity: str | None,
    limit: int | None,
    shard: tuple[int, int],
    items_per_slot: int | None,
    cache: Path | None,
    allow_http: bool,
    json: bool,
) -> None:
    with begun:
        with ProgressLine() as line:
            begun.work(
                model,
                identity=identity,
                limit=limit,
                shard=shard,
                items_per_slot=items_per_slot,
                cache=cache,
                allow_http=allow_http,
                progress=partial(_report_item, line),
                waiting=partial(_report_waiting, line),
            )
        begun.write_results()
        _conclude(begun, json)


def _parsed(shard: str | None) -> tuple[int, int]:
    if shard is None:
        return 1, 1
    parts = shard.split("/")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ArgumentError(f"--shard must be I/N, such as 1/4, got {shard!r}")
    return int(parts[0]), int(parts[1])


def _report_item(line: ProgressLine, step: Step) -> None:
    """Report an answered item on the progress line, or on a line of its own without a terminal."""
    left = step.remaining_seconds
    eta = "" if left is None else f", {left:.0f} s left"
    where = " ".join(f"{name}={text}" for name, text in step.item.where.items())
    cost = f", {counted(step.tokens_computed, 'token')}"
    covered = "" if step.covered is None else f", {step.covered:.4g} covered"
    name = f"{step.item.question.name}  {where}"
    if line.wanted:
        line.show_share(step.done, step.total, f"{eta.removeprefix(', ')}  {name}".strip())
    else:
        remark(f"{step.done}/{step.total}  {name} ({step.source}{cost}{covered}{eta})")


def _report_waiting(line: ProgressLine, count: int) -> None:
    other = "another process" if count == 1 else "other processes"
    text = f"waiting for {counted(count, 'item')} of {other}"
    if line.wanted:
        line.show(text)
    else:
        remark(text)


def _conclude(found: Run, json: bool) -> None:
    """Print measurements and verdicts, and exit with the code of the verdict."""
    evaluation = found.evaluate()
    verdict = evaluation.verdict
    if verdict == "pass" and not found.is_whole:
        verdict = "inconclusive"  # no assertion fails, but items are unanswered
    if json:
        for row in _rows(evaluation):
            print_json(row)
        extent = {"answered": len(found.answered), "items": len(found.items)}
        print_json({**extent, "max_draws": found.manifest.max_draws})
        print_json({"verdict": verdict})
    else:
        for one in evaluation.differences:
            flagged = {True: "differs", False: "within the margin", None: "undecided"}[one.flagged]
            p = "" if one.p_value is None else f", p = {one.p_value:.3g}"
            say(f"{one.comparison}: {one.value!r} {flagged}; {one.mean}{p}")
        for outcome in evaluation.outcomes:
            name = outcome.assertion.metric or outcome.assertion.comparison
            say(f"{outcome.verdict}: {name}: {outcome.why}")
        answered, total = len(found.answered), len(found.items)
        draws = found.manifest.max_draws
        capped = "" if draws is None else f", at most {counted(draws, 'draw')} per item"
        items = "item" if total == 1 else "items"
        say(f"{verdict}: {found.manifest.suite.name}, {answered}/{total} {items}{capped}")
    if VERDICTS[verdict]:
        raise typer.Exit(VERDICTS[verdict])


def _rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the rows for JSON, which has no infinity and no NaN."""
    rows: list[dict[str, Any]] = []
    for number in evaluation.measurements:
        rows.append({"metric": number.metric, "where": number.where, **_plain(number.quantity)})
    for one in evaluation.differences:
        row = {"comparison": one.comparison, "value_of": one.value, **_plain(one.mean)}
        rows.append({**row, "p_value": one.p_value, "flagged": one.flagged})
    for outcome in evaluation.outcomes:
        name = {"metric": outcome.assertion.metric, "comparison": outcome.assertion.comparison}
        rows.append({"assertion": name, "verdict": outcome.verdict, "why": outcome.why})
    return rows


def _plain(quantity: Any) -> dict[str, Any]:
    def number(value: float) -> float | str:
        return value if abs(value) < float("inf") else str(value)

    ends = {name: number(getattr(quantity, name)) for name in ("value", "low", "high")}
    worth = {
        name: getattr(quantity, name) for name in ("confidence", "coverage", "method", "units")
    }
    return {**ends, **worth, "notes": list(quantity.notes)}
