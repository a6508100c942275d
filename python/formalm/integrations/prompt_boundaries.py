"""The boundary between prompt and generated text in rows of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.errors import ArgumentError

__all__ = ["ID_BYTES", "Prompt"]

Ids = npt.NDArray[np.int64]
ID_BYTES = 8


class Prompt:
    """The part of every row before the generated text.

    Parameters
    ----------
    given
        Its length in tokens, including padding, or the prompts themselves: ``input_ids`` ``(rows,
        length)``, or the output of a tokenizer.
    rows
        The number of prompts, if only their length is given.

    Raises
    ------
    ArgumentError
        If it is neither.
    """

    def __init__(self, given: Any, rows: int | None = None) -> None:
        self.length: int
        self.rows: int | None = rows
        self.order: tuple[bytes, ...] = ()
        self._known: frozenset[bytes] = frozenset()
        self._padding: dict[bytes, npt.NDArray[np.bool_]] = {}
        # Every step has the same prompts.
        self._fronts: dict[bytes, bytes] = {}
        if given is None:
            raise ArgumentError(
                "prompt must be given, because token ids alone do not show where the prompt ends",
                hint="pass prompt=inputs, as passed to model.generate, or the prompt's length in"
                " tokens",
            )
        if type(given) is int:
            if given < 0:
                raise ArgumentError(f"prompt must be a length or token ids, got {given}")
            self.length = given
            return
        ids = _array(given)
        self.rows, self.length = ids.shape
        self.order = tuple(row.tobytes() for row in ids)
        self._known = frozenset(self.order)
        seen = given.get("attention_mask") if isinstance(given, Mapping) else None
        if seen is not None:
            mask = np.asarray(seen.detach().cpu() if hasattr(seen, "detach") else seen)
            if mask.shape == ids.shape:
                pairs = zip(ids, mask == 0, strict=True)
                self._padding = {row.tobytes(): padding for row, padding in pairs}

    def rest(self, ids: Ids) -> list[bytes]:
        """Returns the ids after the prompt in each row, as bytes.

        It makes few calls, and on bytes: between two forward passes, each call finds the
        processor's caches cold.

        Raises
        ------
        ArgumentError
            If a row is shorter than the prompt or begins with another one.
        """
        rows, length = ids.shape
        if length < self.length:
            raise ArgumentError(
                f"rows must have at least the {self.length} tokens of their prompt, got {length}",
                hint="create a processor for each call of generate, from its own inputs",
            )
        data = ids.tobytes()
        texts = []
        for row in range(rows):
            start = row * length * ID_BYTES
            text = start + self.length * ID_BYTES
            if self._known and data[start:text] not in self._known:
                raise ArgumentError(
                    f"every row must start with a prompt of this processor, but row {row} does not",
                    hint="create a processor for each call of generate, from its own inputs",
                )
            texts.append(data[text : start + length * ID_BYTES])
        return texts

    def places(self, ids: Ids) -> list[int]:
        """Returns the number of each row's prompt. ``generate`` keeps the rows of one prompt
        together, in the order of the prompts.

        Raises
        ------
        ArgumentError
            If the rows are not a multiple of the prompts, or a row begins with another prompt.
        """
        rows, prompts = len(ids), self.rows
        if prompts is None or rows % prompts:
            raise ArgumentError(
                f"the rows must be a multiple of the prompts ({prompts}) if each has a language of"
                f" its own, got {rows} rows",
                hint="pass the inputs of generate as prompt, and all of their rows in each call",
            )
        places = [row // (rows // prompts) for row in range(rows)]
        if self.order:
            for row, place in enumerate(places):
                if ids[row, : self.length].tobytes() != self.order[place]:
                    raise ArgumentError(
                        f"row {row} must begin with prompt {place}, whose language it has",
                        hint="pass the rows in the order of the prompts",
                    )
        return places

    def fronts(self, ids: Ids, size: int) -> list[bytes]:
        """Returns the ids of each row's prompt as bytes, from its last padding or last id outside
        the ``size`` tokens on.
        """
        rows = [row.tobytes() for row in ids[:, : self.length]]
        for row in rows:
            if row not in self._fronts:
                self._fronts[row] = self._front(row, size)
        return [self._fronts[row] for row in rows]

    def _front(self, row: bytes, size: int) -> bytes:
        ids = np.frombuffer(row, np.int64)
        outside = (ids < 0) | (ids >= size)
        if row in self._padding:
            outside |= self._padding[row]
        places = np.flatnonzero(outside)
        return (ids[places[-1] + 1 :] if len(places) else ids).tobytes()


def _array(given: Any) -> Ids:
    if isinstance(given, Mapping):
        if "input_ids" not in given:
            raise ArgumentError("prompt must have input_ids if it is a mapping")
        given = given["input_ids"]
    if hasattr(given, "detach"):
        given = given.detach().cpu()
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"prompts must be padded to equal length: {error}") from None
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise ArgumentError(
            f"prompt must be a length or token ids (rows, length), got {array.dtype}{array.shape}",
            hint="generate turns an empty prompt into a beginning-of-sequence token; pass prompt=1",
        )
    return np.ascontiguousarray(array, dtype=np.int64)
