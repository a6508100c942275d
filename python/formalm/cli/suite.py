"""``formalm suite``: check suites, run them, go on with runs, say what holds, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formalm.cli.exit_status import print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.shared_options import CommandGroup, Json, register
from formalm.cli.suite_reports import compare, report
from formalm.errors import ArgumentError, SuiteError

if TYPE_CHECKING:
    from formalm.suites import Evaluation, Run, Step, Suite

__all__ = ["suite"]

VERDICTS = {"pass": 0, "fail": 1, "inconclusive": 3}
ERROR = 2

# One line a paragraph: the lines are kept as they are.
HELP = (
    "Suites of questions, as files.\n\n"
    "Exit codes: 0 what was demanded holds, 1 it does not, 2 an error, 3 inconclusive (the bounds"
    " leave it open, or items have no answer yet), 130 interrupted (what was answered is kept)."
)

suite = typer.Typer(cls=CommandGroup, help=HELP, no_args_is_help=True)
Directory = Annotated[Path, typer.Argument(help="The directory of the run.", show_default=False)]
File = Annotated[
    str, typer.Argument(help="A suite: a file, or the name of a built-in one.", show_default=False)
]
Identity = Annotated[
    str | None, typer.Option(help="A name for a model that cannot be told from others.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Ask at most so many items.")]
PerSlot = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Ask only about the first so many texts of each slot, and rows. The rest stays open.",
    ),
]
MaxDraws = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Most draws of an item, where the suite wants more; what depends on them stays open.",
    ),
]
Shard = Annotated[str | None, typer.Option(help="i/n: every n-th item, from the i-th on.")]
Cache = Annotated[
    Path | None, typer.Option(help="A file of answers for many runs, made if there is none.")
]
Slots = Annotated[
    list[str] | None,
    typer.Option("--slot", help="NAME=FILE: texts for a slot, one a line, in place of its own."),
]
RowFiles = Annotated[
    list[str] | None,
    typer.Option("--rows", help="NAME=FILE: rows of a .jsonl or .csv file in place of its own."),
]
StopWords = Annotated[
    Path | None, typer.Option(help="Words that are no answers: the same as --slot stop_words=FILE.")
]
AllowHttp = Annotated[
    bool, typer.Option("--allow-http", help="Let oracles of the suite ask servers, slowly.")
]


def ls(json: Json = False) -> None:
    """List the suites that are built in."""
    with reported(json, error_code=ERROR):
        from formalm.suites import builtin, builtin_names

        for name in builtin_names():
            found = builtin(name)
            count = len(found.items())
            if json:
                texts = {"title": found.title, "warning": found.warning}
                print_json({"name": name, "items": count, **texts})
            else:
                typer.echo(f"{name}  {found.title} ({count:,} items)")


def validate(
    file: File,
    slot: Slots = None,
    rows: RowFiles = None,
    stop_words: StopWords = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print it as it was understood.")] = False,
    json: Json = False,
) -> None:
    """Check a suite: every query is built, and what could never be found is refused."""
    with reported(json, error_code=ERROR):
        found = _read(file, slot, rows, stop_words)
        count = len(found.items())
        if json:
            text = {"toml": found.to_toml()} if toml else {}
            print_json({"name": found.name, "items": count, **text})
        elif toml:
            typer.echo(found.to_toml(), nl=False)
        else:
            typer.echo(f"{found.name}: {found.title}")
            if found.warning:
                typer.secho(f"warning: {found.warning}", fg="yellow")
            for name, question in found.queries.items():
                typer.echo(f"  {question.ask:6}  {name}")
            typer.echo(f"{count:,} items, {len(found.assertions):,} assertions")


def run(
    file: File,
    directory: Directory,
    model: ModelOptions,
    identity: Identity = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Most prefixes a call.")] = 16,
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
    """Ask a model a suite, and say what holds. A directory with the same run is gone on with."""
    with reported(json, error_code=ERROR):
        from formalm.suites import Run
        from formalm.suites.packages import check_packages

        asked, parted = _read(file, slot, rows, stop_words), _parsed(shard)
        check_packages(asked)
        source = model.load()
        begun = Run.begin(
            directory,
            asked,
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
    """Go on with a run, and say what holds."""
    with reported(json, error_code=ERROR):
        from formalm.suites import Run

        parted, begun = _parsed(shard), Run(directory)
        source = model.load()
        _work(begun, source, identity, limit, parted, items_per_slot, cache, allow_http, json)


def verdict(directory: Directory, json: Json = False) -> None:
    """Say what holds by the answers of a run; no model is asked."""
    with reported(json, error_code=ERROR):
        from formalm.suites import Run

        with Run(directory) as found:
            _conclude(found, json)


for command in (ls, validate, run, resume, verdict, report, compare):
    register(suite, command)


def _read(
    name: str, slots: list[str] | None, rows: list[str] | None, stop_words: Path | None
) -> Suite:
    """A suite that is built in, or of a file, with word lists and rows of the user's own."""
    from formalm.suites import Suite, builtin, builtin_names

    built_in = builtin_names()
    if name not in built_in and not Path(name).exists():
        raise SuiteError(
            f"{name!r} is no suite that is built in, and no file",
            hint="formalm suite ls lists those that are built in",
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
            raise ArgumentError(f"{option} is NAME=FILE, not {one!r}")
        if name in named:
            raise ArgumentError(f"{option} names {name!r} twice")
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
        begun.work(
            model,
            identity=identity,
            limit=limit,
            shard=shard,
            items_per_slot=items_per_slot,
            cache=cache,
            allow_http=allow_http,
            progress=_told,
            waiting=_waiting,
        )
        begun.write_results()
        _conclude(begun, json)


def _parsed(shard: str | None) -> tuple[int, int]:
    if shard is None:
        return 1, 1
    parts = shard.split("/")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ArgumentError(f"--shard is i/n, such as 1/4, not {shard!r}")
    return int(parts[0]), int(parts[1])


def _told(step: Step) -> None:
    left = step.remaining_seconds
    eta = "" if left is None else f", {left:.0f} s left"
    where = " ".join(f"{name}={text}" for name, text in step.item.where.items())
    cost = f", {step.tokens_computed:,} tokens"
    covered = "" if step.covered is None else f", {step.covered:.4g} covered"
    line = (
        f"{step.done}/{step.total}  {step.item.question.name}  {where}"
        f" ({step.source}{cost}{covered}{eta})"
    )
    typer.echo(line, err=True)


def _waiting(count: int) -> None:
    items = "item that another process is" if count == 1 else "items that other processes are"
    typer.echo(f"waiting for {count:,} {items} at", err=True)


def _conclude(found: Run, json: bool) -> None:
    """Print numbers and verdicts, and end with their exit code."""
    evaluation = found.evaluate()
    verdict = evaluation.verdict
    if verdict == "pass" and not found.is_whole:
        verdict = "inconclusive"  # nothing is demanded, and not everything was asked
    if json:
        for row in _rows(evaluation):
            print_json(row)
        extent = {"answered": len(found.answered), "items": len(found.items)}
        print_json({**extent, "max_draws": found.manifest.max_draws})
        print_json({"verdict": verdict})
    else:
        for one in evaluation.differences:
            flagged = {True: "differs", False: "within the margin", None: "open"}[one.flagged]
            p = "" if one.p_value is None else f", p = {one.p_value:.3g}"
            typer.echo(f"{one.comparison}: {one.value!r} {flagged}; {one.mean}{p}")
        for outcome in evaluation.outcomes:
            name = outcome.assertion.metric or outcome.assertion.comparison
            typer.echo(f"{outcome.verdict}: {name}: {outcome.why}")
        answered, total = len(found.answered), len(found.items)
        draws = found.manifest.max_draws
        capped = "" if draws is None else f", at most {draws:,} draws an item"
        typer.echo(f"{verdict}: {found.manifest.suite.name}, {answered}/{total} items{capped}")
    if VERDICTS[verdict]:
        raise typer.Exit(VERDICTS[verdict])


def _rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """What JSON has of it; it has no infinity and no NaN."""
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
