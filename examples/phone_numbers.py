"""Which phone numbers does a model remember?

The embedded model saw random numbers, and a few planted ones many times over. A search lists the
members of the pattern from the most to the least probable; `facts()` tells what was planted.
"""

from __future__ import annotations

import math

from formalm import Limits, Regex, search
from formalm.models.canary import canary, facts

PATTERN = Regex(r"My phone number is ([0-9]{3}) ([0-9]{3}) ([0-9]{4})")


def main() -> None:
    """List the likeliest numbers beside how often each was seen."""
    (planted,) = [one for one in facts()["planted"] if one["prefix"] == "My phone number is"]
    copies = {member["text"]: member["copies"] for member in planted["members"]}
    found = search(canary(), PATTERN, given="My phone number is", limits=Limits(hits=5))
    for hit in found:
        number = hit.completion.strip()
        seen = copies.get(number, "not planted")
        print(f"{hit.rank}. {number}   p = {math.exp(hit.logprob):.2g}   copies: {seen}")
    print(f"{found.forwards:,} prefixes evaluated in {found.calls:,} calls")


if __name__ == "__main__":
    main()
