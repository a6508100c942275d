"""``MlxModel``: a model of MLX LM, with its keys and values as immutable arrays."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NoReturn

import numpy as np

from formalm.errors import ArgumentError, ModelError
from formalm.models.local_engines.prefix_model import Floats, PrefixModel, PrefixState
from formalm.models.model_protocols import check_batch_size, check_runs
from formalm.vocabulary import Vocabulary

__all__ = ["MlxModel"]

BATCH_SIZE = 32


class MlxModel(PrefixModel):
    """A causal model of MLX LM: search, mass, sampling and generation.

    States continue from keys and values, which are arrays that nothing changes. States of equal
    length share a forward pass. Models with other caches than plain keys and values (windows,
    recurrent layers, quantized caches) are evaluated from the start of each prefix.

    Parameters
    ----------
    model
        The model, as ``mlx_lm.load`` or ``mlx_lm.utils.load_model`` returns it.
    vocabulary
        The tokens of the ids, such as :meth:`formalm.Vocabulary.from_pretrained` reads.
    bos_token_id
        The token before a text, if the tokenizer puts one there.
    empty_prompt_token_id
        The token in place of an empty prompt.
    context_length
        Maximum length of a prefix, in tokens; None if nothing bounds it. MLX LM does not say.
    batch_size
        Maximum number of prefixes in one forward pass.

    Attributes
    ----------
    is_cached
        True if states continue from keys and values.

    Raises
    ------
    ArgumentError
        For an option out of range, or an object that is no model.
    ModelError
        If MLX LM is missing, or the model has fewer logits than tokens.
    """

    libraries = ("mlx", "mlx-lm")

    def __init__(
        self,
        model: Any,
        vocabulary: Vocabulary,
        *,
        bos_token_id: int | None = None,
        empty_prompt_token_id: int | None = None,
        context_length: int | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        check_batch_size(batch_size)
        if not callable(model) or not hasattr(model, "layers"):
            raise ArgumentError(f"model must be a model of MLX LM, got {type(model).__name__}")
        try:
            import mlx.core as mx
            from mlx_lm.models import cache
        except ImportError:
            raise ModelError(
                "models of MLX require the package mlx-lm", hint="pip install mlx-lm"
            ) from None
        self.model = model
        self._mx, self._caches = mx, cache
        fresh = cache.make_prompt_cache(model)
        self._layers = len(fresh)
        self.is_cached = all(type(one) is cache.KVCache for one in fresh)
        self.batch_size = batch_size
        width = int(model(mx.array([[0]])).shape[-1])
        super().__init__(
            vocabulary,
            width=width,
            bos_token_id=bos_token_id,
            empty_prompt_token_id=empty_prompt_token_id,
            context_length=context_length,
        )

    def __repr__(self) -> str:
        return f"<MlxModel {type(self.model).__name__}, {self.width:,} logits>"

    def __reduce__(self) -> NoReturn:
        raise ModelError(
            "a model of MLX cannot be pickled or copied",
            hint="pass the folder to the other process and load the model there",
        )

    def weights_fingerprint(self) -> str:
        """Returns a hex digest of the current parameters, their names and types.

        All of them are read, which takes some seconds for each ten gigabytes.
        """
        from mlx.utils import tree_flatten

        digest = sha256(type(self.model).__name__.encode())
        for name, array in sorted(tree_flatten(self.model.parameters())):
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.array(array.reshape(-1).view(self._mx.uint8)).tobytes())
        return digest.hexdigest()

    def start(self, prefix: Sequence[int]) -> PrefixState:
        """Reads a prefix; errors as :meth:`next_logits`."""
        ids = self._checked(prefix)
        if not self.is_cached:
            return PrefixState(ids, self._rows([ids])[0])
        caches = [self._caches.KVCache() for _ in range(self._layers)]
        return self._read(caches, [()], [ids])[0]

    def extend_many(
        self, states: Sequence[PrefixState], runs: Sequence[Sequence[int]]
    ) -> list[PrefixState]:
        """Reads one or more tokens after each state; ``states`` stay valid.

        States of equal length that read equally many tokens share forward passes.
        """
        if not self.is_cached:
            return super().extend_many(states, runs)
        check_runs(states, runs)
        groups: dict[tuple[int, int], list[int]] = {}
        for place, (state, run) in enumerate(zip(states, runs, strict=True)):
            self._checked((*state.token_ids, *run))
            groups.setdefault((state.length, len(run)), []).append(place)
        found: dict[int, PrefixState] = {}
        for places in groups.values():
            for start in range(0, len(places), self.batch_size):
                batch = places[start : start + self.batch_size]
                caches = self._joined([states[place].kept for place in batch])
                before = [states[place].token_ids for place in batch]
                added = [tuple(map(int, runs[place])) for place in batch]
                found |= zip(batch, self._read(caches, before, added), strict=True)
        return [found[place] for place in range(len(states))]

    def _joined(self, kept: Sequence[Any]) -> list[Any]:
        """Returns caches with the keys and values of states of one length, one row for each."""
        caches = []
        for layer in range(self._layers):
            cache = self._caches.KVCache()
            pairs = [one[layer] for one in kept]
            # Concatenation makes new arrays: what the cache then writes is not in the states.
            cache.keys = self._mx.concatenate([keys for keys, _ in pairs], axis=0)
            cache.values = self._mx.concatenate([values for _, values in pairs], axis=0)
            cache.offset = cache.keys.shape[2]
            caches.append(cache)
        return caches

    def _read(
        self,
        caches: list[Any],
        before: Sequence[tuple[int, ...]],
        added: Sequence[tuple[int, ...]],
    ) -> list[PrefixState]:
        """Reads tokens after the rows of caches, which grow by them."""
        mx = self._mx
        logits = self.model(mx.array(added), cache=caches)[:, -1].astype(mx.float32)
        length = len(before[0]) + len(added[0])
        kept = [
            [
                # Copies, so that a state keeps neither the other rows nor room to grow.
                (mx.contiguous(one.keys[row : row + 1, :, :length]),
                 mx.contiguous(one.values[row : row + 1, :, :length]))
                for one in caches
            ]
            for row in range(len(added))
        ]  # fmt: skip
        mx.eval(logits, kept)
        rows = np.array(logits)
        return [
            PrefixState(
                (*first, *run),
                row.copy(),
                layers,
                sum(keys.nbytes + values.nbytes for keys, values in layers),
            )
            for first, run, row, layers in zip(before, added, rows, kept, strict=True)
        ]

    def _rows(self, prefixes: Sequence[tuple[int, ...]]) -> list[Floats]:
        """Evaluates prefixes from their starts, padded on the right, which nothing before sees."""
        mx = self._mx
        rows: list[Floats] = []
        for start in range(0, len(prefixes), self.batch_size):
            batch = prefixes[start : start + self.batch_size]
            most = max(map(len, batch))
            ids = mx.array([[*prefix, *[0] * (most - len(prefix))] for prefix in batch])
            last = mx.array([len(prefix) - 1 for prefix in batch])
            logits = self.model(ids)[mx.arange(len(batch)), last].astype(mx.float32)
            rows += [row.copy() for row in np.array(logits)]
        return rows
