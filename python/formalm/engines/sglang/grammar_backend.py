"""The backend in SGLang's terms: subclasses of its base classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarStats,
    InvalidGrammarObject,
    register_vocab_mask_buffer,
)

from formalm.bitmask import apply_bitmask
from formalm.constraint import Matcher
from formalm.engines.engine_constraints import EngineConstraints
from formalm.engines.request_languages import RequestKind
from formalm.engines.request_masks import RequestMasks, fill_request_masks
from formalm.errors import ArgumentError, FormalmError

__all__ = ["FormalmGrammar", "FormalmGrammarBackend"]

#: The specification that SGLang passes for any JSON value.
ANY_JSON = "$$ANY$$"

#: Limits of the requests that are remembered, in number and in characters of their specifications.
#: Chosen, not measured.
MOST_KNOWN = 4096
MOST_CHARACTERS = 1 << 26


class FormalmGrammar(RequestMasks, BaseGrammarObject):  # type: ignore[misc]
    """One request: a matcher, which ends at the engine's end tokens.

    SGLang calls it in its scheduling loop. A request that fails there refuses its next token, and
    SGLang aborts it.
    """

    def __init__(self, matcher: Matcher, words: int) -> None:
        BaseGrammarObject.__init__(self)
        RequestMasks.__init__(self, matcher)
        self.words = words
        self.grammar_stats = GrammarStats()

    def accept_token(self, token: int) -> None:
        """Reads a token. Tokens after the end are ignored.

        Raises
        ------
        ValueError
            If the token is not allowed, or the request has failed.
        """
        core = self.matcher.core
        if self.has_failed:
            raise ValueError("the request has failed, see the log")
        if core.is_terminated:
            return
        try:
            core.advance(token)
        except FormalmError as error:
            raise ValueError(str(error)) from error

    def rollback(self, k: int) -> None:
        """Undoes the last steps, an end token among them."""
        self.matcher.rollback(k)

    def is_terminated(self) -> bool:
        """Returns True if an end token was read."""
        return self.matcher.core.is_terminated

    @property
    def finished(self) -> bool:
        """True if an end token was read, or the engine ended the request."""
        return self._finished or self.matcher.core.is_terminated

    @finished.setter
    def finished(self, finished: bool) -> None:
        self._finished = finished

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Returns rows that allow everything."""
        return _new_mask(batch_size, max(self.words, -(-vocab_size // 32)))

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Writes the mask into one row."""
        self.fill(vocab_mask, idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: list[Any], vocab_mask: torch.Tensor) -> None:
        """Writes the masks of a batch in parallel, in one call."""
        if not all(isinstance(entry.grammar, FormalmGrammar) for entry in entries):
            BaseGrammarObject.fill_vocab_mask_batched(entries, vocab_mask)
            return
        requests = [entry.grammar for entry in entries]
        fill_request_masks(requests, vocab_mask, [entry.row for entry in entries])

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Makes all rows allow everything."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """Returns the masks on the device of the logits."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Sets the logits of disallowed tokens to minus infinity."""
        apply_bitmask(logits, vocab_mask)

    def copy(self) -> FormalmGrammar:
        """Returns the request's beginning again, for another request."""
        matcher = self.matcher.fork()
        matcher.reset()
        return FormalmGrammar(matcher, self.words)


class FormalmGrammarBackend(BaseGrammarBackend):  # type: ignore[misc]
    """The constraints of an engine process.

    Constraints are kept by :class:`~formalm.constraint_cache.ConstraintCache` within its memory
    limit, not by SGLang's dictionary, which is unbounded.
    """

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int,
        eos_token_ids: Iterable[int] | None,
        *,
        any_whitespace: bool = True,
        whitespace_pattern: str | None = None,
    ) -> None:
        super().__init__()
        if whitespace_pattern is not None:
            raise ArgumentError(
                "constrained_json_whitespace_pattern is not supported by the grammar backend"
                " formalm",
                hint="use constrained_json_disable_any_whitespace, or leave both out",
            )
        self.constraints = EngineConstraints(tokenizer, vocab_size)
        self._any_whitespace = any_whitespace
        self._ends = list(eos_token_ids or ())
        self._characters = 0

    def initialize_vocab_mask_buffer(
        self, name: str, vocab_size: int, max_rows: int, device: Any
    ) -> torch.Tensor:
        """Registers the buffer that masks are written into."""
        words = max(self.constraints.words, -(-vocab_size // 32))
        return register_vocab_mask_buffer(name, _new_mask(max_rows, words), max_rows)

    def dispatch_json(self, key_string: str) -> Any:
        """Returns the request of a JSON Schema."""
        if key_string == ANY_JSON:
            return self._made("json", "true")
        return self._made("json", key_string)

    def dispatch_regex(self, key_string: str) -> Any:
        """Returns the request of a regular expression."""
        return self._made("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> Any:
        """Returns the request of a grammar in Lark's notation, GBNF or EBNF."""
        return self._made("grammar", key_string)

    def dispatch_structural_tag(self, key_string: str) -> Any:
        """Refuses the request, with the message of our error."""
        return self._made("structural_tag", key_string)

    def _made(self, kind: RequestKind, specification: str) -> Any:
        try:
            matcher = self.constraints.matcher(
                kind,
                specification,
                end_token_ids=self._ends,
                any_whitespace=self._any_whitespace,
            )
        except FormalmError as error:
            return InvalidGrammarObject(str(error))
        return FormalmGrammar(matcher, self.constraints.words)

    def set_cache(self, key: tuple[str, str], value: Any) -> None:
        """Remembers how to make a request again, or why it was refused."""
        kept = _Known(self, key) if isinstance(value, FormalmGrammar) else value
        if key not in self.cache:
            self._characters += len(key[1])
        self.cache[key] = kept
        while self._characters > MOST_CHARACTERS or len(self.cache) > MOST_KNOWN:
            oldest = next(iter(self.cache))
            del self.cache[oldest]
            self._characters -= len(oldest[1])

    def reset(self) -> None:
        """Forgets all requests."""
        super().reset()
        self._characters = 0
        self.constraints.cache.clear()


class _Known(BaseGrammarObject):  # type: ignore[misc]
    """A known request. It does not keep its constraint alive, so that this can be evicted."""

    def __init__(self, backend: FormalmGrammarBackend, key: tuple[str, str]) -> None:
        super().__init__()
        self._backend = backend
        self._key = key

    def copy(self) -> Any:
        """Returns the request at its beginning; compiles it again if it was evicted."""
        return self._backend._init_value_dispatch(self._key, False)


def _new_mask(rows: int, words: int) -> torch.Tensor:
    return torch.full((rows, words), -1, dtype=torch.int32)
