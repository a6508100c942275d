"""A question about a language and a model, as a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

from formalm.errors import LanguageError
from formalm.languages import Language, Region, StringLiteral, as_language
from formalm.languages.special import special_tokens_of
from formalm.query.checks import check_query
from formalm.query.decoding import Decoding
from formalm.query.limits import Limits
from formalm.query.parts import Edits, checked_weights
from formalm.query.prefixes import anything, check_prefixes

__all__ = ["Edits", "Event", "Query", "TokenEvent", "Tokenization", "as_query"]

Event = Literal["complete", "token_prefix", "prefix", "contains", "never"]
TokenEvent = Literal["complete", "token_prefix"]
"""The events of one token sequence, which searches rank by and scores are of."""
Tokenization = Literal["all", "canonical", "canonical-given"]


@dataclass(frozen=True, repr=False)
class Query:
    r"""What is asked of a model, apart from the prompt: hashable, picklable, a file if wanted.

    Parameters
    ----------
    language
        The texts asked about, ``given`` included.
    given
        Beginnings of members that are taken for granted: a text, or a finite language of them. One
        may be the beginning of another; both count. Each is a context of its own.
    event
        What has to happen. ``"complete"``: the output is a member and ends. ``"token_prefix"``: its
        first tokens spell a member. ``"prefix"``: its text begins with a member, wherever tokens
        end: a token ``cats`` begins with ``cat``, and does not spell it. ``"contains"``: there is a
        member in its text. ``"never"``: there is none. With None, what ranks or scores one string
        at a time (:func:`~formalm.search`, :func:`~formalm.score`) takes ``"token_prefix"``, and
        what sums over strings (masses, samples, distortions) has to be told.
    tokenization
        Which token sequences spell a member. ``"all"``: any. ``"canonical"``: the one that the
        tokenizer itself makes of it, prompt and ``given`` together. ``"canonical-given"``: any
        behind ``given``, which has the tokens that the tokenizer makes of it and the prompt.
    decoding
        How the model's distribution is changed before it is asked.
    decoded
        Where: in what follows ``given`` (``"suffix"``), in ``given`` (``"prefix"``), or in
        ``"both"``. ``given`` has probabilities where ``prefix_cost`` or ``prefix_weights`` ask for
        them.
    renormalize
        Whether what ``top_k``, ``top_p`` and ``min_p`` keep is made to sum to one.
    prefix_cost
        What ``given`` counts in the log-probability of a hit. ``"conditional"``: nothing, a hit is
        judged by what follows its own beginning. ``"joint"``: its log-probability is added.
        ``"zero"``: nothing either, and every tokenization of it is a context, where the others
        take the tokenizer's own.
    prefix_weights
        What the beginnings weigh against one another in masses and samples: each the same
        (``"strings"``), each as many tokenizations as it has (``"encodings"``), by the model's
        probability (``"model"``), or a mapping from text to weight.
    bos
        As in :func:`~formalm.search`.
    boundary
        ``"split"``: no token straddles the end of ``given``. ``"heal"``: its last token is given
        back, or as many more as it takes for a member to follow in canonical tokens. The output
        begins with the bytes of what was given back, in any tokens, so that one may straddle the
        end; log-probabilities are conditional on the tokens that stay, and count these bytes too.
    unique
        What a listing has once: ``"strings"``, with all tokenizations added up, or ``"tokens"``.
        None leaves it to the driver: searches list strings, samples without replacement tokens.
        Of strings drawn without replacement, the weight is that of all tokenizations.
    edits
        Edits of members that count as members too; a number is that many anywhere after ``given``.
    without
        Texts that are taken out again, edited ones among them.
    keep
        A Python function of a member, ``given`` included: only members for which it is true count.
        It is asked after the fact, and drivers tell how many members it dropped; a language that
        says the same, taken out by ``without``, saves their evaluation. A query with a function
        cannot be written to a file.
    max_tokens
        Most tokens after ``given``.
    limits
        Where drivers stop.

    Raises
    ------
    ArgumentError
        Naming the field that is wrong, or that cannot apply.
    LanguageError
        If a text of ``given`` begins no member, with that text.

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
    unique: Literal["strings", "tokens"] | None = None
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
                object.__setattr__(self, name, as_language(getattr(self, name)))
        count: object = self.edits
        if type(count) is int:
            object.__setattr__(self, "edits", Edits(count))
        object.__setattr__(self, "prefix_weights", checked_weights(self.prefix_weights))
        check_query(self)
        self._kept.machine()  # what cannot be combined or built is refused here
        if self.given is not None and special_tokens_of(self.given):
            raise LanguageError(
                "given has special tokens in it, and the tokens that it is spelled in are text",
                hint="put them into the prompt, as token ids",
            )
        if self.given is not None and self.event not in ("contains", "never"):
            check_prefixes(self.given, self._kept)

    @property
    def behind(self) -> tuple[Decoding, bool]:
        """The rule, and whether it renormalizes, for what follows ``given``."""
        if self.decoded == "prefix":
            return Decoding(), False
        return self.decoding, self.renormalize

    @cached_property
    def asked(self) -> Language:
        """The language with edits applied and ``without`` taken out."""
        if self.boundary == "heal" and self.given is not None:
            # The end of what is given is written again, and must come out the same.
            return self._kept & (self.given + anything())
        return self._kept

    @cached_property
    def _kept(self) -> Language:
        return self.edited if self.without is None else self.edited - self.without

    @cached_property
    def edited(self) -> Language:
        """The language with edits applied, before anything is taken out."""
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
        """The query as tables, lists, strings and numbers; defaults are left out."""
        from formalm.query.files import query_data

        return query_data(self)

    @classmethod
    def from_data(cls, data: object) -> Query:
        """The query that :meth:`to_data` described; an ArgumentError names what is wrong."""
        from formalm.query.files import read_query

        return read_query(data)

    def to_json(self) -> str:
        """The query as JSON."""
        from formalm.query.files import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Query:
        """Read what :meth:`to_json` wrote."""
        from formalm.query.files import from_json

        return from_json(text)

    def to_toml(self) -> str:
        """The query as TOML."""
        from formalm.query.files import to_toml

        return to_toml(self)

    @classmethod
    def from_toml(cls, text: str) -> Query:
        """Read what :meth:`to_toml` wrote, or a person."""
        from formalm.query.files import from_toml

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


def as_query(value: object) -> Query:
    """A query as it is; a language or a list of strings as a query with nothing else said."""
    return value if isinstance(value, Query) else Query(as_language(value))
