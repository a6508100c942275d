"""Constructors of :class:`formalm.Vocabulary`, one for each kind of source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from formalm import _core
from formalm.errors import ArgumentError, VocabularyError
from formalm.vocabulary import saved_vocabulary
from formalm.vocabulary.loaded_vocabulary import EndTokens, Parts, ended
from formalm.vocabulary.tokenizer_libraries import Encode, FunctionTokenizer

if TYPE_CHECKING:
    from typing_extensions import Self

    from formalm.vocabulary.tokenizations import Spellings

__all__ = ["Sources"]


class Sources:
    """The constructors of :class:`formalm.Vocabulary`."""

    __slots__ = ("_encoder", "_parts", "_special", "_spellings", "core")

    def __init__(self, parts: Parts | None = None, *others: object, **options: object) -> None:
        if not isinstance(parts, Parts) or others or options:
            raise ArgumentError(
                "a vocabulary is not created by its class",
                hint="Vocabulary.from_tokens takes a list of bytes, from_tokenizer a tokenizer "
                "object, from_pretrained the folder of a model, and load a saved vocabulary",
            )
        self.core = parts.core
        self._parts = parts
        self._encoder: _core.Encoder | None = None
        self._spellings: Spellings | None = None
        self._special: dict[tuple[str, ...], Any] = {}

    @classmethod
    def from_tokenizer(cls, tokenizer: object, end_token_ids: EndTokens | None = None) -> Self:
        """Creates a vocabulary from a tokenizer object of another library.

        Parameters
        ----------
        tokenizer
            A fast tokenizer of transformers, a ``tokenizers.Tokenizer``, a ``tiktoken.Encoding`` or
            a ``sentencepiece.SentencePieceProcessor``. It is read once; later changes have no
            effect.
        end_token_ids
            Ids or names of the end tokens. By default those that the object knows;
            :attr:`end_token_source` says which. A tokenizer object knows only one of the several
            end tokens in a model's ``generation_config.json``.

        Raises
        ------
        VocabularyError
            If the bytes of its tokens are not known exactly.
        ArgumentError
            If it is not a tokenizer object.

        Examples
        --------
        >>> from tokenizers import Tokenizer
        >>> from formalm import Vocabulary
        >>> from formalm.models.canary import WEIGHTS
        >>> tokenizer = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
        >>> Vocabulary.from_tokenizer(tokenizer, 0) == Vocabulary.from_pretrained(WEIGHTS)
        True
        """
        from formalm.vocabulary.tokenizer_objects import read_object

        return cls(read_object(tokenizer, end_token_ids))

    @classmethod
    def from_pretrained(
        cls, folder: str | PathLike[str], end_token_ids: EndTokens | None = None
    ) -> Self:
        """Creates a vocabulary from a local folder in the Hugging Face layout.

        Reads ``tokenizer.json`` (otherwise ``tokenizer.model`` or ``tekken.json``), the
        configuration files and the chat template. Nothing is downloaded, and no code in the folder
        is run.

        Parameters
        ----------
        folder
            The folder.
        end_token_ids
            Ids or names. By default those of ``generation_config.json``, otherwise of
            ``tokenizer_config.json``, otherwise of ``config.json``.

        Raises
        ------
        VocabularyError
            If a file is missing, unreadable, or contradicts another.

        Examples
        --------
        >>> from formalm import Vocabulary
        >>> from formalm.models.canary import WEIGHTS
        >>> vocabulary = Vocabulary.from_pretrained(WEIGHTS, end_token_ids="<|endoftext|>")
        >>> vocabulary.end_token_ids, vocabulary.end_token_source
        ((0,), 'given')
        """
        from formalm.vocabulary.model_folder import read_folder

        return cls(read_folder(folder, end_token_ids))

    @classmethod
    def from_tiktoken(
        cls,
        encoding: str | PathLike[str] | Mapping[bytes, int] | Any,
        end_token_ids: EndTokens | None = None,
        *,
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Self:
        """Creates a vocabulary from a ``tiktoken.Encoding``, or from ranks and a pattern.

        Parameters
        ----------
        encoding
            The object; or the ranks of the tokens, which are their ids: a mapping from bytes, or
            the path of a file with a Base64 token and its rank on each line.
        end_token_ids
            Ids or names; by default ``<|endoftext|>`` if it exists.
        pattern
            With ranks: the pattern whose matches are the pieces of a text.
        special_tokens
            With ranks: the ids of the special tokens.

        Raises
        ------
        VocabularyError
            If the ranks cannot be read, or come without a pattern.
        ArgumentError
            If an object comes with a pattern or special tokens.

        Notes
        -----
        Special tokens and unused ids have no bytes.

        Examples
        --------
        >>> from formalm import Vocabulary
        >>> ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
        >>> vocabulary = Vocabulary.from_tiktoken(ranks, pattern=" ?[^ ]+| ")
        >>> vocabulary.token_bytes(256), vocabulary.is_canonical([256])
        (b'ab', True)
        """
        from formalm.vocabulary.tiktoken import read_tiktoken

        return cls(read_tiktoken(encoding, end_token_ids, pattern, special_tokens))

    @classmethod
    def from_sentencepiece(
        cls, model: str | PathLike[str] | bytes | Any, end_token_ids: EndTokens | None = None
    ) -> Self:
        """Creates a vocabulary from a SentencePiece model of any type.

        Parameters
        ----------
        model
            A path, the bytes of a model, or a ``SentencePieceProcessor``. The sentencepiece package
            is needed to encode, not to read the tokens.
        end_token_ids
            Ids or names; by default the model's own end-of-sequence piece.

        Notes
        -----
        ``▁`` is a space. A token keeps the space that decoding drops at the start of a text.
        Control, unknown and unused pieces have no bytes.
        """
        from formalm.vocabulary.sentencepiece import read_sentencepiece

        return cls(read_sentencepiece(model, end_token_ids))

    @classmethod
    def from_gguf(cls, path: str | PathLike[str], end_token_ids: EndTokens | None = None) -> Self:
        """Creates a vocabulary from the metadata of a GGUF file; its tensors are not read.

        Parameters
        ----------
        path
            The file, with a tokenizer of type ``gpt2``, ``llama`` or ``t5``.
        end_token_ids
            Ids or names; by default the file's ``eos``, ``eot`` and ``eom`` tokens.

        Notes
        -----
        It encodes text only if the file's pre-tokenizer is ``gpt-2`` or ``llama-bpe``, because the
        other names do not define exactly how text is split. See :attr:`can_encode`.
        """
        from formalm.vocabulary.gguf import read_gguf

        return cls(read_gguf(path, end_token_ids))

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes | None],
        end_token_ids: EndTokens | None = None,
        encode: Encode | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Self:
        """Creates a vocabulary from the bytes of every token, in order of ids.

        Parameters
        ----------
        tokens
            One entry per id; None marks a special token, an id without bytes.
        end_token_ids
            Ids or names of the end tokens; none by default.
        encode
            A function from text to token ids, if the vocabulary should tokenize.
        special_tokens
            Names and ids of special tokens.
        """
        try:
            entries = list(tokens)
        except TypeError:
            kind = type(tokens).__name__
            raise VocabularyError(f"tokens must be a list of bytes, got {kind}") from None
        for position, token in enumerate(entries):
            if token is not None and not isinstance(token, bytes):
                kind = type(token).__name__
                raise VocabularyError(
                    f"tokens[{position}] must be bytes or None, got {kind}",
                    hint="encode strings: [t.encode() for t in tokens]",
                )
        names = _named(special_tokens, entries)
        core, source = ended(_core.Vocabulary.from_tokens(entries, [], names), end_token_ids)
        return cls(Parts(core, None if encode is None else FunctionTokenizer(encode), None, source))

    @classmethod
    def from_tokenizer_json(
        cls,
        source: str | PathLike[str] | bytes | Mapping[str, Any],
        end_token_ids: EndTokens | None = None,
    ) -> Self:
        """Creates a vocabulary from a Hugging Face ``tokenizer.json``.

        Parameters
        ----------
        source
            A path (``.gz`` is decompressed), the file's text or bytes, or the parsed object. A
            string that starts with ``{`` is the text itself.
        end_token_ids
            Ids or names, such as ``"<|endoftext|>"``, of the end tokens. The file does not state
            them.

        Raises
        ------
        VocabularyError
            If the file is unreadable, of an unsupported kind, or lacks a token that was named.
        """
        from formalm.vocabulary.tokenizer_objects import read_json

        return cls(read_json(saved_vocabulary.read_tokenizer_json(source), end_token_ids))


def _named(
    special_tokens: Mapping[str, int] | None, entries: Sequence[bytes | None]
) -> list[tuple[str, int]]:
    """Returns the names of tokens without bytes."""
    if not isinstance(special_tokens, (Mapping, type(None))):
        kind = type(special_tokens).__name__
        raise VocabularyError(f"special_tokens must map names to ids, got {kind}")
    named: list[tuple[Any, Any]] = list((special_tokens or {}).items())
    for name, token_id in named:
        known = type(token_id) is int and 0 <= token_id < len(entries)
        if not isinstance(name, str) or not known or entries[token_id]:
            raise VocabularyError(
                f"special_tokens must name ids of tokens without bytes, got {token_id!r} for"
                f" {name!r}"
            )
    names: dict[int, str] = {}
    for name, token_id in named:
        other = names.setdefault(token_id, name)
        if other != name:
            raise VocabularyError(
                f"special_tokens must name each token once, got {other!r} and {name!r} for"
                f" {token_id}"
            )
    return named
