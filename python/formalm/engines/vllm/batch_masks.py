"""The masks of one step of vLLM, for all its requests in one native call.

vLLM's manager asks each request for its masks one by one, and reads draft tokens into it and takes
them back. The native call does the same for the whole batch, without the interpreter lock and on
all threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from vllm.v1.structured_output.utils import strip_speculative_padding

from formalm.engines.request_masks import (
    RequestMasks,
    fill_request_drafts,
    fill_request_masks,
)

__all__ = ["batch_masks"]


def batch_masks(
    manager: Any,
    requests: Mapping[str, Any],
    request_ids: Sequence[str],
    scheduled_drafts: Mapping[str, Sequence[int]],
) -> npt.NDArray[np.int32] | None:
    """Returns the masks of a step: for each request one row, and one after each draft token.

    Rows allow everything while the request reasons, after its end, and after the first padding
    token of a draft.

    Parameters
    ----------
    manager
        vLLM's ``StructuredOutputManager`` with our backend.
    requests
        The engine's requests by their ids.
    request_ids
        The requests of this step that have a constraint, in the order of the rows.
    scheduled_drafts
        The draft tokens of requests that have some, padded with -1.
    """
    if not request_ids:
        return None
    buffer = _buffer(manager)
    matchers: list[RequestMasks | None] = []
    drafts: list[Sequence[int]] = []
    rows: list[int] = []
    free: list[tuple[int, int]] = []
    end = 0
    for request_id in request_ids:
        request = requests[request_id]
        grammar: RequestMasks = request.structured_output_request.grammar
        scheduled = list(scheduled_drafts.get(request_id, ()))
        draft = strip_speculative_padding(scheduled)
        bounds = manager._get_constraint_bounds(request, draft)
        first, end = end, end + len(scheduled) + 1
        last = first + len(draft) + 1
        if bounds.grammar_start > len(draft) or grammar.is_terminated():  # type: ignore[attr-defined]
            free.append((first, end))
            continue
        matchers.append(grammar)
        drafts.append(draft[bounds.grammar_start :])
        rows.append(first + bounds.grammar_start)
        free += [(first, first + bounds.constraint_start), (last, end)]
    if any(drafts):
        fill_request_drafts(matchers, drafts, buffer, rows)
    elif rows:
        fill_request_masks(matchers, buffer, rows)
    for start, stop in free:
        buffer[start:stop] = -1
    return buffer[:end]


def _buffer(manager: Any) -> npt.NDArray[np.int32]:
    """Returns the memory of the masks, allocated for the largest batch as vLLM does."""
    if manager._grammar_bitmask is None:
        config = manager.vllm_config
        rows = config.scheduler_config.max_num_seqs * (1 + config.num_speculative_tokens)
        manager._grammar_bitmask = manager.backend.allocate_token_bitmask(rows)
    words: npt.NDArray[np.int32] = manager._grammar_bitmask.numpy()
    return words
