"""Masks of an engine's requests, where an error ends its request and never the engine.

Engines fill masks in their scheduling loop, where an exception would end all requests. A request
whose mask fails may only end, and refuses every token; engines then report it as failed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm.bitmask import as_bitmask
from formalm.constraint import Matcher
from formalm.engines.engine_constraints import end_mask
from formalm.errors import FormalmError

__all__ = ["RequestMasks", "fill_request_drafts", "fill_request_masks"]

_log = logging.getLogger(__name__)


class RequestMasks:
    """The matcher of one request, and whether it has failed.

    The classes of the plug-ins inherit from it.
    """

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self.has_failed = False

    def fail(self, error: FormalmError) -> None:
        """Marks the request as failed, and logs the error once."""
        if not self.has_failed:
            _log.error("a request of an engine failed, and may only end: %s", error)
        self.has_failed = True

    def fill(self, out: Any, row: int) -> None:
        """Writes the mask into one row; only end tokens if the request has failed."""
        if not self.has_failed:
            try:
                self.matcher.core.fill_bitmask(out, row)
            except FormalmError as error:
                self.fail(error)
            else:
                return
        words = as_bitmask(out)
        words[row] = end_mask(self.matcher.end_token_ids, words.shape[-1])


def fill_request_masks(
    requests: Sequence[RequestMasks | None], out: Any, rows: Sequence[int]
) -> None:
    """Writes the mask of each request into its row, in parallel. The row of None allows everything.

    Parameters
    ----------
    requests
        Different requests.
    out
        int32 array or CPU tensor ``(rows, ceil(width / 32))``.
    rows
        The row of each request.
    """
    words = as_bitmask(out)
    if not any(one is not None and one.has_failed for one in requests):
        cores = [None if one is None else one.matcher.core for one in requests]
        try:
            _core.fill_bitmasks(cores, words, list(rows))
        except FormalmError:
            pass  # One by one below, so that only the request that failed is affected.
        else:
            return
    for one, row in zip(requests, rows, strict=True):
        if one is None:
            words[row] = -1
        else:
            one.fill(words, row)


def fill_request_drafts(
    requests: Sequence[RequestMasks | None],
    drafts: Sequence[Sequence[int]],
    out: Any,
    rows: Sequence[int],
) -> None:
    """Writes the masks of draft tokens, as :func:`~formalm.fill_draft` does.

    Parameters
    ----------
    requests, out
        As for :func:`fill_request_masks`.
    drafts
        The draft tokens of each request.
    rows
        The first row of each request; it has one more than draft tokens.
    """
    words = as_bitmask(out)
    if not any(one is not None and one.has_failed for one in requests):
        try:
            _fill(requests, drafts, words, rows)
        except FormalmError:
            pass  # As above.
        else:
            return
    for one, draft, row in zip(requests, drafts, rows, strict=True):
        if one is not None and not one.has_failed:
            try:
                _fill([one], [draft], words, [row])
            except FormalmError as error:
                one.fail(error)
            else:
                continue
        if one is not None:
            one.fill(words, row)
        words[row : row + len(draft) + 1] = -1 if one is None else words[row]


def _fill(
    requests: Sequence[RequestMasks | None],
    drafts: Sequence[Sequence[int]],
    words: npt.NDArray[np.int32],
    rows: Sequence[int],
) -> None:
    cores = [None if one is None else one.matcher.core for one in requests]
    _core.fill_drafts(cores, [(list(draft), None) for draft in drafts], words, list(rows))
