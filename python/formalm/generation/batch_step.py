"""One step of a batch of sampled sequences: masks, draws and matchers in one native call."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from formalm import _core
from formalm.generation.sequence import GeneratedSequence, PromptPlan
from formalm.models import LogitRow
from formalm.query.decoding_rules import Decoding

__all__ = ["StepRow", "draw_tokens"]


class StepRow(NamedTuple):
    """A sequence whose next token is drawn, and the uniform number of the draw."""

    sequence: GeneratedSequence
    uniform: float


def draw_tokens(rows: Sequence[StepRow], decoding: Decoding) -> None:
    """Draws and appends the next token of each sequence; one without a token with probability
    ends.

    All sequences belong to one model and have the same rules.

    Raises
    ------
    ModelError
        If a row is no distribution; no sequence has changed then.
    """
    by_kind: dict[bool, list[StepRow]] = {}
    for row in rows:
        position = row.sequence.position
        assert position is not None
        by_kind.setdefault(position.row.is_normalized, []).append(row)
    for part in by_kind.values():
        _draw_alike(part, decoding)


def _draw_alike(rows: Sequence[StepRow], decoding: Decoding) -> None:
    """Draws from rows that are all logits, or all log-probabilities."""
    logits: list[LogitRow] = []
    matchers: list[_core.Matcher | None] = []
    byte_matchers: list[_core.Matcher | None] = []
    masks: list[Any] = []
    for sequence, _ in rows:
        assert sequence.position is not None
        logits.append(sequence.position.row)
        matchers.append(None if sequence.matcher is None else sequence.matcher.core)
        byte = sequence.byte_matcher
        byte_matchers.append(None if byte is None else byte.core)
        masks.append(sequence.words() if sequence.has_own_mask else None)
    plan = rows[0].sequence.plan
    rules = (decoding.temperature, decoding.top_k, decoding.top_p, decoding.min_p)
    uniforms = [row.uniform for row in rows]
    if all(row.device is not None for row in logits):
        found = _device_step(logits, plan, matchers, byte_matchers, masks, rules, uniforms)
    else:
        found = _core.generation_step(
            [row.values for row in logits],
            logits[0].is_normalized,
            len(plan.vocabulary),
            matchers,
            byte_matchers if any(byte_matchers) else None,
            masks if any(mask is not None for mask in masks) else None,
            plan.end_token_ids,
            rules,
            uniforms,
        )
    for logit_row, result in zip(logits, found, strict=True):
        logit_row.accept(result[2], result[5])
    for (sequence, _), logit_row, result in zip(rows, logits, found, strict=True):
        token_id, value, log_sum, log_allowed, log_bytes, _, is_finished = result
        if token_id < 0:
            sequence.reason = "dead_end"
            continue
        offset = 0.0 if logit_row.is_normalized else log_sum
        sequence.record_token(
            token_id,
            value - offset,
            min(0.0, log_allowed - offset),
            log_bytes if math.isnan(log_bytes) else min(0.0, log_bytes - offset),
            is_finished=is_finished,
        )


def _device_step(
    logits: list[LogitRow],
    plan: PromptPlan,
    matchers: list[_core.Matcher | None],
    byte_matchers: list[_core.Matcher | None],
    masks: list[Any],
    rules: tuple[float, int | None, float | None, float | None],
    uniforms: list[float],
) -> list[tuple[int, float, float, float, float, int, bool]]:
    """Takes a step over rows on a device; as ``_core.generation_step``."""
    from formalm.models.transformers.device_rows import device_step

    places = [row.device for row in logits if row.device is not None]
    batch = places[0][0]
    if all(place[0] is batch for place in places):
        indices = [place[1] for place in places]
        whole = indices == list(range(len(batch.tensor)))
        tensor = batch.tensor if whole else batch.tensor[indices]
    else:
        tensor = _stacked([place[0].tensor[place[1]] for place in places])
    found = device_step(
        tensor,
        logits[0].is_normalized,
        len(plan.vocabulary),
        [
            mask if mask is not None or matcher is None else matcher.bitmask()
            for mask, matcher in zip(masks, matchers, strict=True)
        ],
        [None if one is None else one.bitmask() for one in byte_matchers]
        if any(byte_matchers)
        else None,
        rules,
        uniforms,
    )
    results = []
    is_sound = all(result[5] == 0 for result in found)
    for result, matcher, byte in zip(found, matchers, byte_matchers, strict=True):
        is_finished = False
        if is_sound and result[0] >= 0 and result[0] not in plan.end_token_ids:
            if byte is not None:
                byte.advance(result[0])
            if matcher is not None:
                matcher.advance(result[0])
                is_finished = matcher.is_finished
        results.append((*result, is_finished))
    return results


def _stacked(rows: list[Any]) -> Any:
    """Returns rows of several batches as one tensor."""
    return sys.modules["torch"].stack(rows)
