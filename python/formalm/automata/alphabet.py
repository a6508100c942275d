"""The alphabet of an automaton in classes, and its transition table by them.

Two symbols are in one class if they lead from every state to the same state. A table with a column
for each class is the whole automaton, whatever the number of symbols::

      state  final?  .  0-9  anything_else
    --------------------------------------
    * 0      False   1  0
      1      False      2
      2      True       2
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index as as_index

import numpy as np
import numpy.typing as npt

from formalm.automata.edge_labels import Ranges
from formalm.errors import ArgumentError

__all__ = ["Alphabet", "classes_of", "table_of"]

ANYTHING_ELSE = "anything_else"
"""The name of the class of the symbols that no edge reads, as in the library interegular."""

ROWS, COLUMNS, WIDTH = 60, 24, 24
"""States, classes and characters of a class's name in a printed table. Chosen, not measured."""

Transitions = dict[int, dict[int, int]]


class Alphabet:
    r"""The symbols of an automaton, divided into classes with equal transitions.

    Classes are numbered by their smallest symbol, from 0. Symbols that no edge reads are the last
    class, ``anything_else``, if there are any. ``alphabet[symbol]`` is the class of a byte, of an
    ASCII character, or of a token id. ``len`` is the number of classes, and ``str`` lists them.

    Examples
    --------
    >>> from formalm import Regex
    >>> alphabet = Regex(r"([0-9]+)?\.[0-9]+").to_automaton().alphabet
    >>> print(alphabet)
    .             | 0
    0-9           | 1
    anything_else | 2
    >>> alphabet["7"], alphabet[ord("7")], alphabet["x"], len(alphabet)
    (1, 1, 2, 3)
    """

    __slots__ = ("_classes", "names")

    def __init__(self, names: tuple[str, ...], classes: npt.NDArray[np.int64]) -> None:
        self.names = names
        self._classes = classes

    def symbols(self, number: int) -> list[int]:
        """Returns the symbols of a class, ascending: bytes, or token ids."""
        if not 0 <= as_index(number) < len(self.names):
            raise ArgumentError(
                f"number must be below the number of classes ({len(self.names)}), got {number!r}"
            )
        return [int(symbol) for symbol in np.flatnonzero(self._classes == number)]

    def __getitem__(self, symbol: int | str | bytes) -> int:
        if isinstance(symbol, str | bytes):
            data = symbol.encode(errors="surrogatepass") if isinstance(symbol, str) else symbol
            if len(data) != 1 or len(self._classes) != 256:
                raise ArgumentError(
                    f"symbol must be one byte of an automaton over bytes, got {symbol!r:.40}",
                    hint="a character beyond ASCII has several bytes, each with its own class",
                )
            symbol = data[0]
        number = as_index(symbol)
        if not 0 <= number < len(self._classes):
            raise ArgumentError(
                f"symbol must be from 0 to {len(self._classes) - 1}, got {symbol!r:.40}"
            )
        return int(self._classes[number])

    def __len__(self) -> int:
        return len(self.names)

    # A mapping from symbols, not a sequence of classes.
    __iter__ = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Alphabet):
            return NotImplemented
        return self.names == other.names and np.array_equal(self._classes, other._classes)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        width = max(map(len, self.names), default=0)
        return "\n".join(f"{name:{width}} | {at}" for at, name in enumerate(self.names))

    def __repr__(self) -> str:
        return f"<Alphabet: {len(self.names)} class{'' if len(self.names) == 1 else 'es'}>"


def classes_of(
    ranges: npt.NDArray[np.uint32], size: int, state_count: int, label: Callable[[Ranges], str]
) -> tuple[Alphabet, Transitions]:
    """Returns the alphabet, and the transitions from each state by class.

    Parameters
    ----------
    ranges
        Rows of source, first symbol, last symbol, target.
    size
        Number of symbols.
    state_count
        Number of states.
    label
        The name of a class, from its ranges of symbols.
    """
    source, first, last, target = ranges.astype(np.int64).T
    # Between two cuts, all symbols are read by the same edges.
    cuts = np.unique(np.concatenate([first, last + 1, [0, size]]))
    begin, end = np.searchsorted(cuts, first), np.searchsorted(cuts, last + 1)
    lengths = end - begin
    starts = np.cumsum(lengths) - lengths
    pieces = np.arange(lengths.sum()) - np.repeat(starts - begin, lengths)
    order = np.argsort(pieces, kind="stable")
    pairs = np.repeat(np.stack([source, target], axis=1), lengths, axis=0)[order]
    bounds = np.searchsorted(pieces[order], np.arange(len(cuts)))
    numbers: dict[bytes, int] = {}
    members: list[list[tuple[int, int]]] = []
    transitions: Transitions = {state: {} for state in range(state_count)}
    classes = np.full(size, -1, dtype=np.int64)
    for piece in range(len(cuts) - 1):
        edges = pairs[bounds[piece] : bounds[piece + 1]]
        if not len(edges):
            continue
        low, high = int(cuts[piece]), int(cuts[piece + 1]) - 1
        number = numbers.setdefault(edges.tobytes(), len(members))
        if number == len(members):
            members.append([])
            for here, there in edges.tolist():
                transitions[here][number] = there
        spans = members[number]
        if spans and spans[-1][1] == low - 1:
            spans[-1] = (spans[-1][0], high)
        else:
            spans.append((low, high))
        classes[low : high + 1] = number
    names = [label(spans) for spans in members]
    if (classes < 0).any():
        classes[classes < 0] = len(names)
        names.append(ANYTHING_ELSE)
    return Alphabet(tuple(names), classes), transitions


def table_of(
    alphabet: Alphabet, transitions: Transitions, start: int, accepting: frozenset[int]
) -> str:
    """Returns the table of states by classes; what is left out of a large one is counted."""
    columns = range(min(len(alphabet), COLUMNS))
    names = [_cut(alphabet.names[column]) for column in columns]
    states = list(transitions)[:ROWS]
    widths = [
        max([len(name), *(len(str(transitions[s].get(column, ""))) for s in states)])
        for column, name in zip(columns, names, strict=True)
    ]
    left = max(len("state"), *(len(str(state)) for state in states))
    head = [f"  {'state':{left}}", "final?"]
    lines = ["  ".join([*head, *map(str.ljust, names, widths)]).rstrip()]
    lines.append("-" * len(lines[0]))
    for state in states:
        mark = "*" if state == start else " "
        cells = [f"{mark} {state:<{left}}", f"{state in accepting!s:6}"]
        cells += [
            f"{transitions[state].get(column, '')!s:{width}}"
            for column, width in zip(columns, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    if more := len(transitions) - len(states):
        lines.append(f"… {more:,} more state{'' if more == 1 else 's'}")
    if more := len(alphabet) - len(columns):
        lines.append(f"… {more:,} more class{'' if more == 1 else 'es'} of the alphabet")
    return "\n".join(lines)


def _cut(name: str) -> str:
    return name if len(name) <= WIDTH else name[: WIDTH - 1] + "…"
