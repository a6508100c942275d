"""Canonical tokenization: the analyzed tokenizer, checks of sequences, and all spellings."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

from formalm import _core
from formalm.errors import VocabularyError
from formalm.vocabulary.loaded_vocabulary import token_ids as _integers
from formalm.vocabulary.non_canonical import NonCanonical, find
from formalm.vocabulary.tokenizations import BYTE_LIMIT, Spellings, Tokenizations
from formalm.vocabulary.tokenizer_libraries import Tokenizer, library_answers
from formalm.vocabulary.vocabulary_sources import Sources

__all__ = ["CanonicalTokens", "LeadingSpace", "NonCanonical", "load_encoder"]


def _read_tokenizer_json(data: bytes, core: _core.Vocabulary) -> _core.Encoder:
    return _core.Encoder(data, core, library_answers(data))


# The analyzer for each kind of description.
_READERS: dict[str, Callable[[bytes, _core.Vocabulary], _core.Encoder]] = {
    "tokenizer.json": _read_tokenizer_json,
    "tiktoken": _core.Encoder.from_tiktoken,
    "sentencepiece": _core.Encoder.from_sentencepiece,
}

# Strings that pre-tokenizers treat differently, to be concatenated at random.
_SCRAPS = [
    *"a b A B é É ſ ß 1 23 4567 ² ⅷ १ ' 's 'S 'LL 're ’ . , ; :: // /* */ - _ ( ) [ ] { }".split(),
    *"\" ` < > | \\ 中 文字 あア ー 한국 Ж Ω ǅ ʰ 😀 ﷺ ！ « — … $ € № the The hello don't".split(),
    *(" ", "  ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x1c", "\x85", " the"),
    *("\u00a0", "\u2028", "\u3000", "\u200b", "\u200d", "\ufeff", "\u093e", "\u0947", "\u0301"),
]

# Repeated strings, which have many segmentations of equal score.
_RUNS = ("*", "#", ".", "-", "=", "ab", "aab", "é", "中", "the", "1")


# Characters at the borders of classes that are compared. Chosen, not measured; a pre-tokenizer that
# splits between bytes has 200,000, in a regular pattern.
MOST_BORDERS = 10_000

# Head of the saved data of a tokenizer whose tables are made from its file. The data says that it
# was checked, and what its library answered about the version of Unicode. Merge rules take longer
# to analyze and have tables of their own.
_CHECKED_HEAD = b"formalm checked tokenizer\n"
_CHECKED_FORMAT = 1

MOST_CHECKED = 256
"""Tokenizers that are remembered as checked, some hundred bytes each."""

# Kind and digest of a description, and fingerprint of the vocabulary that it was checked with.
_checked: set[tuple[str, bytes, str]] = set()


class LeadingSpace(NamedTuple):
    """The rule by which a tokenizer inserts a space before a text."""

    first_only: bool
    """Only before the first text, not after special tokens inside it."""
    unless_there: bool
    """Not if the text begins with a space; that space is lost and has no canonical tokens."""
    before_added: bool = False
    """Also before an added token at the beginning of a text."""


class CanonicalTokens(Sources):
    """The methods of :class:`formalm.Vocabulary` about canonical tokens."""

    __slots__ = ()

    def encoder(self) -> _core.Encoder:
        """Returns the analyzed tokenizer for canonical tokens, built and verified on first use.

        Raises
        ------
        VocabularyError
            If there is no tokenizer, or it is not supported exactly.
        """
        if self._encoder is None:
            tokenizer = self._parts.tokenizer
            if tokenizer is None or tokenizer.kind not in _READERS:
                reason = "the vocabulary encodes with a Python function"
                raise VocabularyError(
                    "canonical tokens require the tokenizer's own file, but "
                    + (self._parts.cannot_encode if tokenizer is None else reason),
                    hint="make the vocabulary by Vocabulary.from_pretrained, from_tokenizer or"
                    " from_tokenizer_json",
                )
            if self._parts.encoder:
                # It was checked before it was saved.
                self._encoder = _read_saved(self._parts.encoder, tokenizer, self.core)
            else:
                self._encoder = load_encoder(tokenizer, self.core)
        return self._encoder

    def check_special(self, names: Iterable[str]) -> None:
        """Refuses special tokens that absorb whitespace of adjacent text.

        Raises
        ------
        VocabularyError
            With the name.
        """
        tokenizer = self._parts.tokenizer
        if tokenizer is None or tokenizer.kind != "tokenizer.json":
            return
        wanted = set(names)
        for one in json.loads(tokenizer.data).get("added_tokens") or ():
            flags = [flag for flag in ("lstrip", "rstrip", "single_word") if one.get(flag)]
            if one.get("content") in wanted and flags:
                raise VocabularyError(
                    f"the special token {one['content']!r} has {flags[0]}, which changes the"
                    " text next to it",
                    hint='use tokenization="all"',
                )

    def saved_encoder(self) -> bytes:
        """Returns the result of :meth:`encoder` as bytes for another process, if built."""
        tokenizer = self._parts.tokenizer
        if self._encoder is None or tokenizer is None:
            return self._parts.encoder
        if not self._encoder.is_merging:
            return self._parts.encoder or _save_checked(tokenizer, self.core)
        return self._encoder.save(self.core, tokenizer.data)

    def merges_like(self, other: CanonicalTokens) -> bool:
        """Returns whether both have the same tokenizer, and therefore the same canonical tokens."""
        mine, others = self._parts.tokenizer, other._parts.tokenizer
        if mine is None or others is None:
            return mine is others
        return mine.kind == others.kind and mine.data == others.data

    def last_text(self, token_ids: Sequence[int]) -> Sequence[int]:
        """Returns the tokens after the last special token: those of the last text."""
        special = (
            at for at in reversed(range(len(token_ids)))
            if self.core.token_bytes(token_ids[at]) is None
        )  # fmt: skip
        return token_ids[next(special, -1) + 1 :]

    def space_after(self, front: Sequence[int]) -> LeadingSpace | None:
        """Returns what the tokenizer inserts before a text that follows these tokens.

        Some tokenizers insert a space at the beginning of a text only, after at most a
        beginning-of-sequence token. Others insert it after every special token.

        Raises
        ------
        VocabularyError
            As :meth:`encoder`.
        """
        if not self.encoder().prepends_space or self._parts.tokenizer is None:
            return None
        tokenizer = self._parts.tokenizer
        if tokenizer.kind == "tokenizer.json":
            space = _space_of(tokenizer.data)
        else:
            # SentencePiece removes the spaces at the start of a text before it inserts its own.
            removes = "remove_extra_whitespaces" in (self.encoder().normalizer or "")
            space = LeadingSpace(True, removes, before_added=True)
        after_text = bool(front) and self.core.token_bytes(front[-1]) is not None
        return space if not after_text and (len(front) <= 1 or not space.first_only) else None

    def is_canonical(self, token_ids: Iterable[int]) -> bool:
        """Returns whether the tokenizer itself produces these tokens for their text.

        Special tokens separate texts. If the tokenizer inserts a space before every text, tokens
        are judged as the continuation of a text: as they spell it, including that space.

        Raises
        ------
        VocabularyError
            As :meth:`encoder`.
        """
        return self.canonical_error(token_ids) is None

    def canonical_error(self, token_ids: Iterable[int]) -> NonCanonical | None:
        """Returns why tokens are not canonical; None if they are. See :meth:`is_canonical`."""
        encoder = self.encoder()
        return find(encoder, self.core, _integers(token_ids))

    def tokenizations(self, text: str | bytes, *, byte_limit: int = BYTE_LIMIT) -> Tokenizations:
        """Returns all token sequences that spell a text, as a count and a lazy sequence.

        Any token with bytes takes part, including added tokens that are text and single bytes.
        Special tokens spell nothing. A text that no tokens spell has none; bytes need not be UTF-8.

        Parameters
        ----------
        text
            The text as tokens spell it: nothing is inserted before it.
        byte_limit
            Maximum length of the text in bytes; time and memory grow with its square.

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


def _save_checked(tokenizer: Tokenizer, core: _core.Vocabulary) -> bytes:
    answers = library_answers(tokenizer.data) if tokenizer.kind == "tokenizer.json" else None
    facts = {
        "format": _CHECKED_FORMAT,
        "vocabulary": core.fingerprint,
        "tokenizer": sha256(tokenizer.data).hexdigest(),
        "answers": answers,
    }
    payload = json.dumps(facts).encode()
    return _CHECKED_HEAD + sha256(payload).digest() + payload


def _read_saved(own: bytes, tokenizer: Tokenizer, core: _core.Vocabulary) -> _core.Encoder:
    """Returns a saved encoder. It was verified before it was saved."""
    if not own.startswith(_CHECKED_HEAD):
        return _core.Encoder.from_saved(own, core, tokenizer.checksum)
    digest, payload = own[len(_CHECKED_HEAD) :][:32], own[len(_CHECKED_HEAD) + 32 :]
    if sha256(payload).digest() != digest:
        raise _unusable("is damaged")
    try:
        facts = json.loads(payload)
        form, read_for = facts["format"], (facts["vocabulary"], facts["tokenizer"])
        answers = facts["answers"]
        if answers is not None:
            answers = [str(answer) for answer in answers]
    except (ValueError, RecursionError, KeyError, TypeError):
        raise _unusable("is inconsistent") from None
    if form != _CHECKED_FORMAT:
        known = f"this version of formalm reads format {_CHECKED_FORMAT}"
        raise _unusable(f"has format {form}, but {known}")
    if read_for != (core.fingerprint, sha256(tokenizer.data).hexdigest()):
        raise _unusable("belongs to another tokenizer")
    if tokenizer.kind == "tokenizer.json":
        return _core.Encoder(tokenizer.data, core, answers)
    return _READERS[tokenizer.kind](tokenizer.data, core)


def _unusable(reason: str) -> VocabularyError:
    return VocabularyError(
        f"the saved tokenizer data {reason}",
        hint="save the vocabulary again from the tokenizer's file",
    )


def load_encoder(tokenizer: Tokenizer, core: _core.Vocabulary) -> _core.Encoder:
    """Returns the analyzed tokenizer, after verifying that it tokenizes as its own library does.

    Raises
    ------
    VocabularyError
        If its kind is not supported exactly, or a check failed.
    """
    encoder = _READERS[tokenizer.kind](tokenizer.data, core)
    # Verified once only: the tokenizers package leaks what it caches.
    checked = tokenizer.kind, sha256(tokenizer.data).digest(), core.fingerprint
    if checked in _checked:
        return encoder
    added = tuple(encoder.added_texts()) if tokenizer.kind == "tokenizer.json" else ()
    for text in _probes(encoder, core):
        # The space that such a tokenizer inserts is part of the bytes of its tokens.
        is_put = encoder.prepends_space and not text.startswith(added)
        spelled = " " + text if is_put else text
        expected, found = tokenizer.encode(text), encoder.encode(spelled)
        if expected != found and not (found is None and _spell(core, expected) != spelled.encode()):
            raise VocabularyError(
                f"the tokenizer's library does not do what we read in its file: {text!r} becomes"
                f" {expected}, not {found}",
                hint='use tokenization="all" with this vocabulary',
            )
    if len(_checked) >= MOST_CHECKED:
        _checked.clear()
    _checked.add(checked)
    return encoder


def _spell(core: _core.Vocabulary, ids: Iterable[int]) -> bytes:
    return b"".join(core.token_bytes(token_id) or b"" for token_id in ids)


def _probes(encoder: _core.Encoder, core: _core.Vocabulary) -> Iterator[str]:
    """Returns test strings on which tokenizers differ."""
    rng = random.Random(0)
    texts = ["".join(rng.choices(_SCRAPS, k=rng.randrange(1, 12))) for _ in range(400)]
    borders = encoder.borders()
    if len(borders) > MOST_BORDERS:
        borders = "".join(rng.sample(borders, MOST_BORDERS))
    for start in range(0, len(borders), 50):
        texts.append("".join(f"a{c} {c}1{c}'{c}\n" for c in borders[start : start + 50]))
    for _ in range(800):
        ids = [rng.randrange(len(core)) for _ in range(3)]
        texts.append(_spell(core, ids).decode(errors="ignore"))
    if not encoder.is_merging:
        # Equal sums of scores, which rounding decides.
        front = ["", "x ", "a b, the " * 9, "The 1 end. " * 40]
        texts += [text + run * n for text in front for run in _RUNS for n in range(2, 18)]
    texts += islice(_overlaps(encoder.added_texts(), core.special_tokens), 500)
    strips = "Strip" in (encoder.normalizer or "")
    for text in texts:
        marked = encoder.marks_spaces and "\u2581" in text
        is_lost = text[:1] in ("", " ") or (strips and text[0].isspace())
        if not marked and not (encoder.prepends_space and is_lost):
            yield text


def _overlaps(added: Iterable[str], special: Iterable[str]) -> Iterator[str]:
    """Returns added tokens that occur, or begin, inside another's name: they may be shadowed."""
    for text in added:
        for name in (*special, *added):
            if text in name:
                yield name
            for size in range(1, min(len(text), len(name))):
                if name.endswith(text[:size]):
                    yield name + text[size:]


@lru_cache(maxsize=8)
def _space_of(tokenizer_json: bytes) -> LeadingSpace:
    """Returns how the tokenizer of a file inserts spaces."""
    file = json.loads(tokenizer_json)
    for part in (file.get("normalizer") or {}, file.get("pre_tokenizer") or {}):
        for step in part.get("normalizers", part.get("pretokenizers", [part])):
            if step.get("type") == "Prepend":
                return LeadingSpace(False, False)
            if step.get("type") == "Metaspace":
                return LeadingSpace(step.get("prepend_scheme") == "first", True)
    return LeadingSpace(True, False)
