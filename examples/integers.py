"""Generate integers and decimals: whatever comes out, Python's own parsers read it."""

from __future__ import annotations

from formalm import Regex, generate
from formalm.models.canary import canary

INTEGER = Regex("0|-?[1-9][0-9]{0,8}")
DECIMAL = Regex(r"([0-9]+)?\.[0-9]+")
SMALL = INTEGER & Regex("-?[0-9]{1,2}")


def main() -> None:
    """Draw some of each; `finish` keeps the texts whole within their eight tokens."""
    for prompt, language in [("Count: ", INTEGER), ("Weight: ", DECIMAL), ("Age: ", SMALL)]:
        texts = [
            generation.text
            for generation in generate(
                canary(), prompt, language, n=6, seed=0, max_tokens=8, finish=True
            )
        ]
        numbers = [float(text) if language is DECIMAL else int(text) for text in texts]
        print(prompt, *numbers)
        assert language is not SMALL or all(abs(number) < 100 for number in numbers)


if __name__ == "__main__":
    main()
