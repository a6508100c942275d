"""The main job in half a minute: generate inside a language, then search a model with one.

Runs on the embedded model; nothing is downloaded.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from formalm import Constraint, Limits, Regex, generate, search
from formalm.models.canary import canary

DATE = r"(January|February|March|April|May|June|July|August|September|October|November|December)"
DATE += r" ([1-9]|[12][0-9]|3[01]), (1[5-9]|20)[0-9]{2}"
PHONE = r"My phone number is ([0-9]{3}) ([0-9]{3}) ([0-9]{4})"


def main() -> None:
    """Show generation, a mask, and a search."""
    console = Console(highlight=False)
    model = canary()

    console.rule("[bold]1. Generate: the output must be a date")
    prompt = "George Washington was born on"
    console.print(f"prompt    {prompt!r}")
    console.print(f"language  {DATE}\n")
    answer = generate(model, prompt, Regex(" " + DATE), temperature=0)
    table = Table("the model wrote", "probability", "left by the language at each step")
    mass = " ".join(f"{share:.2f}" for share in answer.allowed_mass)
    table.add_row(answer.text, f"{2.718281828**answer.logprob:.3f}", mass)
    console.print(table)

    console.rule("[bold]2. Why: what may follow at one step")
    matcher = Constraint(Regex(DATE), model.vocabulary).matcher()
    matcher.advance_bytes(b"February 3")
    allowed = [model.vocabulary.token_bytes(token_id) for token_id in matcher.allowed_token_ids()]
    console.print("after 'February 3' these tokens are allowed:", allowed)
    wrong = model.vocabulary.encode("9")[0]
    console.print(f"and '9' is not: {matcher.explain(wrong).text}\n")

    console.rule("[bold]3. Search: the most likely members of a language, in order")
    console.print(f"language  {PHONE}")
    console.print("given     'My phone number is'\n")
    console.print("The model was trained on thousands of random numbers. A few it saw often:")
    hits = search(model, Regex(PHONE), given="My phone number is", limits=Limits(hits=6))
    table = Table("rank", "logprob", "member", "forwards so far")
    for hit in hits:
        table.add_row(str(hit.rank), f"{hit.logprob:.2f}", hit.completion, f"{hits.forwards:,}")
    console.print(table)
    console.print("Next: `formalm --help`, examples/, docs/tutorial.md")


if __name__ == "__main__":
    main()
