"""A compressor as a language model, asked about a text.

What compresses well after a text is likely to follow it: minus the compressed length in bytes,
times log 256, is a logit. The model is as bad as it sounds, and works with everything here. All it
knows is the text it is given; where another answer stands in it, the answer is another.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Sequence

from formalm import Choice, FunctionModel, Vocabulary, generate

SUMMARY = """
a schoolmaster who calls himself ishmael is tired of the land and goes to sea. at an inn he shares
a bed with queequeg, a harpooner from the south seas, and the two become friends. they sign on to
the pequod, a whaler from nantucket. days pass before her captain shows himself: he stands on a leg
of whale bone, for a white whale took the other one. captain ahab is seeking vengeance against moby
dick and no profit from oil. the mate, starbuck, calls it madness to rage at a dumb beast. ahab
nails a gold coin to the mast for whoever sees the white whale first. on the third day of the chase
moby dick sinks the ship, and of all her crew ishmael alone is left to tell it.
""".replace("\n", " ")
CHARACTERS = "abcdefghijklmnopqrstuvwxyz ,.:"


def compressor_model(text: str) -> FunctionModel:
    """A model of one token a character, and an end, that has read ``text``."""

    def encode(prompt: str) -> list[int]:
        return [CHARACTERS.index(character) for character in prompt.lower()]

    def logits(prefixes: Sequence[Sequence[int]]) -> list[list[float]]:
        return [[-math.log(256) * size for size in sizes(prefix)] for prefix in prefixes]

    def sizes(prefix: Sequence[int]) -> list[int]:
        read = text + "".join(CHARACTERS[token_id] for token_id in prefix)
        return [len(gzip.compress((read + c).encode(), 3)) for c in (*CHARACTERS, "\n")]

    tokens: list[bytes | None] = [character.encode() for character in CHARACTERS]
    vocabulary = Vocabulary.from_tokens([*tokens, None], [len(CHARACTERS)], encode)
    return FunctionModel(vocabulary, logits)


def main() -> None:
    """Ask whom Ahab is after, in the book and in one that was never written."""
    prompt, names = "Ahab is seeking vengeance against", Choice([" ishmael", " moby dick"])
    other = SUMMARY.replace("against moby dick", "against ishmael")
    for text, expected in [(SUMMARY, " moby dick"), (other, " ishmael")]:
        answer = generate(compressor_model(text), prompt, names, beams=2, max_tokens=12)
        print(prompt + answer.text)
        assert answer.text == expected


if __name__ == "__main__":
    main()
