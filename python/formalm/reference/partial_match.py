"""The first algorithm of the article "Eliminating hallucinations (fast!)" (Louf, Klett, Simpson,
2023).

Append every token to the text, ask a partial match whether the pattern can still be completed, and
draw from those with which it can. It works with any tokenization and costs a partial match a token.
The partial match is that of the third-party package ``regex`` where it is installed, else ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from formalm.languages import Regex

__all__ = ["allowed_tokens", "generate_text", "partial_matcher"]


def partial_matcher(pattern: str) -> Callable[[str], bool]:
    """Returns True if a text can be completed to one that ``pattern`` matches as a whole."""
    try:
        import regex  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return Regex(pattern).is_viable
    compiled = regex.compile(pattern)
    return lambda text: compiled.fullmatch(text, partial=True) is not None


def allowed_tokens(pattern: str, tokens: Sequence[str], text: str = "") -> set[str]:
    r"""The tokens that may follow ``text``.

    Examples
    --------
    The article's own example:

    >>> sorted(allowed_tokens(r"[0-9]+\.[0-9]+", ["a", ".", ".2", "1"]))
    ['1']
    >>> sorted(allowed_tokens(r"[0-9]+\.[0-9]+", ["a", ".", ".2", "1"], "1"))
    ['.', '.2', '1']
    """
    partial = partial_matcher(pattern)
    return {token for token in tokens if partial(text + token)}


def generate_text(
    pattern: str,
    tokens: Sequence[str],
    logits: npt.NDArray[np.float64],
    steps: int,
    generator: np.random.Generator,
) -> str:
    """The article's loop, for a model whose logits never change.

    Returns
    -------
    str
        After ``steps`` tokens, or when none may follow; not always a member.
    """
    text = ""
    for _ in range(steps):
        allowed = allowed_tokens(pattern, tokens, text)
        if not allowed:
            break
        masked = np.where([token in allowed for token in tokens], logits, -np.inf)
        weights = np.exp(masked - masked.max())
        text += tokens[int(generator.choice(len(tokens), p=weights / weights.sum()))]
    return text
