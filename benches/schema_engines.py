"""Engines that compile JSON Schemas, for the benchmarks of schemas."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benches.cases import Vocabulary
from benches.engines import Formalm, Glrmask, Llguidance, Xgrammar

#: The separators of items, and of names and values, by layout.
SEPARATORS = {"compact": (",", ":"), "line": (", ", ": ")}


class Idle:
    """No engine: what is timed with it is the measurement itself."""

    def __init__(self) -> None:
        self._out = np.full(1, -1, dtype=np.int32)

    def start(self, constraint: Any) -> Any:
        """Return what stands for a cursor."""
        return constraint

    def fill(self, cursor: Any) -> Any:
        """Return a call that does nothing."""
        return int

    def bits(self) -> npt.NDArray[np.int32]:
        """Return words that allow every token."""
        return self._out

    def advance(self, cursor: Any, token_id: int) -> bool:
        """Read nothing."""
        return True

    def accepts(self, cursor: Any) -> bool:
        """Whether the text is complete: always."""
        return True


class Ours(Formalm):
    """Formalm; members in any order and no blanks, unless told otherwise."""

    def __init__(
        self, vocabulary: Vocabulary, order: str = "any", blanks: int = 0, layout: str = "compact"
    ) -> None:
        super().__init__(vocabulary)
        self._options: dict[str, Any] = {"property_order": order}
        if layout == "compact":
            self._options["max_whitespace"] = blanks
        else:
            self._options["separators"] = SEPARATORS[layout]

    def compile(self, pattern: str) -> Any:
        """Build the constraint of a schema from its text."""
        schema = self._formalm.JsonSchema(pattern, **self._options)
        return self._formalm.Constraint(schema, self._vocabulary)

    def accepts(self, cursor: Any) -> bool:
        """Whether the text is complete."""
        return bool(cursor.is_accepting)


class Theirs(Llguidance):
    """llguidance; no blanks, unless told otherwise."""

    def __init__(self, vocabulary: Vocabulary, blanks: int = 0, layout: str = "compact") -> None:
        super().__init__(vocabulary)
        item, name = SEPARATORS[layout]
        self._options = {
            "whitespace_flexible": blanks > 0,
            "item_separator": item,
            "key_separator": name,
        }

    def compile(self, pattern: str) -> Any:
        """Build the matcher of a schema from its text."""
        grammar = self._matcher.grammar_from_json_schema(pattern, overrides=self._options)
        matcher = self._matcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    def advance(self, cursor: Any, token_id: int) -> bool:
        """Read a token that the mask allows."""
        return bool(cursor.consume_token(token_id))

    def accepts(self, cursor: Any) -> bool:
        """Whether the text is complete."""
        return bool(cursor.is_accepting())


class Xgr(Xgrammar):
    """XGrammar with members beyond the declared ones allowed, as the standard has it."""

    def __init__(self, vocabulary: Vocabulary, blanks: int = 0) -> None:
        super().__init__(vocabulary)
        self._flexible = blanks > 0

    def compile(self, pattern: str) -> Any:
        """Build the compiled grammar of a schema from its text."""
        return self._compiler.compile_json_schema(
            pattern,
            any_whitespace=self._flexible,
            separators=None if self._flexible else (",", ":"),
            strict_mode=False,
        )

    def accepts(self, cursor: Any) -> bool:
        """Whether the text is complete: then the end token is read, or all is over."""
        return bool(cursor.is_terminated() or cursor.accept_token(self._end_token_id))


class Glr(Glrmask):
    """glrmask, which writes members in declared order and one layout: a line with spaces."""

    def compile(self, pattern: str) -> Any:
        """Build the constraint of a schema from its text."""
        return self._glrmask.Grammar.from_json_schema(pattern).compile(self._vocabulary)

    def accepts(self, cursor: Any) -> bool:
        """Whether the text is complete."""
        return bool(cursor.is_accepting())
