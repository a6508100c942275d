"""Where vocabularies come from: one constructor a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from formalm import _core
from formalm.errors import VocabularyError
from formalm.vocabulary import files
from formalm.vocabulary.encoding import Encode, FunctionTokenizer
from formalm.vocabulary.parts import EndTokens, Parts, ended

if TYPE_CHECKING:
    from typing_extensions import Self

    from formalm.vocabulary.tokenizations import Spellings

__all__ = ["Sources"]


class Sources:
    """The constructors of :class:`formalm.Vocabulary`, apart from what it does."""

    __slots__ = ("_encoder", "_parts", "_special", "_spellings", "core")

    def __init__(self, parts: Parts) -> None:
        self.core = parts.core
        self._parts = parts
        self._encoder: _core.Encoder | None = None
        self._spellings: Spellings | None = None
        self._special: dict[tuple[str, ...], Any] = {}

    @classmethod
    def from_tokenizer(cls, tokenizer: object, end_token_ids: EndTokens | None = None) -> Self:
        """A vocabulary from another library's tokenizer object.

        Parameters
        ----------
        tokenizer
            A fast tokenizer of transformers, a ``tokenizers.Tokenizer``, a ``tiktoken.Encoding`` or
            a ``sentencepiece.SentencePieceProcessor``. It is read once; what is done to it later
            does not show here.
        end_token_ids
            Ids or names of the tokens that end a sequence. By default those that the object knows;
            :attr:`end_token_source` says which. Of the several ends in a model's
            ``generation_config.json`` a tokenizer object knows only one.

        Raises
        ------
        VocabularyError
            If the bytes of its tokens are not known exactly.
        ArgumentError
            If it is no tokenizer object.

        Examples
        --------
        >>> from tokenizers import Tokenizer
        >>> from formalm import Vocabulary
        >>> from formalm.models.canary import WEIGHTS
        >>> tokenizer = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
        >>> Vocabulary.from_tokenizer(tokenizer, 0) == Vocabulary.from_pretrained(WEIGHTS)
        True
        """
        from formalm.vocabulary.objects import read_object

        return cls(read_object(tokenizer, end_token_ids))

    @classmethod
    def from_pretrained(
        cls, folder: str | PathLike[str], end_token_ids: EndTokens | None = None
    ) -> Self:
        """A vocabulary from a local folder in the layout of Hugging Face.

        Read are ``tokenizer.json`` (without one ``tokenizer.model`` or ``tekken.json``), the
        configurations beside it, and the chat template. Nothing is downloaded and no code of the
        folder is run.

        Parameters
        ----------
        folder
            The folder.
        end_token_ids
            Ids or names. By default those of ``generation_config.json``, else of
            ``tokenizer_config.json``, else of ``config.json``.

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
        from formalm.vocabulary.folder import read_folder

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
        """A vocabulary from a ``tiktoken.Encoding``, or from ranks and a pattern.

        Parameters
        ----------
        encoding
            The object; or the ranks of the tokens, which are their ids: a map from bytes, or the
            path of a file with a token in base 64 and its rank in each line.
        end_token_ids
            Ids or names; by default ``<|endoftext|>`` if there is one.
        pattern
            Of ranks, the pattern whose matches are the pieces of a text.
        special_tokens
            Of ranks, the ids of the special tokens.

        Raises
        ------
        VocabularyError
            If the ranks cannot be read, or come without a pattern.
        ArgumentError
            If an object is given a pattern or special tokens beside its own.

        Notes
        -----
        Special tokens and ids that no token has get no bytes.

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
        """A vocabulary from a SentencePiece model of any type.

        Parameters
        ----------
        model
            A path, the bytes of a model, or a ``SentencePieceProcessor``. The sentencepiece package
            is needed to encode, not to read the tokens.
        end_token_ids
            Ids or names; by default the model's own end of sequence.

        Notes
        -----
        ``▁`` is a space. A token keeps the space that decoding drops at the start of a text.
        Control, unknown and unused pieces have no bytes.
        """
        from formalm.vocabulary.sentencepiece import read_sentencepiece

        return cls(read_sentencepiece(model, end_token_ids))

    @classmethod
    def from_gguf(cls, path: str | PathLike[str], end_token_ids: EndTokens | None = None) -> Self:
        """A vocabulary from the metadata of a GGUF file; its tensors are not read.

        Parameters
        ----------
        path
            The file, with a tokenizer of type ``gpt2``, ``llama`` or ``t5``.
        end_token_ids
            Ids or names; by default the file's ``eos``, ``eot`` and ``eom`` tokens.

        Notes
        -----
        It encodes text only if the file's pre-tokenizer is ``gpt-2`` or ``llama-bpe``: the other
        names do not tell exactly how text is cut. :attr:`can_encode` says whether it does.
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
        """A vocabulary from the bytes of every token, in order of ids.

        Parameters
        ----------
        tokens
            One entry an id; None marks a special token, an id without bytes.
        end_token_ids
            Ids or names of the tokens that end a sequence; none by default.
        encode
            Text → token ids, if the vocabulary is to tokenize.
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
        """A vocabulary from a Hugging Face ``tokenizer.json``.

        Parameters
        ----------
        source
            A path (``.gz`` is unpacked), the file's text or bytes, or the parsed object. A string
            that starts with ``{`` is the text itself.
        end_token_ids
            Ids or names, such as ``"<|endoftext|>"``, of the tokens that end a sequence. The file
            does not say which they are.

        Raises
        ------
        VocabularyError
            If the file is unreadable, of a kind we do not know, or lacks a token that was named.
        """
        from formalm.vocabulary.objects import read_json

        return cls(read_json(files.read_tokenizer_json(source), end_token_ids))


def _named(
    special_tokens: Mapping[str, int] | None, entries: Sequence[bytes | None]
) -> list[tuple[str, int]]:
    """The names of tokens without bytes."""
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
