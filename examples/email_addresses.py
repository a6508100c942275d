"""E-mail addresses: drawn inside a language, then the likeliest ones in order.

The pattern is the everyday part of what mail servers accept: letters, digits and dots on the left,
never a dot at an end or two in a row; labels and a short last one on the right.
"""

from __future__ import annotations

import math
import re

from formalm import Limits, Regex, generate, search
from formalm.models.canary import canary, facts

LABEL = "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?"
ADDRESS = rf"[a-z0-9]+(\.[a-z0-9]+)*@({LABEL}\.)+(com|net|org)"


def main() -> None:
    """Draw addresses, then ask which one the model was shown most often."""
    prompt = "My e-mail address is "
    for answer in generate(canary(), prompt, Regex(ADDRESS), n=5, seed=0, max_tokens=30):
        print(answer.text, "" if answer.complete else f"({answer.reason})")
        assert answer.is_accepting == bool(re.fullmatch(ADDRESS, answer.text))

    (planted,) = [one for one in facts()["planted"] if one["prefix"] == prompt.strip()]
    hits = search(
        canary(), Regex(" " + ADDRESS), prompt=prompt.strip(), limits=Limits(hits=1, forwards=5000)
    )
    for hit in hits:
        print(f"the likeliest:{hit.text}   p = {math.exp(hit.logprob):.2f}")
        assert hit.text.strip() == planted["members"][0]["text"]


if __name__ == "__main__":
    main()
