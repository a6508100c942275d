"""The :class:`Vocabulary` class: bytes of every token id, end tokens, encoding and chat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from os import PathLike
from typing import Any

from formalm import _core
from formalm.argument_checks import checked_flag
from formalm.errors import ArgumentError, VocabularyError
from formalm.vocabulary import saved_vocabulary
from formalm.vocabulary.canonical_tokens import CanonicalTokens
from formalm.vocabulary.chat_template import ChatTemplate
from formalm.vocabulary.loaded_vocabulary import Parts, token_ids
from formalm.vocabulary.tokenizer_libraries import JsonTokenizer, checked_text, restored

__all__ = ["Vocabulary"]

#: Maximum number of sets of special tokens whose vocabularies are cached.
MOST_SPECIAL = 8


class Vocabulary(CanonicalTokens):
    """The mapping from token ids to bytes, with the ids that end a sequence.

    Create one with :meth:`from_tokenizer` (a tokenizer object), :meth:`from_pretrained` (a model's
    folder), :meth:`from_tokenizer_json`, :meth:`from_tiktoken`, :meth:`from_sentencepiece`,
    :meth:`from_gguf`, :meth:`from_tokens` or :meth:`load`. Vocabularies are immutable, picklable,
    shared freely between threads, and equal if all masks over them are equal (same token bytes,
    same end tokens): see :attr:`fingerprint`.

    Examples
    --------
    >>> vocabulary = Vocabulary.from_tokens([b"a", b".", b".2", b"1", None], end_token_ids=[4])
    >>> len(vocabulary), vocabulary.token_bytes(2), vocabulary.decode([3, 2])
    (5, b'.2', b'1.2')
    """

    __slots__ = ()

    def save(
        self,
        path: str | PathLike[str],
        *,
        tokenizer: bool = True,
        canonical: bool = False,
        types: bool = False,
    ) -> None:
        """Writes the prepared vocabulary, which :meth:`load` reads faster than the original.

        Data for canonical tokens is included if the first constraint on them has already built it.
        Loading then neither builds nor verifies it again.

        Parameters
        ----------
        path
            The file, in an existing folder.
        tokenizer
            Whether to include the encoder of text and chats.
        canonical
            Whether to build the data for canonical tokens now if necessary.
        types
            Whether to prepare canonical masks inside common types now: the strings and numbers of
            JSON, dates, times, UUIDs and e-mail addresses in such strings, and free text.
            Constraints of a process that loads the file need not compute them. Implies
            ``canonical``. Tokenizers that do not merge, and those that normalize text, have none.

        Raises
        ------
        VocabularyError
            If the file cannot be written; if the vocabulary encodes with a Python function, which
            cannot be saved, unless ``tokenizer=False``; if canonical tokens are requested and the
            tokenizer is not supported exactly.
        ArgumentError
            If canonical tokens are requested without the tokenizer, or an option is neither True
            nor False.
        """
        options = {"tokenizer": tokenizer, "canonical": canonical, "types": types}
        for name, value in options.items():
            checked_flag(name, value)
        if canonical or types:
            if not tokenizer:
                raise ArgumentError("canonical tokens are saved with their tokenizer")
            encoder = self.encoder()
            if types:
                encoder.prepare_types(self.core)
        saved = self.saved_encoder() if tokenizer else b""
        saved_vocabulary.write_saved(path, self._parts._replace(encoder=saved), tokenizer)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Vocabulary:
        """Loads a file of :meth:`save`, also one of an older version of this library."""
        return cls(saved_vocabulary.read_saved(path))

    def __len__(self) -> int:
        return len(self.core)

    def token_bytes(self, token_id: int) -> bytes | None:
        """Returns the bytes of a token; None for a special token."""
        return self.core.token_bytes(token_id)

    def tokens(self) -> list[bytes | None]:
        """The bytes of every token, in order of ids."""
        return self.core.all_token_bytes()

    def decode(self, token_ids: Iterable[int]) -> bytes:
        """Returns the bytes of a token sequence; special tokens add none.

        Raises
        ------
        ArgumentError
            If it is not a list of integers, or contains an id outside the vocabulary.
        """
        ids = _integers(token_ids)
        return b"".join(self.core.token_bytes(token_id) or b"" for token_id in ids)

    def decode_text(self, token_ids: Iterable[int]) -> str:
        """Returns the text of a token sequence; bytes that are not UTF-8 become U+FFFD."""
        return self.decode(token_ids).decode(errors="replace")

    def encode(self, text: str) -> list[int]:
        """Returns the tokenizer's token ids of ``text``, without additions at either end.

        Everything in ``text`` is text: the name of a special token does not become that token.

        Raises
        ------
        VocabularyError
            If the vocabulary has no tokenizer.
        """
        checked_text(text)
        tokenizer = self._parts.tokenizer
        if tokenizer is None:
            raise VocabularyError(
                f"the vocabulary cannot encode text, because {self._parts.cannot_encode}",
                hint="pass token ids, or make the vocabulary by from_tokens(..., encode=function)",
            )
        return tokenizer.encode(text)

    @property
    def can_encode(self) -> bool:
        """True if :meth:`encode` has a tokenizer."""
        return self._parts.tokenizer is not None

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **template_arguments: Any,
    ) -> list[int]:
        """Returns the token ids of a conversation, by the tokenizer's own chat template.

        The names of special tokens that the template writes become those tokens. In a message they
        are ordinary text: no message can end itself and begin another.

        Parameters
        ----------
        messages
            Dictionaries with ``role`` and ``content``, and whatever else the template reads.
        tools
            JSON Schemas of functions that the model may call, if the template supports tools.
        add_generation_prompt
            Whether to end with the beginning of the assistant's answer.
        template_arguments
            Further variables of the template.

        Raises
        ------
        VocabularyError
            If there is no template, or it is broken.
        ArgumentError
            If a message is malformed; if the template refuses it or does not use an argument; or if
            a message contains the name of a special token and this tokenizer cannot treat it
            exactly as text.
        """
        from formalm.vocabulary.chat_encoding import encode_chat

        chat, tokenizer = self._parts.chat, self._parts.tokenizer
        if chat is None:
            raise VocabularyError(
                "the vocabulary must have a chat template to encode a chat",
                hint="Vocabulary.from_pretrained reads the template of a model's folder, and"
                " Vocabulary.from_tokenizer that of a tokenizer object",
            )
        if not isinstance(tokenizer, JsonTokenizer):
            raise VocabularyError(
                "encoding a chat requires a tokenizer.json, which distinguishes special tokens from"
                " text that spells their names",
                hint=f"{self._parts.cannot_encode}" if tokenizer is None else None,
            )
        return encode_chat(
            chat, tokenizer, messages, tools, add_generation_prompt, template_arguments
        )

    @property
    def can_chat(self) -> bool:
        """True if :meth:`encode_chat` has a template and a tokenizer."""
        return self._parts.chat is not None and isinstance(self._parts.tokenizer, JsonTokenizer)

    def with_special(self, names: Iterable[str]) -> Vocabulary:
        """Returns the vocabulary for a language that contains these special tokens.

        In it, they have the bytes :attr:`formalm.SpecialToken.data`, and no other token contains
        the marker byte. It is cached by names; :class:`~formalm.Constraint` calls this.

        Raises
        ------
        VocabularyError
            If a name is not that of a special token, with similar names, or if the token is an end
            token.
        """
        wanted = tuple(sorted(set(names)))
        made: Vocabulary | None = self._special.get(wanted)
        if made is None:
            while len(self._special) >= MOST_SPECIAL:
                self._special.pop(next(iter(self._special)))
            made = Vocabulary(self._parts._replace(core=self.core.with_special(wanted)))
            self._special[wanted] = made
        return made

    @property
    def end_token_ids(self) -> tuple[int, ...]:
        """Ids that end a sequence."""
        return tuple(self.core.end_token_ids)

    @property
    def end_token_source(self) -> str:
        """The source of the end tokens, such as ``"generation_config.json"`` or ``"given"``."""
        return self._parts.end_source

    @property
    def special_token_ids(self) -> tuple[int, ...]:
        """Ids without bytes."""
        return tuple(self.core.special_token_ids)

    @property
    def special_tokens(self) -> dict[str, int]:
        """Names of the special tokens, if the file states them."""
        return dict(self.core.special_tokens)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on how the tokens were read."""
        return tuple(self.core.notes)

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of token bytes and end tokens: equal fingerprints mean equal masks."""
        return self.core.fingerprint

    @property
    def encoding_fingerprint(self) -> str | None:
        """Hexadecimal digest of the encoder, or of nothing without one.

        None if it is a Python function, which has no reliable identity.
        """
        tokenizer = self._parts.tokenizer
        if tokenizer is None:
            return sha256(b"").hexdigest()
        if not tokenizer.kind:
            return None
        return sha256(tokenizer.kind.encode() + b"\0" + tokenizer.data).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __copy__(self) -> Vocabulary:
        return self

    def __deepcopy__(self, memo: object) -> Vocabulary:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        parts = self._parts
        tokenizer: object = parts.tokenizer
        if parts.tokenizer is not None and parts.tokenizer.kind:
            tokenizer = (parts.tokenizer.kind, parts.tokenizer.data)
        rest = (parts.chat, parts.end_source, parts.cannot_encode)
        return _restore, (self.core.save(), tokenizer, *rest)

    def __repr__(self) -> str:
        ends = list(self.end_token_ids)
        return f"<Vocabulary of {len(self):,} tokens, end tokens {ends}, {self.fingerprint[:8]}>"


_integers = token_ids  # parameters of the same name hide it


def check_vocabulary(vocabulary: object) -> None:
    """Raises for a value that is not a Vocabulary, with advice on how to create one from it."""
    if isinstance(vocabulary, Vocabulary):
        return
    kind = type(vocabulary)
    hint = "Vocabulary.from_pretrained(folder) and Vocabulary.from_tokens(tokens) make one"
    if isinstance(vocabulary, (list, tuple)):
        hint = "pass Vocabulary.from_tokens(tokens, end_token_ids=...)"
    elif isinstance(vocabulary, (str, PathLike)):
        hint = "pass Vocabulary.from_pretrained(path)"
    elif callable(getattr(kind, "get_vocab", None)):
        hint = "pass Vocabulary.from_tokenizer(tokenizer)"
    elif hasattr(kind, "is_viable"):
        hint = "the language comes first: Constraint(language, vocabulary)"
    elif isinstance(getattr(vocabulary, "vocabulary", None), Vocabulary):
        hint = "pass model.vocabulary"
    # Other libraries have a class of this name, too.
    name = kind.__name__
    got = f"{kind.__module__}.{name}" if name == Vocabulary.__name__ else name
    raise ArgumentError(f"vocabulary must be a Vocabulary, got {got}", hint=hint)


def _restore(
    prepared: bytes, tokenizer: Any, chat: ChatTemplate | None, source: str, cannot_encode: str
) -> Vocabulary:
    core = _core.Vocabulary.from_saved(prepared)
    made = restored(*tokenizer) if isinstance(tokenizer, tuple) else tokenizer
    return Vocabulary(Parts(core, made, chat, source, cannot_encode))
