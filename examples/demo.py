"""The main jobs in a minute: generate inside a language, search with one, run a suite.

Runs on the embedded model; nothing is downloaded.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

from rich.console import Console
from rich.table import Table

from formalm import Constraint, Limits, Regex, generate, search
from formalm.models.canary import canary, facts
from formalm.reports import write_report
from formalm.suites import Suite, run_suite

DATE = r"(January|February|March|April|May|June|July|August|September|October|November|December)"
DATE += r" ([1-9]|[12][0-9]|3[01]), (1[5-9]|20)[0-9]{2}"
PHONE = r"My phone number is ([0-9]{3}) ([0-9]{3}) ([0-9]{4})"


console = Console(highlight=False)


def main() -> None:
    """Show generation, a mask, a search, and a suite."""
    generate_a_date()
    explain_a_mask()
    search_numbers()
    run_a_suite()
    console.print("\nNext: `formalm --help`, examples/, docs/tutorial.md")


def generate_a_date() -> None:
    """Let the model write, inside a language."""
    console.rule("[bold]1. Generate: the output must be a date")
    prompt = "George Washington was born on"
    console.print(f"prompt    {prompt}")
    console.print(f"language  {DATE}\n")
    answer = generate(canary(), prompt, Regex(" " + DATE), temperature=0)
    table = Table("the model wrote", "probability", "smallest share the language left at a step")
    least = answer.allowed_mass.min()
    table.add_row(answer.text, f"{math.exp(answer.logprob):.3f}", f"{least:.3f}")
    console.print(table)


def explain_a_mask() -> None:
    """Show what may follow at one step, and why something else may not."""
    console.rule("[bold]2. Why: what may follow at one step")
    vocabulary = canary().vocabulary
    matcher = Constraint(Regex(DATE), vocabulary).matcher()
    matcher.advance_bytes(b"February 3")
    allowed = [vocabulary.decode_text([int(i)]) for i in matcher.allowed_token_ids()]
    (nine,) = vocabulary.encode("9")
    console.print("after 'February 3' these tokens are allowed:", allowed)
    console.print(f"and {matcher.explain(nine).text}\n")


def search_numbers() -> None:
    """List the likeliest members of a language beside what the model was taught."""
    console.rule("[bold]3. Search: the most likely members of a language, in order")
    console.print(f"language  {PHONE}")
    console.print("given     My phone number is\n")
    console.print(
        "The model read thousands of random numbers once. A few were planted again and again:"
    )
    (planted,) = [one for one in facts()["planted"] if one["prefix"] == "My phone number is"]
    copies = {member["text"]: f"{member['copies']:,} times" for member in planted["members"]}
    hits = search(canary(), Regex(PHONE), given="My phone number is", limits=Limits(hits=6))
    table = Table("rank", "probability", "number", "planted in a volume", "prefixes evaluated")
    for hit in hits:
        number = hit.completion.strip()
        share = f"{math.exp(hit.logprob):.2g}"
        table.add_row(str(hit.rank), share, number, copies.get(number, ""), f"{hits.forwards:,}")
    console.print(table)


def run_a_suite() -> None:
    """Ask questions from a file, say what holds, and write a report."""
    console.rule("[bold]4. A suite: questions as data, verdicts, a report")
    suite = Suite.read(Path(__file__).with_name("demo_suite.toml"))
    folder = Path(__file__).parents[1] / "build" / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    with run_suite(suite, canary(), folder) as run:
        evaluation = run.evaluate()
        report = write_report(run)
    table = Table("profession", "log ratio man / woman", "")
    for one in evaluation.differences:
        said = "differs by more than the margin" if one.flagged else ""
        table.add_row(one.value, f"{one.mean.value:+.3f}", said)
    console.print(table)
    for outcome in evaluation.outcomes:
        console.print(f"{outcome.verdict}: {outcome.why}")
    console.print(f"the report: {report}")


if __name__ == "__main__":
    main()
