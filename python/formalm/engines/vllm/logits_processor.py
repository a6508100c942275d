"""The logits processor for vLLM: canonical tokens, and records of the allowed mass."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast

import torch
from vllm.exceptions import VLLMValidationError
from vllm.tokenizers import cached_tokenizer_from_config
from vllm.v1.sample.logits_processor.builtin import process_dict_updates
from vllm.v1.sample.logits_processor.interface import BatchUpdate, LogitsProcessor

from formalm.bitmask import apply_bitmask, new_bitmask
from formalm.constraint import Matcher
from formalm.continuations import continuation
from formalm.engines.engine_constraints import STEP_SECONDS, EngineConstraints, end_mask
from formalm.engines.request_languages import RequestKind, request_language
from formalm.errors import ArgumentError, FormalmError

__all__ = ["MASS_FILE", "FormalmLogitsProcessor"]

#: The environment variable with the path of the records.
MASS_FILE = "FORMALM_ALLOWED_MASS_FILE"
KINDS = ("json", "json_object", "regex", "grammar", "choice")

_log = logging.getLogger(__name__)


class _Wanted(NamedTuple):
    """What a request asks of the processor."""

    kind: RequestKind
    specification: str
    tokenization: Literal["all", "canonical"]
    record: str | None


class _Request:
    """A request in the batch: its matcher, and the tokens that the engine appends to."""

    def __init__(self, wanted: _Wanted, matcher: Matcher | None, output: Sequence[int]) -> None:
        self.wanted = wanted
        self.matcher = matcher
        self.output = output


class FormalmLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """Constrains requests as the backend does, and does what a mask of the scheduler cannot.

    Serve with ``--logits-processors formalm.engines.vllm.logits_processor:FormalmLogitsProcessor
    --no-async-scheduling``. A request names its constraint in ``vllm_xargs`` (``extra_args`` of
    ``SamplingParams``) under ``formalm``, an object or its JSON: one of ``json``, ``regex``,
    ``grammar``, ``choice`` or ``json_object``; ``tokenization``, ``"canonical"`` by default; and
    ``record``, a name under which the allowed mass of each step is appended to the file that the
    environment variable ``FORMALM_ALLOWED_MASS_FILE`` names, as JSON Lines.

    An error that shows only in the engine, such as a prompt that no member follows in canonical
    tokens, is logged; the request may then only end.
    """

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        if getattr(vllm_config.scheduler_config, "async_scheduling", False):
            raise ArgumentError(
                "async_scheduling must be False with this processor, which needs the last token",
                hint="serve with --no-async-scheduling",
            )
        model_config = vllm_config.model_config
        tokenizer = cached_tokenizer_from_config(model_config)
        self._constraints = EngineConstraints(tokenizer, model_config.get_vocab_size())
        self._requests: dict[int, _Request] = {}
        self._file = os.environ.get(MASS_FILE)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuses an invalid constraint, which is then the client's error.

        Raises
        ------
        VLLMValidationError
            With our message and hint.
        """
        try:
            wanted = _wanted(sampling_params)
            if wanted is None:
                return
            if getattr(sampling_params, "structured_outputs", None) is not None:
                raise ArgumentError(
                    "structured_outputs must be None with a constraint under formalm",
                    hint="pass one of them",
                )
            if wanted.record is not None and not os.environ.get(MASS_FILE):
                raise ArgumentError(
                    f"record must be None unless the server was started with {MASS_FILE}"
                )
            request_language(wanted.kind, wanted.specification)
        except FormalmError as error:
            raise VLLMValidationError(str(error)) from None

    def is_argmax_invariant(self) -> bool:
        """Returns False: masks change the best token."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follows the requests of the batch."""
        process_dict_updates(self._requests, batch_update, self._new)

    def _new(self, params: Any, prompt: list[int] | None, output: list[int]) -> _Request | None:
        wanted = _wanted(params)
        if wanted is None:
            return None
        try:
            matcher = self._matcher(wanted, params, prompt or [])
        except FormalmError:
            # The request cannot be failed from here, and the engine must go on.
            _log.exception("a request may only end, because its constraint failed")
            matcher = None
        return _Request(wanted, matcher, output)

    def _matcher(self, wanted: _Wanted, params: Any, prompt: list[int]) -> Matcher:
        constraints = self._constraints
        language = request_language(wanted.kind, wanted.specification)
        constraint = constraints.cache.constraint(
            language, width=constraints.width, tokenization=wanted.tokenization
        )
        ends = constraints.end_token_ids(params.all_stop_token_ids)
        if wanted.tokenization == "canonical":
            known = [token for token in prompt if 0 <= token < len(constraints.vocabulary)]
            begun = continuation(constraint, known)
            return begun.constraint.matcher(
                after=begun.token_ids, end_token_ids=ends, timeout_seconds=STEP_SECONDS
            )
        return constraint.matcher(end_token_ids=ends, timeout_seconds=STEP_SECONDS)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Masks the rows of constrained requests in place."""
        rows = [row for row in sorted(self._requests) if row < logits.shape[0]]
        if not rows:
            return logits
        words = new_bitmask(len(rows), self._constraints.width)
        for line, row in enumerate(rows):
            self._fill(self._requests[row], words, line)
        masks = torch.from_numpy(words)
        recorded = [(at, row) for at, row in enumerate(rows) if self._requests[row].wanted.record]
        totals = {row: float(torch.logsumexp(logits[row].float(), -1)) for _, row in recorded}
        apply_bitmask(logits, masks, rows=rows)
        for _, row in recorded:
            allowed = float(torch.logsumexp(logits[row].float(), -1)) - totals[row]
            self._record(self._requests[row], allowed)
        return logits

    def _fill(self, request: _Request, words: Any, line: int) -> None:
        """Writes the mask of a request; only end tokens if it has left its language."""
        try:
            if request.matcher is not None:
                text = list(request.output)
                matcher, read = request.matcher, request.matcher.token_ids
                same = len(read) if text[: len(read)] == list(read) else 0
                matcher.rollback(len(read) - same)
                if matcher.advance_many(text[same:]) == len(text) - same:
                    if not matcher.is_terminated:
                        matcher.fill_bitmask(words, line)
                        return
                else:
                    _log.error("a request has left its language; it may only end")
                    request.matcher = None
        except FormalmError:
            _log.exception("a request may only end, because its mask failed")
            request.matcher = None
        words[line] = end_mask(self._constraints.vocabulary.end_token_ids, words.shape[-1])

    def _record(self, request: _Request, log_allowed_mass: float) -> None:
        if self._file is None:
            return
        finite = log_allowed_mass if math.isfinite(log_allowed_mass) else None
        entry = {
            "record": request.wanted.record,
            "position": len(request.output),
            "log_allowed_mass": finite,
        }
        with open(self._file, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def _wanted(params: Any) -> _Wanted | None:
    """Returns what a request asks for; None if nothing.

    Raises
    ------
    ArgumentError
        If it is not understood.
    """
    given = (getattr(params, "extra_args", None) or {}).get("formalm")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            raise ArgumentError("formalm must be a JSON object") from None
    if given is None:
        return None
    if not isinstance(given, dict):
        raise ArgumentError(f"formalm must be an object, got {type(given).__name__}")
    unknown = sorted(set(given) - {*KINDS, "tokenization", "record"})
    kinds = [kind for kind in KINDS if kind in given]
    if unknown or len(kinds) != 1:
        raise ArgumentError(
            f"formalm must have one of {', '.join(KINDS)}, and may have tokenization and record,"
            f" got {', '.join(map(str, given)) or 'nothing'}"
        )
    (kind,) = kinds
    specification = given[kind]
    if not isinstance(specification, str):
        specification = json.dumps(specification)
    tokenization = given.get("tokenization", "canonical")
    if tokenization not in ("all", "canonical"):
        raise ArgumentError(f"tokenization must be all or canonical, got {tokenization!r:.40}")
    record = given.get("record")
    if record is not None and not isinstance(record, str):
        raise ArgumentError(f"record must be a string, got {type(record).__name__}")
    return _Wanted(cast(RequestKind, kind), specification, tokenization, record)
