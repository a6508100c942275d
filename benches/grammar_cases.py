"""Engines and grammars of the benchmark of grammars' masks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benches.engines import Formalm, Llguidance, Xgrammar
from benches.grammar_documents import json_instances, statements
from benches.python_modules import modules, without_levels

#: Priorities of rules and terminals, which llguidance refuses.
PRIORITY = re.compile(r"(?m)(?<=\w)\.\d+(?=:)")


@dataclass(frozen=True)
class Case:
    """A grammar and documents."""

    #: Lark text for formalm.
    text: str
    documents: list[str]
    #: Lark text for llguidance, if it is another one.
    theirs: str | None = None
    #: What our text needs beside it.
    options: dict[str, Any] = field(default_factory=dict)
    #: Documents that xgrammar reads; along Lark text a mask takes it up to seconds.
    third: int = 1
    #: xgrammar's own grammar of JSON takes the place of the text.
    is_json: bool = False
    #: Highest ratios to llguidance that are asked for.
    mean: float = 1 / 15
    compile: float = 1 / 2


class Ours(Formalm):
    """Formalm, from Lark text; its masks are arrays that are not copied."""

    def fill(self, cursor: Any) -> Callable[[], object]:
        """Return the call that gives the cursor's mask."""
        call: Callable[[], object] = cursor.bitmask
        return call

    def build(self, case: Case) -> Any:
        """Build the constraint of a grammar from its text."""
        grammar = self._formalm.Grammar(case.text, **case.options)
        return self._formalm.Constraint(grammar, self._vocabulary)


class Copied(Ours):
    """The same, its masks copied into an array of the caller's, as those of the others are."""

    def fill(self, cursor: Any) -> Callable[[], object]:
        """Return the call that writes the cursor's mask."""
        return Formalm.fill(self, cursor)


class Idle:
    """An empty call in place of a mask: what a clock tells where nothing is done."""

    def __init__(self, words: int) -> None:
        self._all = np.full((1, words), -1, dtype=np.int32)

    def start(self, constraint: Any) -> Any:
        """Return a matcher of a constraint of ours."""
        return constraint.matcher()

    def fill(self, cursor: Any) -> Callable[[], object]:
        """Return the call: one of C, as the others are, that makes no object."""
        call: Callable[[], object] = self._all.__len__
        return call

    def bits(self) -> npt.NDArray[np.int32]:
        """Return a mask that allows all."""
        return self._all.reshape(-1)


class Theirs(Llguidance):
    """llguidance, from Lark text, without forcing its tokenizer's tokens, its limits raised."""

    def build(self, case: Case) -> Any:
        """Build the constraint of a grammar from its text."""
        from llguidance import LLParserLimits

        limits = LLParserLimits(
            max_items_in_row=10**6,
            initial_lexer_fuel=10**9,
            step_lexer_fuel=10**9,
            step_max_items=10**8,
            max_lexer_states=10**7,
        )
        text = PRIORITY.sub("", case.theirs or case.text)
        text = f'%llguidance {{"no_forcing": true}}\n{text}'
        matcher = self._matcher(self._tokenizer, text, log_level=0, limits=limits)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher


class Third(Xgrammar):
    """xgrammar, from its own JSON grammar or from Lark text."""

    def build(self, case: Case) -> Any:
        """Build the constraint of a grammar from its text."""
        if case.is_json:
            return self._compiler.compile_builtin_json_grammar()
        return self._compiler.compile_lark(PRIORITY.sub("", case.text))


def cases(shared: Path, count: int) -> dict[str, Case]:
    """Return the grammars with documents."""
    from formalm.grammars import JSON, PYTHON

    instances = json_instances(shared / "maskbench" / "dev.jsonl.xz", count)
    sql = (shared / "grammars" / "lark" / "sql.lark").read_text("utf-8")
    return {
        "JSON": Case(JSON.text, instances, third=count, is_json=True),
        "SQL": Case(sql, statements(count * 3 // 5)),
        "Python": Case(
            PYTHON.text,
            modules(count * 3 // 40),
            theirs=without_levels(PYTHON.text),
            options={"languages": PYTHON.languages, "indentation": PYTHON.indentation},
            third=0,
            mean=1 / 12,
            compile=1,
        ),
    }
