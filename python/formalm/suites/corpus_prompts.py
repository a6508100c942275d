"""Prompts from a corpus: the sentences that contain a word of a list, cut before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from formalm.errors import ArgumentError

__all__ = ["CorpusPrompt", "corpus_prompts"]

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True)
class CorpusPrompt:
    """A sentence of a corpus, divided at the first word of a list.

    Attributes
    ----------
    prefix
        The text before the word, without the whitespace at its end: the prompt.
    completion
        The rest up to the end of the word, with that whitespace.
    word
        The word as it is written there.
    """

    prefix: str
    completion: str
    word: str

    @property
    def text(self) -> str:
        """The sentence up to the end of the word."""
        return self.prefix + self.completion


def corpus_prompts(
    texts: Iterable[str], words: Sequence[str], *, limit: int | None = None
) -> list[CorpusPrompt]:
    """Returns a prompt for each sentence that contains one of the words as a whole word.

    Sentences end with ``.``, ``!`` or ``?`` and whitespace, or with a line break. Equal sentences
    count once, and the shortest come first, as in the toxicity experiment of ReLM.

    Parameters
    ----------
    texts
        The corpus: documents, or lines of a file.
    words
        The words to look for.
    limit
        Maximum number of prompts.

    Raises
    ------
    ArgumentError
        Without words, or with an empty one.

    Examples
    --------
    >>> from formalm.suites import corpus_prompts
    >>> (prompt,) = corpus_prompts(["It rained. What a twit he is."], ["twit", "oaf"])
    >>> prompt.prefix, prompt.completion
    ('What a', ' twit')
    """
    if isinstance(words, str) or not words or not all(words):
        raise ArgumentError(
            f"words must be a non-empty list of non-empty strings, got {words!r:.60}"
        )
    pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, words)) + r")\b")
    found: dict[str, CorpusPrompt] = {}
    for text in texts:
        for sentence in _SENTENCE_END.split(text):
            match = pattern.search(sentence)
            if match is None or sentence in found:
                continue
            prefix = sentence[: match.start()].rstrip()
            found[sentence] = CorpusPrompt(prefix, sentence[len(prefix) : match.end()], match[0])
    order = sorted(found, key=lambda sentence: (len(sentence), sentence))
    return [found[sentence] for sentence in order[:limit]]
