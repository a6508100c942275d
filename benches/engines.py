"""One face for every engine, each through its fastest way from Python to a bitmask.

A *constraint* is what an engine keeps per pattern, a *cursor* one sequence's position. A *fill*
is a call without arguments that writes the cursor's bitmask into memory allocated before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import metadata
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benches.cases import Vocabulary


class Engine(Protocol):
    """What the benchmark needs of an engine."""

    name: str

    def compile(self, pattern: str) -> Any:
        """Build the constraint of a pattern from its text."""

    def start(self, constraint: Any) -> Any:
        """Return a cursor at the start; what the constraint learned before is kept."""

    def fill(self, cursor: Any) -> Callable[[], object]:
        """Return the call that writes the cursor's mask."""

    def advance(self, cursor: Any, token_id: int) -> bool:
        """Read a token; ``False`` if the engine refuses it."""

    def bits(self) -> npt.NDArray[np.int32]:
        """Return the words the last fill wrote."""

    def memory_bytes(self, constraint: Any) -> int | None:
        """Return the size of the constraint as the engine itself states it."""


class Formalm:
    """The library of this repository, as its documentation uses it."""

    name = "formalm"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import formalm

        self._formalm = formalm
        self._vocabulary = formalm.Vocabulary.from_tokens(
            vocabulary.tokens, end_token_ids=[vocabulary.end_token_id]
        )
        self._out = np.zeros((1, vocabulary.words), dtype=np.int32)

    def compile(self, pattern: str) -> Any:
        return self._formalm.Constraint(self._formalm.Regex(pattern), self._vocabulary)

    def start(self, constraint: Any) -> Any:
        return constraint.matcher()

    def fill(self, cursor: Any) -> Callable[[], object]:
        # The core's call, as the other engines' are. A loop in Python pays nothing more for
        # `cursor.fill_bitmask`, which forwards to it; `partial`, which calls from C, would.
        return partial(cursor.core.fill_bitmask, self._out, 0)

    def advance(self, cursor: Any, token_id: int) -> bool:
        try:
            cursor.advance(token_id)
        except self._formalm.TokenError:
            return False
        return True

    def bits(self) -> npt.NDArray[np.int32]:
        return self._out.reshape(-1)

    def memory_bytes(self, constraint: Any) -> int | None:
        return int(constraint.memory_bytes)


class Llguidance:
    """llguidance with canonical forcing off; the raw-pointer call is its fastest."""

    name = "llguidance"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import llguidance

        self._matcher = llguidance.LLMatcher
        self._tokenizer = llguidance.LLTokenizer(
            vocabulary.json, n_vocab=len(vocabulary.tokens), eos_token=vocabulary.end_token_id
        )
        self._out = np.zeros((1, vocabulary.words), dtype=np.int32)
        self._where = (int(self._out.ctypes.data), int(self._out.nbytes))

    def compile(self, pattern: str) -> Any:
        escaped = pattern.replace("/", r"\/")
        grammar = f'%llguidance {{"no_forcing": true}}\nstart: TEXT\nTEXT: /{escaped}/\n'
        matcher = self._matcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    def start(self, constraint: Any) -> Any:
        # A second matcher would compile again; a reset one keeps the lexer's tables.
        constraint.reset()
        return constraint

    def fill(self, cursor: Any) -> Callable[[], object]:
        return partial(cursor.unsafe_compute_mask_ptr, *self._where)

    def advance(self, cursor: Any, token_id: int) -> bool:
        # A refused token would leave the matcher in its error state for good.
        return cursor.validate_tokens([token_id]) == 1 and bool(cursor.consume_token(token_id))

    def bits(self) -> npt.NDArray[np.int32]:
        return self._out.reshape(-1)

    def memory_bytes(self, constraint: Any) -> int | None:
        return None


class Xgrammar:
    """XGrammar, one thread, its cache of whole grammars off."""

    name = "xgrammar"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import torch
        import xgrammar

        torch.set_num_threads(1)
        self._xgrammar = xgrammar
        self._end_token_id = vocabulary.end_token_id
        info = xgrammar.TokenizerInfo(
            vocabulary.pieces,
            xgrammar.VocabType.BYTE_LEVEL,
            vocab_size=len(vocabulary.tokens),
            stop_token_ids=[vocabulary.end_token_id],
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._out = torch.zeros((1, vocabulary.words), dtype=torch.int32)

    def compile(self, pattern: str) -> Any:
        return self._compiler.compile_regex(pattern)

    def start(self, constraint: Any) -> Any:
        return self._xgrammar.GrammarMatcher(constraint)

    def fill(self, cursor: Any) -> Callable[[], object]:
        return partial(cursor.fill_next_token_bitmask, self._out)

    def advance(self, cursor: Any, token_id: int) -> bool:
        return bool(cursor.accept_token(token_id))

    def bits(self) -> npt.NDArray[np.int32]:
        words: npt.NDArray[np.int32] = self._out.numpy().reshape(-1)
        return words

    def memory_bytes(self, constraint: Any) -> int | None:
        return int(constraint.memory_size_bytes)


class Glrmask:
    """glrmask with the strategy that it chooses by default."""

    name = "glrmask"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import glrmask

        self._glrmask = glrmask
        end = vocabulary.end_token_id
        tokens = enumerate(vocabulary.tokens)
        self._vocabulary = glrmask.Vocab.from_id_to_bytes(
            {at: token for at, token in tokens if token is not None and at != end}
        )
        self._out = np.zeros(vocabulary.words, dtype=np.int32)

    def compile(self, pattern: str) -> Any:
        escaped = pattern.replace("/", r"\/")
        return self._glrmask.Grammar.from_lark(f"start: /{escaped}/").compile(self._vocabulary)

    def start(self, constraint: Any) -> Any:
        return constraint.start()

    def fill(self, cursor: Any) -> Callable[[], object]:
        return partial(cursor.fill_mask, self._out)

    def advance(self, cursor: Any, token_id: int) -> bool:
        return bool(cursor.commit_token(token_id))

    def bits(self) -> npt.NDArray[np.int32]:
        return self._out

    def memory_bytes(self, constraint: Any) -> int | None:
        return None


class OutlinesCore:
    """outlines-core through its raw-pointer bitmask call."""

    name = "outlines-core"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import outlines_core

        self._outlines = outlines_core
        ids: dict[bytes, list[int]] = {}
        for token_id, token in enumerate(vocabulary.tokens):
            if token is not None and token_id != vocabulary.end_token_id:
                ids.setdefault(token, []).append(token_id)
        self._vocabulary = outlines_core.Vocabulary(vocabulary.end_token_id, ids)
        self._out = np.zeros((1, vocabulary.words), dtype=np.int32)
        self._where = (int(self._out.ctypes.data), int(self._out.size), int(self._out.itemsize))

    def compile(self, pattern: str) -> Any:
        return self._outlines.Index(pattern, self._vocabulary)

    def start(self, constraint: Any) -> Any:
        return self._outlines.Guide(constraint)

    def fill(self, cursor: Any) -> Callable[[], object]:
        return partial(cursor.write_mask_into, *self._where)

    def advance(self, cursor: Any, token_id: int) -> bool:
        try:
            cursor.advance(token_id, return_tokens=False)
        except ValueError:
            return False
        return True

    def bits(self) -> npt.NDArray[np.int32]:
        return self._out.reshape(-1)

    def memory_bytes(self, constraint: Any) -> int | None:
        return None


ENGINES: dict[str, Callable[[Vocabulary], Engine]] = {
    "formalm": Formalm,
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
    "outlines-core": OutlinesCore,
}

#: Constraints that are left out unless asked for, with the reason.
TOO_LARGE = {
    ("outlines-core", "dot_0_1000"): "index of 1 to 7 GB, up to minutes to compile",
}


def version(name: str) -> str | None:
    """Return the installed version of an engine, ``None`` where it is missing."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
