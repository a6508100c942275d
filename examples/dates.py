"""Dates in any of three notations, each read back by the calendar, and dates that a model knows."""

from __future__ import annotations

import calendar
from datetime import datetime

from formalm import Choice, Regex, generate
from formalm.models.canary import canary, facts

DAY, YEAR = Regex("[1-9]|[12][0-9]|3[01]"), Regex("(1[5-9]|20)[0-9]{2}")
MONTH = Choice(list(calendar.month_name)[1:])
NOTATIONS = {
    "%Y-%m-%d": Regex("(1[5-9]|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"),
    "%d/%m/%Y": Regex("(0[1-9]|1[0-9]|2[0-8])/(0[1-9]|1[0-2])/(1[5-9]|20)[0-9]{2}"),
    "%B %d, %Y": MONTH + Regex(" ([1-9]|1[0-9]|2[0-8]), ") + YEAR,
}


def main() -> None:
    """Draw dates of each notation, then ask for birth dates in one batch."""
    for notation, language in NOTATIONS.items():
        drawn = generate(canary(), "Date: ", language, n=3, seed=1, max_tokens=30, finish=True)
        print(notation, *(f"{datetime.strptime(one.text, notation):%d.%m.%Y}" for one in drawn))

    people = facts()["births"]["people"][:8]
    written = Regex(" ") + MONTH + Regex(" ") + DAY + Regex(", ") + YEAR
    prompts = [f"{person['name']} was born on" for person in people]
    answers = generate(canary(), prompts, written, beams=4)
    for prompt, answer in zip(prompts, answers, strict=True):
        print(prompt + answer.text)
    known = [a.text.strip() == p["date"] for a, p in zip(answers, people, strict=True)]
    assert sum(known) >= 6


if __name__ == "__main__":
    main()
