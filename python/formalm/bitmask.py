"""Bitmasks: creating them, filling them for a batch, applying them to logits.

A bitmask is an int32 array ``(ceil(width / 32),)``, or ``(rows, ceil(width / 32))`` for a batch:
bit ``id & 31`` of word ``id >> 5`` is 1 if the token is allowed. PyTorch is never imported here: if
a torch tensor exists, it was imported already.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm.device_masks import apply_on_device
from formalm.errors import ArgumentError, ConcurrencyError, LimitError

if TYPE_CHECKING:
    from formalm.constraint import Matcher

__all__ = [
    "apply_bitmask",
    "as_bitmask",
    "check_tensors",
    "fill_bitmasks",
    "fill_draft",
    "is_normalized",
    "is_torch_tensor",
    "masked_scores",
    "new_bitmask",
]


MOST_BYTES = 1 << 36
"""Bytes of a bitmask: a million sequences over half a million tokens."""


def new_bitmask(rows: int, width: int) -> npt.NDArray[np.int32]:
    """Returns an all-zero bitmask for a batch.

    Parameters
    ----------
    rows
        Number of sequences.
    width
        Number of logits, such as ``constraint.width`` or ``len(vocabulary)``.

    Raises
    ------
    LimitError
        If it needs more memory than is available, or more than 64 GiB.

    Examples
    --------
    >>> new_bitmask(2, 100).shape
    (2, 4)
    """
    for name, value in (("rows", rows), ("width", width)):
        if type(value) is not int or value < 1:
            raise ArgumentError(f"{name} must be a positive integer, got {value!r}")
    words = -(-width // 32)
    needed = 4 * rows * words
    if needed > MOST_BYTES:
        raise LimitError("bytes", needed, MOST_BYTES, "rows are sequences, width is one sequence's")
    try:
        return np.zeros((rows, words), dtype=np.int32)
    except MemoryError:
        raise LimitError("bytes", needed, needed - 1, "the system has no more memory") from None


def is_torch_tensor(value: object) -> bool:
    """Returns True if ``value`` is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def check_tensors(token_ids: object, scores: object) -> None:
    """Refuses token ids and scores that are not tensors with equal numbers of rows."""
    for name, value in (("input_ids", token_ids), ("scores", scores)):
        if not is_torch_tensor(value):
            raise ArgumentError(f"{name} must be a torch tensor, got {type(value).__name__}")
    ids: Any = token_ids
    rows: Any = scores
    if ids.dim() != 2 or ids.is_floating_point() or ids.dtype == sys.modules["torch"].bool:
        raise ArgumentError(
            f"input_ids must be integers (rows, length), got {ids.dtype} {tuple(ids.shape)}"
        )
    if rows.dim() != 2 or not rows.is_floating_point() or len(rows) != len(ids):
        raise ArgumentError(
            f"scores must be floating-point numbers ({len(ids)}, width), one row for each row of"
            " input_ids, "
            f"got {rows.dtype} {tuple(rows.shape)}"
        )


def is_normalized(scores: Any, tolerance: float = 1e-4) -> bool:
    """Returns True if all rows of torch scores are log-probabilities."""
    return bool((scores.float().logsumexp(-1).abs() < tolerance).all())


def as_bitmask(value: Any) -> npt.NDArray[np.int32]:
    """Returns the array of a bitmask: itself, or the memory of an int32 CPU tensor."""
    if is_torch_tensor(value):
        if value.device.type != "cpu":
            raise ArgumentError(
                f"a bitmask is filled on the CPU, this tensor is on {value.device}",
                hint="fill a CPU tensor and copy it to the device",
            )
        value = value.detach().numpy()
    if not isinstance(value, np.ndarray):
        raise ArgumentError(f"bitmask must be an int32 array, got {type(value).__name__}")
    if value.dtype != np.int32:
        raise ArgumentError(f"bitmask must have dtype int32, got {value.dtype}")
    return value


def fill_bitmasks(
    matchers: Sequence[Matcher | None], out: Any, rows: Sequence[int] | None = None
) -> None:
    """Fills one row of a bitmask for each matcher, in parallel.

    Parameters
    ----------
    matchers
        Different matchers; they may belong to different constraints. None is a sequence without a
        constraint: all bits of its row are set, also those beyond the vocabulary.
    out
        int32 array or CPU tensor ``(at least len(matchers), ceil(width / 32))``.
    rows
        The row of each matcher; None means ``0, 1, 2 …``. Other rows do not change.

    Raises
    ------
    ArgumentError
        For a wrong dtype, shape, stride or row.
    ConcurrencyError
        If a matcher occurs twice or is in use by another thread.
    """
    cores = _cores(matchers)
    try:
        _core.fill_bitmasks(cores, as_bitmask(out), rows)
    except ConcurrencyError:
        _check_distinct(cores)
        raise


#: The tokens of a draft as a chain, or the tokens of a tree with the index of the token that each
#: one follows, -1 for those that follow the matcher's own position.
DraftTokens: TypeAlias = Sequence[int] | tuple[Sequence[int], Sequence[int]]


def fill_draft(
    matchers: Sequence[Matcher | None],
    drafts: Sequence[DraftTokens],
    out: Any,
    rows: Sequence[int] | None = None,
) -> list[int]:
    """Fills the rows of a bitmask that speculative decoding verifies, in parallel.

    A draft of ``n`` tokens fills ``n + 1`` rows: the first for the matcher's own position, and row
    ``i + 1`` for the position after token ``i``. The matchers stay where they are. The call runs
    without the interpreter lock.

    The row after a token that is not allowed, or that follows such a token, repeats the row of the
    last position before it that was reached; so does the row after an end token. Every row of a
    sequence that has not ended therefore allows some token.

    Parameters
    ----------
    matchers
        Different matchers; they may belong to different constraints. None is a sequence without a
        constraint: all bits of its rows are set.
    drafts
        For each matcher, the draft tokens: a list for a chain, where each token follows the one
        before it; or a tuple ``(token_ids, parents)`` for a tree, where ``parents[i]`` is the index
        of the token that token ``i`` follows, smaller than ``i``, and -1 if it follows the
        matcher's own position. Ids outside the vocabulary, such as the padding -1, are not allowed
        anywhere.
    out
        int32 array or CPU tensor ``(rows, ceil(width / 32))``.
    rows
        The first row of each matcher; None means that they follow one another. Other rows do not
        change.

    Returns
    -------
    list
        For each matcher, the number of draft tokens that are allowed: of a chain, the length of the
        accepted prefix.

    Raises
    ------
    ArgumentError
        For a wrong dtype, shape, stride or row, rows that overlap, or parents that are not a tree.
    ConcurrencyError
        If a matcher occurs twice or is in use by another thread.
    DeadlineError
        After :attr:`Matcher.timeout_seconds`, for the rows of one matcher.

    Examples
    --------
    >>> from formalm import Constraint, Regex, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> matcher = Constraint(Regex("ab"), vocabulary).matcher()
    >>> out = new_bitmask(4, 3)
    >>> fill_draft([matcher], [[0, 0, 1]], out), out.ravel().tolist()
    ([1], [1, 2, 2, 2])
    >>> fill_draft([matcher], [([1, 0, 1], [-1, -1, 1])], out), out.ravel().tolist()
    ([2], [1, 1, 2, 4])
    """
    cores = _cores(matchers)
    pairs: list[tuple[Any, Any]] = []
    for draft in drafts:
        if isinstance(draft, tuple) and len(draft) == 2 and not isinstance(draft[0], int):
            pairs.append((_listed(draft[0]), _listed(draft[1])))
        else:
            pairs.append((_listed(draft), None))
    try:
        return _core.fill_drafts(cores, pairs, as_bitmask(out), rows)
    except ConcurrencyError:
        _check_distinct(cores)
        raise


def _listed(token_ids: Any) -> Any:
    """Returns the ids of an array or tensor as a list."""
    return token_ids.tolist() if hasattr(token_ids, "tolist") else token_ids


def _cores(matchers: Sequence[Matcher | None]) -> list[_core.Matcher | None]:
    cores: list[_core.Matcher | None] = []
    for matcher in matchers:
        if matcher is not None and not hasattr(matcher, "core"):
            raise ArgumentError(f"matchers must be a list of Matcher, got {type(matcher).__name__}")
        cores.append(None if matcher is None else matcher.core)
    return cores


def _check_distinct(cores: Sequence[_core.Matcher | None]) -> None:
    """Raises if a matcher occurs twice: the core finds that it is in use, but not by whom."""
    places: dict[int, int] = {}
    for place, core in enumerate(cores):
        first = places.setdefault(id(core), place)
        if first != place and core is not None:
            raise ConcurrencyError(
                f"matchers[{first}] and matchers[{place}] are one matcher",
                hint="for the same mask in two rows, fill one and copy it, or fork()",
            ) from None


def apply_bitmask(logits: Any, bitmask: Any, *, rows: Sequence[int] | Any = None) -> None:
    """Sets the logits of disallowed tokens to minus infinity, in place.

    Logits on a GPU are changed by one fused kernel if Triton is installed, without unpacking the
    bitmask; otherwise by torch's own operations, a slice of the columns at a time.

    Parameters
    ----------
    logits
        Floating NumPy array or torch tensor, ``(width,)`` or ``(rows, width)``.
    bitmask
        int32 array or tensor, ``(words,)`` or ``(rows, words)``; it may be wider than the logits.
        Logits beyond its last bit are disallowed.
    rows
        For two dimensions: the row of the logits for each row of the bitmask, a list, array or
        tensor of different integers; the other rows stay as they are. None if there are as many
        rows.

    Raises
    ------
    ArgumentError
        If types, dtypes or shapes do not fit, or rows are out of range or doubled.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.zeros(4, dtype=np.float32)
    >>> apply_bitmask(logits, np.array([0b0101], dtype=np.int32))
    >>> logits
    array([  0., -inf,   0., -inf], dtype=float32)
    """
    if not is_torch_tensor(logits):
        if not isinstance(logits, np.ndarray):
            raise ArgumentError(f"logits must be an array or a tensor, got {type(logits).__name__}")
        _apply_on_cpu(logits, bitmask, rows)
        return
    if not logits.dtype.is_floating_point:
        raise ArgumentError(f"logits must have a floating dtype, got {logits.dtype}")
    known = str(logits.dtype) in ("torch.float16", "torch.float32", "torch.float64")
    if logits.device.type == "cpu" and known and not is_on_device(bitmask):
        _apply_on_cpu(logits.detach().numpy(), bitmask, rows)
        return
    _apply_torch(logits, bitmask, rows)


def _apply_on_cpu(logits: npt.NDArray[Any], bitmask: Any, rows: Any) -> None:
    words = as_bitmask(bitmask)
    if rows is None:
        _core.apply_bitmask(logits, words)
        return
    for row, line in zip(_checked_rows(rows, logits, words), words, strict=True):
        _core.apply_bitmask(logits[row], line)


def _checked_rows(rows: Any, logits: Any, words: Any) -> list[int]:
    """Returns rows of logits, one for each row of a bitmask, or refuses them."""
    if len(logits.shape) != 2 or len(words.shape) != 2:
        raise ArgumentError("logits and bitmask must have two dimensions with rows")
    found = [int(row) for row in _listed(rows)]
    if len(found) != words.shape[0]:
        raise ArgumentError(
            f"rows must have one row for each of {words.shape[0]} rows of the bitmask, got"
            f" {len(found)}"
        )
    outside = [row for row in found if not 0 <= row < logits.shape[0]]
    if outside or len(set(found)) != len(found):
        raise ArgumentError(
            f"rows must be different integers from 0 to {logits.shape[0] - 1}, got {found!r:.60}"
        )
    return found


def masked_scores(
    matchers: Sequence[_core.Matcher | None], width: int, scores: Any
) -> tuple[Any, list[float]]:
    """Returns a masked copy of torch scores, and the maximum of each row.

    Parameters
    ----------
    matchers
        One per row; None allows nothing.
    width
        Number of logits that the matchers' masks cover.
    scores
        Floating tensor ``(rows, width of the model)``; it does not change.

    Returns
    -------
    tuple
        The scores with minus infinity for tokens that are not allowed; and the maximum of each row,
        NaN if an allowed score is NaN.
    """
    torch = sys.modules["torch"]
    if scores.device.type == "cpu" and scores.dtype == torch.float32 and scores.is_contiguous():
        masked, tops = _core.masked_scores(matchers, scores.detach().numpy())
        return torch.from_numpy(masked), tops
    words = new_bitmask(len(matchers), width)
    for row, matcher in enumerate(matchers):
        if matcher is not None:
            matcher.fill_bitmask(words, row)
    result = scores.clone()
    apply_bitmask(result, words)
    return result, result.amax(-1).tolist()


def is_on_device(value: Any) -> bool:
    """Returns True if ``value`` is a tensor on a device other than the CPU."""
    return is_torch_tensor(value) and value.device.type != "cpu"


def _apply_torch(logits: Any, bitmask: Any, rows: Any) -> None:
    """Applies a bitmask on another device, or to bfloat16."""
    torch = sys.modules["torch"]
    words = bitmask if is_torch_tensor(bitmask) else torch.from_numpy(as_bitmask(bitmask))
    if words.dtype != torch.int32:
        raise ArgumentError(f"bitmask must have dtype int32, got {words.dtype}")
    if logits.dim() not in (1, 2) or words.dim() not in (1, 2):
        raise ArgumentError("logits and bitmask must have one or two dimensions")
    if rows is not None:
        places = torch.tensor(_checked_rows(rows, logits, words), dtype=torch.int64)
        apply_on_device(logits, words, places)
        return
    if logits.dim() == 1 and words.dim() == 2:
        raise ArgumentError("bitmask must have one row for one row of logits")
    if words.dim() == 2 and words.shape[0] != logits.shape[0]:
        raise ArgumentError(
            f"bitmask must have one row for each row of logits ({logits.shape[0]}),"
            f" got {words.shape[0]}"
        )
    if logits.dim() == 1:
        logits = logits.unsqueeze(0)
    if words.dim() == 1:
        words = words.unsqueeze(0).expand(logits.shape[0], -1)
    apply_on_device(logits, words, None)
