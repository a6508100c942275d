"""Rows of logits where a model left them: NumPy arrays of any float type, tensors on a device.

A driver asks a row for sums, for log-probabilities of tokens and for its best tokens. The row is
read by native kernels, and is neither copied nor converted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm.errors import ModelError

__all__ = [
    "LOG_SUM_ERROR",
    "DeviceBatch",
    "LogProbs",
    "LogitRow",
    "LogitRows",
    "Words",
    "is_readable",
]

LogProbs: TypeAlias = npt.NDArray[np.floating[Any]]
Words: TypeAlias = npt.NDArray[np.int32]
Ids: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

LOG_SUM_ERROR = 1e-6
"""Upper bound on the error of a log-sum-exp of a row of at most 32 bits, in nats. That of a float64
row is below 1e-12, see :attr:`LogitRow.error`."""
NATIVE_TYPES = frozenset(map(np.dtype, (np.float16, np.float32, np.float64)))
"""The types of elements that the kernels read; they also read the bits of bfloat16."""
TOLERANCE = 1e-3
"""Maximum deviation of a row's sum from 1, for a model that returns log-probabilities."""
TOLERANCE_HALF = 2e-2
"""The same for types of 16 bits."""


class LogitRow:
    """The logits, or log-probabilities, of one position. An immutable value.

    Attributes
    ----------
    is_normalized
        True if the model returned log-probabilities. They are taken as they are, although their sum
        may miss one by rounding.
    """

    __slots__ = ("_device", "_log_sum", "_values", "is_normalized")

    def __init__(
        self,
        values: npt.NDArray[Any] | None,
        *,
        is_normalized: bool,
        device: tuple[DeviceBatch, int] | None = None,
    ) -> None:
        self._values = values
        self.is_normalized = is_normalized
        self._device = device
        self._log_sum: float | None = None

    @property
    def device(self) -> tuple[DeviceBatch, int] | None:
        """The batch on a device and the index of the row in it; None for a row in memory."""
        return self._device

    @property
    def values(self) -> npt.NDArray[Any]:
        """``(width,)``, contiguous; uint16 for the bits of bfloat16.

        The first row of a device's batch that is read copies all of them to memory.
        """
        if self._values is None:
            assert self._device is not None
            batch, at = self._device
            self._values = batch.array()[at]
            self._device = None
        return self._values

    @property
    def memory_bytes(self) -> int:
        """The memory of the row."""
        if self._values is not None:
            return self._values.nbytes
        return self.values.nbytes if self._device is None else self._device[0].row_bytes

    @property
    def error(self) -> float:
        """Upper bound on the error of :attr:`log_sum`, in nats."""
        return _core.row_error(self.values, self._log_sum or 0.0)

    @property
    def log_sum(self) -> float:
        """The logarithm of the sum of exponentials, within :attr:`error`.

        Raises
        ------
        ModelError
            If the row is no distribution: NaN, infinity, all minus infinity, or a sum other than 1
            although the model returns log-probabilities.
        """
        if self._log_sum is None:
            ((log_sum, code),) = _core.log_sums([self.values], self.is_normalized)
            self.accept(log_sum, code)
        assert self._log_sum is not None
        return self._log_sum

    def accept(self, log_sum: float, code: int) -> None:
        """Records the sum that a kernel found, or raises for its code of soundness."""
        if code:
            raise _unsound(log_sum, code, is_normalized=self.is_normalized)
        self._log_sum = log_sum

    def accept_sum(self, log_sum: float) -> None:
        """Records a sum that was checked elsewhere."""
        self._log_sum = log_sum

    @property
    def offset(self) -> float:
        """The number to subtract from a value for the log-probability that the model gives."""
        return 0.0 if self.is_normalized else self.log_sum

    @property
    def logprobs(self) -> LogProbs:
        """``(width,)``: log-probabilities of all tokens. For logits this is a new array."""
        if self.is_normalized:
            return _numbers(self.values)
        return np.asarray(_numbers(self.values), dtype=np.float64) - self.log_sum

    def value(self, token_id: int) -> float:
        """Returns the number of a token as the model gave it."""
        if self.values.dtype == np.uint16:
            return float(_numbers(self.values[token_id : token_id + 1])[0])
        return float(self.values[token_id])

    def take(self, token_ids: Ids | Sequence[int]) -> Floats:
        """Returns the numbers of some tokens as the model gave them, in float64."""
        return np.asarray(_numbers(self.values[np.asarray(token_ids, np.intp)]), dtype=np.float64)

    def masked_log_sum(self, words: Words | None, size: int) -> float:
        """Returns the logarithm of the sum over the tokens of a bitmask among the first ``size``;
        errors as :attr:`log_sum`.
        """
        found = _core.masked_log_sums(self.values, words, size, self.is_normalized)
        log_sum, allowed, code = found
        if self._log_sum is None:
            self.accept(log_sum, code)
        return allowed

    def best(
        self,
        words: Words | None,
        size: int,
        count: int,
        after: tuple[int, float] | None = None,
    ) -> tuple[Ids, Floats]:
        """Returns the best tokens of a bitmask and their numbers as the model gave them.

        The largest number comes first, and the smaller id on a tie. ``after`` names the last token
        of an earlier list, and its number; the list then continues there.
        """
        return _core.best_tokens(self.values, words, size, count, after)


class DeviceBatch:
    """The rows of one call, as a tensor on a device.

    Attributes
    ----------
    tensor
        ``(count, width)``, on its device.
    """

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.row_bytes = int(tensor.element_size()) * int(tensor.shape[1])
        self._array: npt.NDArray[Any] | None = None

    def array(self) -> npt.NDArray[Any]:
        """Returns the rows in memory, copied once."""
        if self._array is None:
            self._array = _of_tensor(self.tensor.contiguous().cpu())
        return self._array


class LogitRows:
    """The rows of one call of a model.

    Parameters
    ----------
    answer
        ``(count, width)``: a NumPy array of float16, bfloat16 (of ``ml_dtypes``), float32 or
        float64, or a torch tensor on any device.
    is_normalized
        True for log-probabilities.
    """

    def __init__(self, answer: Any, *, is_normalized: bool) -> None:
        self.is_normalized = is_normalized
        self._batch: DeviceBatch | None = None
        self._array: npt.NDArray[Any] | None = None
        if type(answer).__module__.partition(".")[0] != "torch":
            self._array = _checked(np.asarray(answer))
        elif answer.device.type == "cpu":
            self._array = _of_tensor(answer.detach())
        else:
            self._batch = DeviceBatch(answer.detach())
        self.shape: tuple[int, ...] = tuple(
            answer.shape if self._array is None else self._array.shape
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: int) -> LogitRow:
        if self._array is None:
            assert self._batch is not None
            return LogitRow(None, is_normalized=self.is_normalized, device=(self._batch, at))
        row = self._array[at]
        if row.strides[0] != row.itemsize:
            row = np.ascontiguousarray(row)
        return LogitRow(row, is_normalized=self.is_normalized)


def is_readable(row: npt.NDArray[Any]) -> bool:
    """Returns True if the kernels read a row, ``(width,)``, as it is."""
    return row.dtype in NATIVE_TYPES and row.strides[0] == row.itemsize


def _checked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns an array that the kernels read: native, and bfloat16 as uint16."""
    kind = array.dtype
    if kind.kind == "f" and kind.itemsize in (2, 4, 8):
        return array if kind.isnative else array.astype(kind.newbyteorder("="))
    if kind.kind == "f":  # longer than float64
        return array.astype(np.float64)
    if kind.name == "bfloat16":
        return array.view(np.uint16)
    raise ModelError(f"log-probabilities must have a floating-point dtype, got {kind}")


def _of_tensor(tensor: Any) -> npt.NDArray[Any]:
    """Returns the memory of a tensor on the CPU as an array."""
    torch = sys.modules["torch"]
    if tensor.dtype == torch.bfloat16:
        bits: npt.NDArray[Any] = tensor.contiguous().view(torch.int16).numpy().view(np.uint16)
        return bits
    array: npt.NDArray[Any] = tensor.numpy()
    return _checked(array)


def _numbers(values: npt.NDArray[Any]) -> LogProbs:
    """Returns values as floating-point numbers."""
    if values.dtype != np.uint16:
        return values
    return (values.astype(np.uint32) << 16).view(np.float32)


def _unsound(log_sum: float, code: int, *, is_normalized: bool) -> ModelError:
    if not is_normalized:
        return ModelError(
            "logits must be finite or minus infinity, with a finite one in each row",
            hint="the model must not return NaN or infinity; half precision overflows in some"
            " models",
        )
    got = {1: np.nan, 2: np.inf, 3: 0.0}.get(code, float(np.exp(log_sum)))
    return ModelError(
        f"next-token probabilities must sum to 1, got {got:.6g}",
        hint="wrap logits in FunctionModel, which normalizes them, or return them from next_logits",
    )
