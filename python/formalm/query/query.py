"""``Query``: a question about a language and a model, as an immutable value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

from formalm.errors import LanguageError
from formalm.languages import Language, Region, StringLiteral, as_language
from formalm.languages.special_tokens import special_tokens_of
from formalm.query.decoding_rules import Decoding
from formalm.query.edits_and_weights import Edits, checked_weights
from formalm.query.limits import Limits
from formalm.query.prefixes import anything, check_prefixes
from formalm.query.validation import check_query

__all__ = [
    "Edits",
    "Event",
    "Query",
    "Target",
    "TokenEvent",
    "Tokenization",
    "Unique",
    "as_query",
]

Event = Literal["complete", "token_prefix", "prefix", "contains", "never"]
TokenEvent = Literal["complete", "token_prefix"]
"""The events of one token sequence, used by searches and scores."""
Tokenization = Literal["all", "canonical", "canonical-given"]
Unique = Literal["strings", "tokens"]
"""The unit that a search lists once."""
Target = Literal["posterior", "local", "without_replacement", "uniform"]
"""The distribution that a sample draws from, see :func:`~formalm.sample`."""


@dataclass(frozen=True, repr=False)
class Query:
    r"""A question to a model, without the prompt: hashable, picklable, and writable to a file.

    Parameters
    ----------
    language
        The language, whose members include ``given``.
    given
        Prefixes of members that are taken for granted: a string, or a finite language. One may be a
        prefix of another; both count. Each is a context of its own. Searches with
        ``prefix_cost="joint"`` take any regular language, and list its strings as they go.
    event
        The event. ``"complete"``: the output is a member and ends. ``"token_prefix"``: its first
        tokens spell a member. ``"prefix"``: its text starts with a member, wherever tokens end; a
        token ``cats`` starts with ``cat`` and does not spell it. ``"contains"``: its text contains
        a member. ``"never"``: it contains none. With None, functions that rank or score one string
        at a time (:func:`~formalm.search`, :func:`~formalm.score`) use ``"token_prefix"``; those
        that sum over strings (masses, samples, distortions) require an event.
    tokenization
        The token sequences that spell a member. ``"all"``: any. ``"canonical"``: the one that the
        tokenizer itself produces for prompt, ``given`` and member together. ``"canonical-given"``:
        any after ``given``, which has the tokens that the tokenizer produces for it and the prompt.
    decoding
        A rule that changes the model's distribution before the query applies.
    decoded
        The part it changes: the tokens after ``given`` (``"suffix"``), those of ``given``
        (``"prefix"``), or ``"both"``. ``given`` has probabilities if ``prefix_cost`` or
        ``prefix_weights`` need them.
    renormalize
        Whether the tokens that ``top_k``, ``top_p`` and ``min_p`` keep are made to sum to one.
    prefix_cost
        The contribution of ``given`` to the log-probability of a hit. ``"conditional"``: none, a
        hit is conditional on its own prefix. ``"joint"``: its log-probability is added. ``"zero"``:
        none, and every tokenization of the prefix is a context, where the others use the
        tokenizer's own.
    prefix_weights
        The weights of the prefixes in masses and samples: equal (``"strings"``), by number of
        tokenizations (``"encodings"``), by the model's probability (``"model"``), or a mapping from
        string to weight.
    bos
        As in :func:`~formalm.search`.
    boundary
        ``"split"``: no token straddles the end of ``given``. ``"heal"``: the last token of
        ``given`` is removed, and as many more as a member needs to follow in canonical tokens. The
        output begins with the removed bytes, in any tokens, so a token may straddle the end.
        Log-probabilities are conditional on the tokens that remain, and include these bytes.
    unique
        What a search lists once: ``"strings"``, summed over all tokenizations, or ``"tokens"``.
        None leaves it to the function: searches list strings, samples without replacement list
        tokens. The weight of a string drawn without replacement covers all its tokenizations.
    edits
        Edits of members that count as members too; a number allows that many anywhere after
        ``given``.
    without
        Strings to exclude, after edits.
    keep
        A Python function of a member, including ``given``: only members for which it returns true
        count. It is called after a member is found, and results report how many members it dropped.
        A language passed as ``without`` says the same and saves their evaluation. A query with
        ``keep`` cannot be written to a file.
    max_tokens
        Maximum number of tokens after ``given``.
    limits
        Limits at which the work stops.

    Raises
    ------
    ArgumentError
        With the name of a field that is invalid or does not apply.
    LanguageError
        If a string in ``given`` is not a prefix of any member, with that string.

    Examples
    --------
    >>> from formalm import Query, Regex
    >>> query = Query(Regex("The (man|woman) (sat|ran)"), given=Regex("The (man|woman)"))
    >>> query
    Query(Regex('The (man|woman) (sat|ran)'), given=Regex('The (man|woman)'))
    >>> Query.from_json(query.to_json()) == query
    True
    """

    language: Language
    given: Language | None = None
    event: Event | None = None
    tokenization: Tokenization = "all"
    decoding: Decoding = field(default_factory=Decoding)
    decoded: Literal["suffix", "prefix", "both"] = "suffix"
    renormalize: bool = False
    prefix_cost: Literal["conditional", "joint", "zero"] = "conditional"
    prefix_weights: Any = "strings"
    bos: Literal["auto"] | int | None = "auto"
    boundary: Literal["split", "heal"] = "split"
    unique: Unique | None = None
    edits: Edits | None = None
    without: Language | None = None
    keep: Callable[[str], object] | None = None
    max_tokens: int | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        object.__setattr__(self, "language", as_language(self.language))
        if isinstance(self.given, (str, bytes)):
            object.__setattr__(self, "given", StringLiteral(self.given))
        for name in ("given", "without"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _language(name, getattr(self, name)))
        count: object = self.edits
        if type(count) is int:
            object.__setattr__(self, "edits", Edits(count))
        object.__setattr__(self, "prefix_weights", checked_weights(self.prefix_weights))
        check_query(self)
        self._allowed.machine()  # refuses combinations that cannot be built
        if self.given is not None and special_tokens_of(self.given):
            raise LanguageError(
                "given must not contain special tokens",
                hint="pass them in the prompt, as token ids",
            )
        if self.given is not None and self.event not in ("contains", "never"):
            check_prefixes(self.given, self._allowed)

    @property
    def suffix_decoding(self) -> tuple[Decoding, bool]:
        """The decoding rule for the tokens after ``given``, and whether it renormalizes."""
        if self.decoded == "prefix":
            return Decoding(), False
        return self.decoding, self.renormalize

    @cached_property
    def effective_language(self) -> Language:
        """The language with edits applied and ``without`` excluded."""
        if self.boundary == "heal" and self.given is not None:
            # The output must begin with the removed end of `given`.
            return self._allowed & (self.given + anything())
        return self._allowed

    @cached_property
    def _allowed(self) -> Language:
        return self.edited if self.without is None else self.edited - self.without

    @cached_property
    def edited(self) -> Language:
        """The language with edits applied, before anything is excluded."""
        language = self.language
        if self.edits is not None:
            region = self.edits.region
            if region is None and self.given is not None:
                region = Region(after=self.given)
            language = language.edits(
                self.edits.count,
                alphabet=self.edits.alphabet,
                operations=self.edits.operations,
                region=region,
            )
        return language

    def to_data(self) -> dict[str, Any]:
        """Returns the query as tables, lists, strings and numbers, without defaults."""
        from formalm.query.serialization import query_data

        return query_data(self)

    @classmethod
    def from_data(cls, data: object) -> Query:
        """Reads the result of :meth:`to_data`; an ArgumentError names what is wrong."""
        from formalm.query.serialization import read_query

        return read_query(data)

    def to_json(self) -> str:
        """Returns the query as JSON."""
        from formalm.query.serialization import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Query:
        """Reads the result of :meth:`to_json`."""
        from formalm.query.serialization import from_json

        return from_json(text)

    def to_toml(self) -> str:
        """Returns the query as TOML."""
        from formalm.query.serialization import to_toml

        return to_toml(self)

    @classmethod
    def from_toml(cls, text: str) -> Query:
        """Reads the result of :meth:`to_toml`, or a file written by hand."""
        from formalm.query.serialization import from_toml

        return from_toml(text)

    def __repr__(self) -> str:
        parts = [repr(self.language)]
        for one in fields(self)[1:]:
            value = getattr(self, one.name)
            default: Any = one.default
            if one.name in ("decoding", "limits"):
                default = type(value)()
            if value != default:
                name = getattr(value, "__qualname__", None) if one.name == "keep" else None
                parts.append(f"{one.name}={name or repr(value)}")
        return f"Query({', '.join(parts)})"


def _language(name: str, value: object) -> Language:
    """Returns the value of a field as a language; errors name the field."""
    try:
        return as_language(value)
    except LanguageError as error:
        if not error.message.startswith("language must be"):
            raise
        message = error.message.replace("language", name, 1)
        raise LanguageError(message, hint=error.hint) from None


def as_query(value: object) -> Query:
    """Returns a query as it is, and a language or list of strings as a query with defaults."""
    return value if isinstance(value, Query) else Query(as_language(value))
