"""The registration of the backend in SGLang's own registry of grammar backends."""

from __future__ import annotations

import logging
from typing import Any

from formalm.engines.engine_constraints import BACKEND_NAME
from formalm.errors import ArgumentError

__all__ = ["plugin", "register"]

#: The versions of SGLang, as major and minor number, whose classes the tests ran with.
KNOWN_VERSIONS = ((0, 5),)

_log = logging.getLogger(__name__)


def plugin() -> None:
    """Registers the backend when SGLang loads its plug-ins.

    If this version of SGLang is not supported, it logs a warning and leaves SGLang as it is.
    """
    try:
        register()
    except ArgumentError as error:
        _log.warning("the grammar backend 'formalm' is not available: %s", error)


def register() -> None:
    """Makes the grammar backend ``formalm`` known to SGLang. Later calls do nothing.

    Raises
    ------
    ArgumentError
        If SGLang is not installed, or has another version than those supported.
    """
    try:
        import sglang
        from sglang.srt.arg_groups.choices import (
            GRAMMAR_BACKEND_CHOICES,
            add_grammar_backend_choices,
        )
        from sglang.srt.constrained.base_grammar_backend import (
            GRAMMAR_BACKEND_REGISTRY,
            register_grammar_backend,
        )
    except ImportError as error:
        raise ArgumentError(
            f"the backend requires the package sglang: {error}", hint="pip install sglang"
        ) from None
    if BACKEND_NAME in GRAMMAR_BACKEND_REGISTRY:
        return
    version = str(sglang.__version__)
    parts = tuple(int(part) if part.isdigit() else -1 for part in version.split(".")[:2])
    if parts not in KNOWN_VERSIONS:
        supported = ", ".join(f"{major}.{minor}" for major, minor in KNOWN_VERSIONS)
        raise ArgumentError(
            f"sglang must be of version {supported}, got {version}",
            hint=f"install sglang {supported}, or a version of formalm that supports it",
        )
    register_grammar_backend(BACKEND_NAME, _created)
    if BACKEND_NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([BACKEND_NAME])


def _created(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> Any:
    """Returns the backend of an engine; with a reasoning parser, it begins after the reasoning.

    SGLang wraps its own backends like this, but not registered ones.
    """
    from sglang.srt.runtime_context import get_serving

    from formalm.engines.sglang.grammar_backend import FormalmGrammarBackend

    serving = get_serving()
    backend = FormalmGrammarBackend(
        tokenizer,
        vocab_size,
        eos_token_ids,
        any_whitespace=not serving.constrained_json_disable_any_whitespace,
        whitespace_pattern=serving.constrained_json_whitespace_pattern,
    )
    if not serving.reasoning_parser:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(
        model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer
    )
    return ReasonerGrammarBackend(
        backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking
    )
