"""``TableModel``: a language model given as a table of exact probabilities, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from formalm.errors import ArgumentError, ModelError
from formalm.models.model_protocols import LogProbs, check_model_arguments
from formalm.vocabulary import Vocabulary

__all__ = ["TableModel"]

if TYPE_CHECKING:
    Distribution = Sequence[float] | npt.NDArray[np.float64] | Mapping[int, float]
    Table = Mapping[tuple[int, ...], Distribution] | Callable[[tuple[int, ...]], Distribution]


class TableModel:
    """A language model whose probabilities are written down explicitly.

    Parameters
    ----------
    vocabulary
        The vocabulary of the token ids.
    table
        Maps a context to the distribution after it: a mapping, or a deterministic function. A
        context is a tuple of token ids. A distribution is a probability for every token, or a
        mapping from token id to probability, where missing tokens have 0. It must sum to 1.
    order
        Number of tokens in a context; None is the whole prefix. ``order=1`` is a bigram table.
    default
        The distribution after a context that the table lacks; None makes it a ModelError.
    bos_token_id, context_length
        As in :class:`~formalm.models.LanguageModel`.

    Raises
    ------
    ArgumentError
        For a wrong type, a token id outside the vocabulary, or a length below 1.

    Examples
    --------
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> model = TableModel(vocabulary, {(): [0.9, 0.1, 0]}, default={0: 0.5, 2: 0.5})
    >>> np.exp(model.next_logprobs([(), (0,)])).round(3).tolist()
    [[0.9, 0.1, 0.0], [0.5, 0.0, 0.5]]
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        table: Table,
        *,
        order: int | None = None,
        default: Distribution | None = None,
        bos_token_id: int | None = None,
        context_length: int | None = None,
    ) -> None:
        check_model_arguments(vocabulary, bos_token_id, context_length)
        if order is not None and (type(order) is not int or order < 0):
            raise ArgumentError(f"order must be a non-negative integer or None, got {order!r}")
        if not isinstance(table, Mapping) and not callable(table):
            raise ArgumentError(
                f"table must be a mapping or a function, got {type(table).__name__}"
            )
        self.vocabulary = vocabulary
        self.order = order
        self.bos_token_id = bos_token_id
        self.context_length = context_length
        self._table = table
        self._default = None if default is None else self._row("default", default)
        self._rows: dict[tuple[int, ...], npt.NDArray[np.float64]] = {}

    @classmethod
    def random(
        cls, vocabulary: Vocabulary, *, seed: int, order: int = 1, concentration: float = 1.0
    ) -> TableModel:
        """Returns a table of Dirichlet draws, one for each context, determined by ``seed``.

        Parameters
        ----------
        seed
            An integer of at least 0.
        order
            As above.
        concentration
            Below 1 the distributions are spiky, above 1 flat; a finite number above 0.

        Raises
        ------
        ArgumentError
            For a value out of range.
        """
        if type(seed) is not int or seed < 0:
            raise ArgumentError(f"seed must be a non-negative integer, got {seed!r}")
        number = isinstance(concentration, Real) and not isinstance(concentration, bool)
        if not number or not 0 < concentration < float("inf"):
            raise ArgumentError(f"concentration must be above 0 and finite, got {concentration!r}")
        check_model_arguments(vocabulary, None, None)

        def row(context: tuple[int, ...]) -> npt.NDArray[np.float64]:
            generator = np.random.default_rng([seed, len(context), *context])
            # Mixed with a small uniform part: small concentrations underflow to zero.
            draw = generator.dirichlet(np.full(len(vocabulary), concentration))
            mixed: npt.NDArray[np.float64] = 0.999 * draw + 0.001 / len(vocabulary)
            return mixed

        return cls(vocabulary, row, order=order)

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> LogProbs:
        """See :meth:`formalm.models.LanguageModel.next_logprobs`."""
        return np.stack([self._logprobs(tuple(prefix)) for prefix in prefixes])

    def weights_fingerprint(self) -> str | None:
        """Returns a hex digest of the table; None if it is a function, which cannot be compared."""
        if not isinstance(self._table, Mapping):
            return None
        digest = sha256(repr(self.order).encode())
        for context in sorted(self._table):
            row = self._row(f"the distribution after {context}", self._table[context])
            digest.update(repr(context).encode() + row.tobytes())
        if self._default is not None:
            digest.update(b"default" + self._default.tobytes())
        return digest.hexdigest()

    def _logprobs(self, prefix: tuple[int, ...]) -> npt.NDArray[np.float64]:
        context = prefix if self.order is None else prefix[max(0, len(prefix) - self.order) :]
        row = self._rows.get(context)
        if row is None:
            if not isinstance(self._table, Mapping):
                row = self._row(f"the distribution after {context}", self._table(context))
            elif context in self._table:
                row = self._row(f"the distribution after {context}", self._table[context])
            elif self._default is not None:
                row = self._default
            else:
                raise ModelError(f"the table must have a distribution after {context}")
            self._rows[context] = row
        return row

    def _row(self, name: str, given: Distribution) -> npt.NDArray[np.float64]:
        size = len(self.vocabulary)
        if isinstance(given, Mapping):
            probabilities = np.zeros(size)
            for token_id, probability in given.items():
                if not 0 <= token_id < size:
                    raise ModelError(
                        f"token ids must be below the size of the vocabulary ({size}), got"
                        f" {token_id}"
                    )
                probabilities[token_id] = probability
        else:
            try:
                probabilities = np.asarray(given, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise ModelError(f"{name} must contain numbers: {error}") from None
        if probabilities.ndim != 1 or len(probabilities) < size:
            raise ModelError(
                f"{name} must have one probability for each of the {size} tokens, got shape"
                f" {probabilities.shape}"
            )
        if not (np.all(probabilities >= 0) and abs(probabilities.sum() - 1) < 1e-6):
            raise ModelError(
                f"{name} must consist of probabilities that sum to 1, got the sum"
                f" {probabilities.sum():.6g}"
            )
        with np.errstate(divide="ignore"):
            logprobs: npt.NDArray[np.float64] = np.log(probabilities)
        return logprobs
