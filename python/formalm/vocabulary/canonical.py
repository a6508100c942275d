"""Canonical tokens: what the tokenizer itself makes of a text, and why a sequence is not that."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from formalm import _core
from formalm.errors import VocabularyError
from formalm.vocabulary.encoding import JsonTokenizer
from formalm.vocabulary.non_canonical import NonCanonical, find
from formalm.vocabulary.parts import token_ids as _integers
from formalm.vocabulary.sources import Sources
from formalm.vocabulary.tokenizations import BYTE_LIMIT, Spellings, Tokenizations

__all__ = ["CanonicalTokens", "NonCanonical", "load_encoder"]

# What pre-tokenizers treat in ways of their own, to be strung together at random.
_SCRAPS = [
    *"a b A B é É ſ ß 1 23 4567 ² ⅷ १ ' 's 'S 'LL 're ’ . , ; :: // /* */ - _ ( ) [ ] { }".split(),
    *"\" ` < > | \\ 中 文字 あア ー 한국 Ж Ω ǅ ʰ 😀 ﷺ ！ « — … $ € № the The hello don't".split(),
    *(" ", "  ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x1c", "\x85", " the"),
    *("\u00a0", "\u2028", "\u3000", "\u200b", "\u200d", "\ufeff", "\u093e", "\u0947", "\u0301"),
]


class CanonicalTokens(Sources):
    """What a vocabulary tells of canonical tokens: a part of :class:`formalm.Vocabulary`."""

    __slots__ = ()

    def encoder(self) -> _core.Encoder:
        """The tokenizer taken apart, for canonical tokens; made and checked when first asked for.

        Raises
        ------
        VocabularyError
            If there is no ``tokenizer.json``, or one that we cannot follow exactly.
        """
        if self._encoder is None:
            tokenizer, data = self._parts.tokenizer, self._tokenizer_json
            if tokenizer is None or data is None:
                raise VocabularyError(
                    "canonical tokens need the tokenizer's own file",
                    hint="from_tokenizer_json, from_tokenizer and from_pretrained keep it",
                )
            if self._parts.encoder:
                # It was checked before it was saved.
                self._encoder = _core.Encoder.from_saved(self._parts.encoder, self.core, data)
            else:
                self._encoder = load_encoder(data, self.core, tokenizer.encode)
        return self._encoder

    def saved_encoder(self) -> bytes:
        """What :meth:`encoder` made, as bytes for a later process; empty if it made nothing yet."""
        data = self._tokenizer_json
        if self._encoder is None or data is None:
            return self._parts.encoder
        return self._encoder.save(self.core, data)

    def merges_like(self, other: CanonicalTokens) -> bool:
        """Whether both have the same tokenizer file, so that canonical tokens are the same."""
        return self._tokenizer_json == other._tokenizer_json

    def is_canonical(self, token_ids: Iterable[int]) -> bool:
        """Whether the tokenizer itself writes the tokens' text in these tokens.

        Special tokens separate texts. Where the tokenizer puts a space in front of every text,
        tokens are judged as the continuation of a text: as they spell it, with that space.

        Raises
        ------
        VocabularyError
            As :meth:`encoder`.
        """
        return self.canonical_error(token_ids) is None

    def canonical_error(self, token_ids: Iterable[int]) -> NonCanonical | None:
        """Where and why tokens are not canonical; None if they are. See :meth:`is_canonical`."""
        encoder = self.encoder()
        return find(encoder, self.core, _integers(token_ids))

    def tokenizations(self, text: str | bytes, *, byte_limit: int = BYTE_LIMIT) -> Tokenizations:
        """All token sequences that spell a text: how many, and one after the other.

        Any token with bytes takes part, added tokens that are text and single bytes too; special
        tokens spell nothing. A text that no tokens spell has none; bytes need not be UTF-8.

        Parameters
        ----------
        text
            The text, as tokens spell it: nothing is put in front.
        byte_limit
            Most bytes of text; time and memory grow with their square.

        Raises
        ------
        LimitError
            If the text is longer.

        Examples
        --------
        >>> from formalm.models.canary import canary
        >>> found = canary().vocabulary.tokenizations("the cat")
        >>> len(found), next(iter(found)) == found.canonical
        (12, True)
        """
        if self._spellings is None:
            self._spellings = Spellings(self.core.all_token_bytes())
        return Tokenizations(self, self._spellings, text, byte_limit)

    @property
    def _tokenizer_json(self) -> bytes | None:
        """The ``tokenizer.json`` that encodes, if it is one that does."""
        tokenizer = self._parts.tokenizer
        return tokenizer.data if isinstance(tokenizer, JsonTokenizer) else None


def load_encoder(
    tokenizer_json: bytes, core: _core.Vocabulary, encode: Callable[[str], Sequence[int]]
) -> _core.Encoder:
    """The tokenizer taken apart, after it was checked to tokenize as ``encode`` does.

    Raises
    ------
    VocabularyError
        If it is of a kind that we cannot follow exactly, or one of the checks failed.
    """
    encoder = _core.Encoder(tokenizer_json, core)
    for text in _probes(encoder, core):
        # The space that such a tokenizer puts in front is part of what its tokens spell.
        spelled = " " + text if encoder.prepends_space else text
        expected, found = list(encode(text)), encoder.encode(spelled)
        if expected != found:
            raise VocabularyError(
                f"the tokenizer does not do what its file says: {text!r} becomes {expected},"
                f" we read {found}",
                hint='use tokenization="all" with this vocabulary',
            )
    return encoder


def _probes(encoder: _core.Encoder, core: _core.Vocabulary) -> Iterator[str]:
    """Texts on which tokenizers differ."""
    rng = random.Random(0)
    texts = ["".join(rng.choices(_SCRAPS, k=rng.randrange(1, 12))) for _ in range(400)]
    borders = encoder.borders()
    for start in range(0, len(borders), 50):
        texts.append("".join(f"a{c} {c}1{c}'{c}\n" for c in borders[start : start + 50]))
    ids = [rng.randrange(len(core)) for _ in range(2400)]
    spelled = [core.token_bytes(token_id) or b"" for token_id in ids]
    for start in range(0, len(spelled), 3):
        texts.append(b"".join(spelled[start : start + 3]).decode(errors="ignore"))
    for text in texts:
        marked = encoder.marks_spaces and "\u2581" in text
        if not marked and not (encoder.prepends_space and text[:1] in ("", " ")):
            yield text
