"""A JSON document by one pattern: a list of singles with title, year and chart positions.

The pattern is the one of the article that introduced the method, put together from its parts. It
has a slip of the pen: `[(12][0-9]{3}` was to say `(1|2)[0-9]{3}` and says that a year begins with
1, 2 or an opening parenthesis. It also lets strings have line breaks and backslashes, and any kind
of space stand between values. A mask keeps to what a pattern says, so such slips matter.
"""

from __future__ import annotations

import json

from formalm import Regex, generate
from formalm.models.canary import canary


def singles(year: str, text: str, space: str) -> Regex:
    """The pattern, with what it says of a year, of a string's text and of a space."""
    line, colon, chart = rf",\n{space}{{4}}", rf":{space}", "[0-9]{1,3}"
    single = (
        rf'{space}{{2}}\{{\n{space}{{4}}"title"{colon}"{text}"'
        rf'({line}"album"{colon}"{text}")?{line}"year"{colon}{year}'
        rf'({line}"us-chart-max"{colon}{chart})?({line}"uk-chart-max"{colon}{chart})?'
        rf"\n{space}{{2}}\}}"
    )
    return Regex(rf"\[\n({single})(,\n{single})*\n\]")


WRITTEN = singles(r"[(12][0-9]{3}", r'[^"]+', r"[^\S\r\n]")
MEANT = singles(r"[12][0-9]{3}", r'[^"\\\x00-\x1f]+', "[ ]")


def main() -> None:
    """Show what the slip allows, then generate with the pattern that was meant."""
    odd = '[\n  {\n    "title": "Money",\n    "year": (973\n  }\n]'
    print("(973 is a year:", WRITTEN.matches(odd), "as written,", MEANT.matches(odd), "as meant")
    assert WRITTEN.matches(odd)
    assert not MEANT.matches(odd)
    answer = generate(canary(), None, MEANT, seed=0, max_tokens=100, finish=True, temperature=0.7)
    print(answer.text)
    assert all(1000 <= single["year"] < 3000 for single in json.loads(answer.text))


if __name__ == "__main__":
    main()
