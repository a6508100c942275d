"""``LlamaCppModel``: a GGUF file run by llama.cpp, with copies of sequences as cheap forks."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Sequence
from hashlib import sha256
from os import PathLike, cpu_count, fspath
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np

from formalm.errors import ArgumentError, ModelError
from formalm.models.local_engines.prefix_model import Floats, PrefixModel
from formalm.models.local_engines.sequence_cache import BatchToken, SequenceCache
from formalm.vocabulary import Vocabulary
from formalm.vocabulary.vocabulary import check_vocabulary

__all__ = ["LlamaCppModel"]

CONTEXT_LENGTH = 8192
"""Default upper bound on the context in tokens: the engine reserves memory for all of it."""
CACHED_TOKENS = 4096
"""Default lower bound on the number of tokens whose keys and values are kept."""
MOST_SEQUENCES = 256
"""Compiled into llama.cpp as ``LLAMA_MAX_SEQ``."""
BATCH_TOKENS = 512
"""Tokens in one call of the engine."""
CACHE_TYPES = {"float32": 0, "float16": 1}
"""The numbers of ``GGML_TYPE_F32`` and ``GGML_TYPE_F16``."""


class LlamaCppModel(PrefixModel):
    """A model of llama.cpp in this process: search, mass, sampling and generation on any GGUF file.

    States fork by ``llama_memory_seq_cp``, which copies no keys and values. The engine keeps the
    last prefixes; one that it has dropped is read again. Batches of any prefixes share calls. One
    thread at a time may use the model.

    Parameters
    ----------
    path
        The GGUF file of a causal model; the first one if it is split.
    vocabulary
        The tokens of the ids; None is :meth:`formalm.Vocabulary.from_gguf`.
    context_length
        Maximum length of a prefix, in tokens; None is that of the model's training, at most 8,192.
    cached_tokens
        Number of tokens whose keys and values are kept, over all prefixes; shared beginnings count
        once. None is the context length, at least 4,096.
    sequences
        Number of prefixes that are kept, at most 256. Half of them are the largest batch.
    cache_dtype
        Precision of keys and values. ``"float16"`` is the engine's default; ``"float32"`` also
        switches flash attention off.
    gpu_layers
        Number of layers on the GPU, if the engine was built for one; -1 is all.
    threads
        Number of threads; None is one per CPU.

    Attributes
    ----------
    bos_token_id
        The token that the file says to put before texts; None if it says so of none.

    Notes
    -----
    The engine logs to the logger ``llama-cpp-python``, from warnings on unless its level is set.

    Raises
    ------
    ArgumentError
        For an option out of range, or a path without a file.
    ModelError
        If llama-cpp-python is missing, or llama.cpp cannot load the model, or the model is not
        causal.
    VocabularyError
        If the bytes of the tokens cannot be read from the file.
    """

    libraries = ("llama-cpp-python",)

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        vocabulary: Vocabulary | None = None,
        context_length: int | None = None,
        cached_tokens: int | None = None,
        sequences: int = 64,
        cache_dtype: Literal["float16", "float32"] = "float16",
        gpu_layers: int = 0,
        threads: int | None = None,
    ) -> None:
        self._path = Path(fspath(path))
        if not self._path.is_file():
            raise ArgumentError(f"path must be a GGUF file, got {str(self._path)!r}")
        if cache_dtype not in CACHE_TYPES:
            raise ArgumentError(f"cache_dtype must be float16 or float32, got {cache_dtype!r}")
        if type(sequences) is not int or not 2 <= sequences <= MOST_SEQUENCES:
            raise ArgumentError(
                f"sequences must be an integer from 2 to {MOST_SEQUENCES}, got {sequences!r}"
            )
        given = {"context_length": context_length, "cached_tokens": cached_tokens}
        for name, value in (given | {"threads": threads}).items():
            if value is not None and (type(value) is not int or value < 1):
                raise ArgumentError(f"{name} must be a positive integer or None, got {value!r}")
        if vocabulary is not None:
            check_vocabulary(vocabulary)
        self.cache_dtype = cache_dtype
        self._engine = _LlamaSequences(
            self._path,
            context_length,
            cached_tokens,
            sequences,
            cache_dtype,
            gpu_layers,
            threads or cpu_count() or 1,
        )
        engine = self._engine
        super().__init__(
            Vocabulary.from_gguf(self._path) if vocabulary is None else vocabulary,
            width=engine.width,
            bos_token_id=engine.bos_token_id if engine.adds_bos else None,
            empty_prompt_token_id=engine.bos_token_id,
            context_length=engine.context_length,
        )
        self._cache = SequenceCache(engine)

    def __repr__(self) -> str:
        return f"<LlamaCppModel {self._path.name}, {self.width:,} logits>"

    def __reduce__(self) -> NoReturn:
        raise ModelError(
            "a model of llama.cpp cannot be pickled or copied",
            hint="pass the path to the other process and create the model there",
        )

    def weights_fingerprint(self) -> str:
        """Returns a hex digest of the file and of the precision of keys and values.

        The whole file is read, which takes some seconds for each ten gigabytes.
        """
        digest = sha256(self.cache_dtype.encode())
        with self._path.open("rb") as file:
            while part := file.read(1 << 22):
                digest.update(part)
        return digest.hexdigest()

    def close(self) -> None:
        """Frees the engine's memory; the model cannot be used afterwards."""
        self._engine.close()

    def _rows(self, prefixes: Sequence[tuple[int, ...]]) -> list[Floats]:
        return self._cache.rows(prefixes)


class _LlamaSequences:
    """A context of llama.cpp, as :class:`SequenceCache` uses it."""

    def __init__(
        self,
        path: Path,
        context_length: int | None,
        cached_tokens: int | None,
        sequences: int,
        cache_dtype: str,
        gpu_layers: int,
        threads: int,
    ) -> None:
        try:
            from llama_cpp import llama_cpp as library
        except ImportError:
            raise ModelError(
                "models of llama.cpp require the package llama-cpp-python",
                hint="pip install llama-cpp-python",
            ) from None
        log = logging.getLogger("llama-cpp-python")
        if log.level == logging.NOTSET:
            # The engine describes every tensor otherwise.
            log.setLevel(logging.WARNING)
        library.llama_backend_init()
        options = library.llama_model_default_params()
        options.n_gpu_layers = gpu_layers
        model = library.llama_model_load_from_file(str(path).encode(), options)
        if not model:
            raise ModelError(f"llama.cpp cannot load {str(path)!r}; its log says why")
        self._finalizers = [weakref.finalize(self, library.llama_model_free, model)]
        if library.llama_model_has_encoder(model) or library.llama_model_is_diffusion(model):
            raise ModelError("the model must be causal, got one with an encoder or of diffusion")
        vocabulary = library.llama_model_get_vocab(model)
        trained = int(library.llama_model_n_ctx_train(model))
        self.context_length = min(context_length or CONTEXT_LENGTH, trained)
        self.width = int(library.llama_vocab_n_tokens(vocabulary))
        bos = int(library.llama_vocab_bos(vocabulary))
        self.bos_token_id = bos if 0 <= bos < self.width else None
        self.adds_bos = bool(library.llama_vocab_get_add_bos(vocabulary))
        self.sequences = sequences
        self.batch_tokens = BATCH_TOKENS
        self.can_copy_parts = not (
            library.llama_model_is_recurrent(model) or library.llama_model_is_hybrid(model)
        )
        self._library = library
        cells = max(self.context_length, cached_tokens or CACHED_TOKENS)
        self._context = self._new_context(model, cells, cache_dtype, threads)
        self._memory = library.llama_get_memory(self._context)
        self._batch = library.llama_batch_init(BATCH_TOKENS, 0, 1)
        # Freed in this order: the context before its model.
        self._finalizers.insert(0, weakref.finalize(self, library.llama_free, self._context))
        self._finalizers.insert(0, weakref.finalize(self, library.llama_batch_free, self._batch))

    def _new_context(self, model: Any, cells: int, cache_dtype: str, threads: int) -> Any:
        """Returns a context whose sequences share cells."""
        settings = self._library.llama_context_default_params()
        settings.n_ctx = cells
        settings.n_seq_max = self.sequences
        settings.n_batch = settings.n_ubatch = self.batch_tokens
        settings.kv_unified = True
        settings.n_threads = settings.n_threads_batch = threads
        settings.type_k = settings.type_v = CACHE_TYPES[cache_dtype]
        if cache_dtype == "float32":
            settings.flash_attn_type = self._library.LLAMA_FLASH_ATTN_TYPE_DISABLED
        context = self._library.llama_init_from_model(model, settings)
        if not context:
            raise ModelError("llama.cpp cannot create a context; its log says why")
        return context

    def close(self) -> None:
        for finalizer in self._finalizers:
            finalizer()
        self._context = None

    def copy(self, source: int, target: int, length: int) -> None:
        end = length if self.can_copy_parts else -1
        self._library.llama_memory_seq_cp(self._memory, source, target, 0, end)

    def drop(self, sequence: int) -> None:
        self._library.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def decode(self, tokens: Sequence[BatchToken]) -> list[Floats] | None:
        if self._context is None:
            raise ModelError("the model must not be used after close()")
        batch = self._batch
        batch.n_tokens = len(tokens)
        for at, one in enumerate(tokens):
            batch.token[at] = one.token_id
            batch.pos[at] = one.position
            batch.n_seq_id[at] = 1
            batch.seq_id[at][0] = one.sequence
            batch.logits[at] = one.is_last
        code = self._library.llama_decode(self._context, batch)
        if code == 1:
            return None
        if code:
            raise ModelError(f"llama.cpp failed to read {len(tokens)} tokens, with code {code}")
        rows = []
        for at, one in enumerate(tokens):
            if one.is_last:
                pointer = self._library.llama_get_logits_ith(self._context, at)
                rows.append(np.ctypeslib.as_array(pointer, (self.width,)).copy())
        return rows
