"""A parser of one's own: one of several texts, as a class that reads them piece by piece."""

from __future__ import annotations

from collections.abc import Sequence

from formalm import ParseFailure, Parser, generate
from formalm.models.canary import canary


class OneOf(Parser):
    """One of several texts."""

    def __init__(self, texts: Sequence[str], read: str = "") -> None:
        self.texts, self.read = tuple(texts), read

    def append(self, text: str) -> None:
        """Read on, or refuse."""
        self.read += text
        if not any(option.startswith(self.read) for option in self.texts):
            raise ParseFailure

    def copy(self) -> OneOf:
        """Another parser in the same state."""
        return OneOf(self.texts, self.read)

    @property
    def is_accepting(self) -> bool:
        """Whether one of the texts was read."""
        return self.read in self.texts

    def next_strings(self) -> list[str]:
        """The rests of the texts that are left, so that few tokens have to be tried."""
        options = [option for option in self.texts if option.startswith(self.read)]
        return [option[len(self.read) :] for option in options if option != self.read]


def main() -> None:
    """Let the embedded model choose."""
    options = OneOf(["Option A", "Option B"])
    chosen = {generate(canary(), "Input: ", options, seed=seed).text for seed in range(4)}
    print(", ".join(sorted(chosen)))
    assert chosen <= {"Option A", "Option B"}


if __name__ == "__main__":
    main()
