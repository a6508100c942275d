"""Generate inside a language: dates that exist, in ISO form.

A pattern alone would allow 31 February; subtracting what does not exist is one operator away.
"""

from __future__ import annotations

import datetime
import math

from formalm import Regex, generate
from formalm.models.canary import canary

FORM = Regex(r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")
TOO_LONG = Regex(r"[0-9]{4}-(02-(29|3[01])|(04|06|09|11)-31)")
DATES = FORM - TOO_LONG  # 29 February left out altogether, to keep the example short


def main() -> None:
    """Draw ten dates and let the calendar check them."""
    dates = generate(canary(), "Due: ", DATES, n=10, seed=0, max_tokens=20, finish=True)
    for date in dates:
        datetime.date.fromisoformat(date.text)
        weight = math.exp(date.log_importance_weight)
        print(f"{date.text}   the model alone would have stayed inside with p = {weight:.2g}")


if __name__ == "__main__":
    main()
