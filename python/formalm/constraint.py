"""``Constraint``: a language over a vocabulary, with masks that all matchers share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from formalm import _core
from formalm.argument_checks import checked_integer, checked_seconds
from formalm.automata import TokenAutomaton
from formalm.bitmask import apply_bitmask, fill_bitmasks, fill_draft, new_bitmask
from formalm.errors import ArgumentError, TokenError
from formalm.languages import Language, as_language
from formalm.languages.exactness_report import Report, grammar_notes, schemas_within
from formalm.languages.special_tokens import special_tokens_of, spelled
from formalm.languages.structure.delimiters import check_marks
from formalm.matcher import Explanation, Matcher
from formalm.vocabulary import Vocabulary
from formalm.vocabulary.loaded_vocabulary import token_ids
from formalm.vocabulary.vocabulary import check_vocabulary

__all__ = [
    "Constraint",
    "ConstraintStats",
    "Explanation",
    "Matcher",
    "Report",
    "apply_bitmask",
    "fill_bitmasks",
    "fill_draft",
    "new_bitmask",
]


#: Which token sequences of a member are allowed.
Tokenization = Literal["all", "canonical"]


class ConstraintOptions(TypedDict, total=False):
    """Options of a :class:`Constraint` that a cache passes on."""

    tokenization: Tokenization
    width: int | None
    memory_limit_bytes: int | None
    state_limit: int | None


@dataclass(frozen=True)
class ConstraintStats:
    """Memory of a constraint in bytes, by part.

    Attributes
    ----------
    machine_bytes
        The states of the language's machine and their parts.
    class_bytes
        The classes of states with equal masks, and the parts that masks are composed of.
    completion_bytes
        Shortest completions.
    canonical_bytes
        Positions of canonical tokens.
    mask_bytes
        Masks.
    array_bytes
        Arrays of :meth:`Matcher.bitmask`, and their index.
    pinned_bytes
        Memory of replaced epochs that matchers keep alive.
    limit_bytes
        ``memory_limit_bytes`` of the constraint.
    pinned_epochs
        Number of replaced epochs that matchers keep alive. An epoch is all interned state of a
        constraint, which is replaced as a whole.
    replacements
        Number of times that an epoch was replaced.
    """

    machine_bytes: int
    class_bytes: int
    completion_bytes: int
    canonical_bytes: int
    mask_bytes: int
    array_bytes: int
    pinned_bytes: int
    limit_bytes: int
    pinned_epochs: int
    replacements: int

    @property
    def total_bytes(self) -> int:
        """The sum of all parts, including pinned epochs."""
        parts = (self.machine_bytes, self.class_bytes, self.completion_bytes, self.canonical_bytes)
        return sum(parts) + self.mask_bytes + self.array_bytes + self.pinned_bytes


class Constraint:
    r"""A language over a vocabulary: masks, computed on first visit and shared by all matchers.

    It is immutable and hashable, and threads may share it. A copy in another process compiles
    again.

    Parameters
    ----------
    language
        A :class:`~formalm.Language`, or a list of strings.
    vocabulary
        The bytes of each token id.
    tokenization
        ``"all"``: any token sequence that spells a member. ``"canonical"``: only the one that the
        tokenizer itself produces for a member; the vocabulary must come from a BPE tokenizer.
    width
        Number of logits that a mask covers; None means ``len(vocabulary)``. Ids beyond the
        vocabulary are never allowed.
    memory_limit_bytes
        Memory limit of the constraint, in bytes; None is the default of 128 MB. Half of it is for
        masks, half for interned states. At the limit, masks are evicted and interned states are
        replaced: a small limit costs time, but no request fails because of earlier ones. A limit
        below four times the memory of the constraint before any input acts like that minimum. State
        that active matchers keep alive is not included, nor are the arrays of
        :meth:`Matcher.bitmask` (at most 1.8 MB). :meth:`stats` reports the memory in use.
    state_limit
        Maximum number of the automaton's states that one request may need; None is the default.
    timeout_seconds
        Maximum time to compile; None is no limit. It applies to this call only: :meth:`matcher` has
        a timeout of its own, and constraints that differ in nothing else are equal.

    Raises
    ------
    DeadlineError
        If compiling takes longer than ``timeout_seconds``.
    LanguageError
        If the language is empty; if a mark of a :class:`~formalm.Structure` contains the name of a
        special token as text; or if a language with a :class:`~formalm.SpecialToken` also contains
        the byte that marks these.
    LimitError
        If ``state_limit`` is too small.
    VocabularyError
        If the language has a special token that the vocabulary lacks or that ends texts; or if
        tokens must be canonical and the tokenizer's canonical tokens are not known exactly.

    Examples
    --------
    >>> from formalm import Regex, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b".", b".2", b"1"])
    >>> matcher = Constraint(Regex(r"[0-9]+\.[0-9]+"), vocabulary).matcher()
    >>> matcher.mask().tolist()
    [False, False, False, True]
    >>> matcher.advance(3)
    >>> matcher.allowed_token_ids().tolist()
    [1, 2, 3]
    """

    __slots__ = ("__weakref__", "_key", "core", "language", "spelled", "vocabulary")

    def __init__(
        self,
        language: Language | Sequence[str],
        vocabulary: Vocabulary,
        *,
        tokenization: Tokenization = "all",
        width: int | None = None,
        memory_limit_bytes: int | None = None,
        state_limit: int | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        _check_tokenization(tokenization)
        check_vocabulary(vocabulary)
        for name, value in (("width", width), ("memory_limit_bytes", memory_limit_bytes)):
            if value is not None and (type(value) is not int or not 1 <= value < 1 << 63):
                raise ArgumentError(f"{name} must be a positive integer or None, got {value!r}")
        self.vocabulary = vocabulary
        self._key = (tokenization, width, memory_limit_bytes, state_limit)
        seconds = checked_seconds("timeout_seconds", timeout_seconds)
        if seconds is None:
            self._compile(language)
        else:
            with _core.Deadline("compile", seconds):
                self._compile(language)
                _core.Deadline.check()

    def _compile(self, language: Language | Sequence[str]) -> None:
        tokenization, width, memory_limit_bytes, state_limit = self._key
        vocabulary = self.vocabulary
        self.language = as_language(language)
        if self.language.may_have_parts():
            check_marks(self.language, vocabulary)
        self.spelled = spelled(self.language, vocabulary)
        automaton = self._automaton(state_limit)
        encoder = vocabulary.encoder() if tokenization == "canonical" else None
        if encoder is not None and self.has_special:
            vocabulary.check_special(special_tokens_of(self.language))
        self.core = _core.Constraint(
            automaton, self.spelled.core, memory_limit_bytes, width, encoder, self._text_begin
        )

    @property
    def _text_begin(self) -> str:
        """The place at which members begin in a text."""
        return "anywhere"

    @property
    def has_special(self) -> bool:
        """True if the language contains special tokens; ``spelled`` has their bytes."""
        return self.spelled is not self.vocabulary

    def _automaton(self, state_limit: int | None) -> _core.Automaton:
        return self.language.automaton(state_limit=state_limit)

    @property
    def tokenization(self) -> Tokenization:
        """The token sequences of a member that are allowed: ``"all"`` or ``"canonical"``."""
        return self._key[0]

    @property
    def report(self) -> Report:
        """The exactness of the masks: where they differ from the language as written, and why."""
        schemas = schemas_within(self.language)
        notes = tuple(note for schema in schemas for note in schema.notes)
        paths = tuple(path for schema in schemas for path in schema.paths)
        inexact = [
            f"{note.place}: {note.message} ({note.effect})"
            for note in notes
            if note.effect != "exact"
        ]
        if not self.core.is_exact:
            inexact.append(
                "a parser: viable means that append did not refuse, whether a member follows"
                " is not known, and a dead end is possible"
            )
        undecided = self.core.undecided_count
        if undecided:
            what = "prefix" if undecided == 1 else "prefixes"
            inexact.append(
                f"{undecided} {what} in canonical tokens: the search for members that extend them"
                " was cut short, so they are allowed; a dead end is possible after them"
            )
        given_up = self.core.given_up_count
        if given_up:
            what = "place" if given_up == 1 else "places"
            inexact.append(
                f"{given_up} {what} of which no shortest completion was found in time: where a text"
                " had to end within a budget, tokens that lead there were left out"
            )
        return Report(
            not inexact,
            tuple(inexact),
            notes + grammar_notes(self.language),
            paths,
            self._excluded(),
        )

    def _excluded(self) -> tuple[str, ...]:
        """Returns why members have no canonical tokens, for the report."""
        if self.tokenization != "canonical":
            return ()
        encoder = self.vocabulary.encoder()
        example, counts, is_unknown = self.core.excluded_members()
        if example is None:
            if is_unknown and encoder.normalizer is not None:
                return (
                    f"members that the tokenizer's normalizer ({encoder.normalizer}) changes"
                    " have no canonical tokens",
                )
            if is_unknown and not encoder.encodes_all:
                return ("members that the tokenizer does not know have no canonical tokens",)
            return ()
        who = "some members have" if counts is None else f"{counts[0]} of {counts[1]} members have"
        text = example.decode(errors="replace")
        lost = encoder.lost_text(text)
        reason = "encoding does not keep all of their text" if lost is None else lost[0]
        return (f"{who} no canonical tokens, because {reason}; for example {text!a}",)

    @property
    def width(self) -> int:
        """Number of logits that a mask covers."""
        return self.core.width

    @property
    def memory_bytes(self) -> int:
        """Current memory of the masks and states, without the vocabulary."""
        return self.core.memory_bytes

    def stats(self) -> ConstraintStats:
        """Returns the memory by part, and how often interned state was replaced."""
        sizes, pinned_epochs, replacements = self.core.stats()
        return ConstraintStats(
            machine_bytes=sizes["machine"],
            class_bytes=sizes["classes"],
            completion_bytes=sizes["completions"],
            canonical_bytes=sizes["canonical"],
            mask_bytes=sizes["masks"],
            array_bytes=sizes["arrays"],
            pinned_bytes=sizes["pinned"],
            limit_bytes=sizes["limit"],
            pinned_epochs=pinned_epochs,
            replacements=replacements,
        )

    @property
    def mask_count(self) -> int:
        """Number of cached masks."""
        return self.core.mask_count

    def warm_up(self, seconds: float = 0.005) -> int:
        """Computes masks of typical texts before a request needs them.

        A mask that was computed before costs half a microsecond, a new one ten on average. Where a
        request waits for its prompt to be read, that time can go into masks: of real JSON Schemas,
        5 ms spare the first member about half of the new masks that it would meet. Masks are what
        they would have been; only their time is different.

        The call runs in the calling thread without the interpreter lock. It stops after
        ``seconds``; as soon as a matcher of this constraint reads a token or computes a mask in
        another thread, which waits until the mask in progress gives up; at half of
        ``memory_limit_bytes``; and when texts lead to no new masks. It is never called for you.

        Parameters
        ----------
        seconds
            Maximum time, in seconds; 0 computes nothing.

        Returns
        -------
        int
            Number of masks computed and cached: 0 for languages with a
            :class:`~formalm.Parser`, which have no typical texts.

        Examples
        --------
        >>> from formalm import JsonSchema, Vocabulary
        >>> vocabulary = Vocabulary.from_tokens([b"{", b"}", b'"', b"a", b":", b"1"])
        >>> constraint = Constraint(JsonSchema({"properties": {"a": {"const": 1}}}), vocabulary)
        >>> constraint.warm_up(seconds=1.0) > 3, constraint.warm_up(seconds=1.0)
        (True, 0)
        """
        budget = checked_seconds("seconds", seconds, otherwise="0")
        if not budget:
            return 0
        encoder = self.vocabulary.encoder() if self.tokenization == "canonical" else None
        return self.core.warm_up(budget, encoder)

    def matcher(
        self,
        *,
        after: Iterable[int] = (),
        timeout_seconds: float | None = None,
        end_token_ids: Iterable[int] | None = None,
    ) -> Matcher:
        """Returns a matcher at the start of a text.

        Parameters
        ----------
        after
            Token ids before the text. They matter to canonical tokens only, which are then those
            that the tokenizer produces for the text of these tokens and the member together, from
            the last special token on.
        timeout_seconds
            Maximum time of each call of the matcher that computes allowed tokens; see
            :attr:`Matcher.timeout_seconds`.
        end_token_ids
            Ids that end this sequence, in place of the vocabulary's; None means the vocabulary's.
            They serve a request with stop tokens of its own: all matchers share the constraint's
            masks, and no vocabulary is prepared anew. The masks are those over a vocabulary with
            these end tokens: a token in the list is allowed exactly where the text is a member,
            whatever its bytes, and end tokens of the vocabulary that are not in the list are never
            allowed. Completions within a budget (``finish=True``) are refused for a matcher that a
            token with bytes ends.

        Raises
        ------
        ArgumentError
            If an id is outside the vocabulary, or the language names it as a special token.
        DeadlineError
            If reading ``after`` takes longer than ``timeout_seconds``.
        TokenError
            If no member follows them in canonical tokens;
            :func:`~formalm.continuations.continuation` removes tokens until one does.
        """
        ids = [] if type(after) is tuple and not after else token_ids(after)
        seconds = None
        if timeout_seconds is not None:
            seconds = checked_seconds("timeout_seconds", timeout_seconds)
        core: _core.Matcher | None
        if not ids and self._text_begin == "anywhere":
            core, good = self.core.matcher(), 0
        else:
            self._check_range(ids)
            if seconds is None:
                core, good = self.core.matcher_after(ids)
            else:
                with _core.Deadline("follow", seconds):
                    core, good = self.core.matcher_after(ids)
        if core is not None:
            if end_token_ids is not None:
                core = core.with_end_token_ids(self._ends(end_token_ids))
            if seconds is not None:
                core.timeout_seconds = seconds
            return Matcher(self, core)
        raise self._unfollowed(ids, good)

    def _ends(self, given: Iterable[int]) -> list[int]:
        """Returns the end tokens of one matcher, checked."""
        ids = token_ids(given)
        self._check_range(ids)
        if self.has_special:
            named = set(special_tokens_of(self.language))
            for name, token_id in self.vocabulary.special_tokens.items():
                if name in named and token_id in ids:
                    raise ArgumentError(
                        f"end_token_ids must not contain token {token_id}, because the language"
                        f" names the special token {name!r}"
                    )
        return ids

    def _check_range(self, ids: Sequence[int]) -> None:
        size = len(self.vocabulary)
        for token_id in ids:
            if not 0 <= token_id < size:
                raise ArgumentError(
                    f"token ids must be below the size of the vocabulary ({size}), got {token_id}"
                )

    def _unfollowed(self, ids: Sequence[int], good: int) -> TokenError:
        """Returns the error that says why no member follows some tokens."""
        hint = "continuation(constraint, token_ids, heal=True) gives tokens back"
        if good == len(ids):
            tail = b"".join(self.vocabulary.token_bytes(token) or b"" for token in ids[-3:])
            return TokenError(
                f"no member continues in canonical tokens after the tokens given, which end in"
                f" {tail[-20:]!r}",
                hint=hint,
            )
        token = self.vocabulary.token_bytes(ids[good])
        return TokenError(
            f"after must be in canonical tokens, but the tokenizer does not write token {good} of"
            f" the {len(ids)} there, {token!r}",
            hint=hint,
        )

    def to_automaton(
        self, *, state_limit: int = 10_000, edge_limit: int = 5_000_000
    ) -> TokenAutomaton:
        """Returns the minimal automaton of all token sequences that spell a member.

        Parameters
        ----------
        state_limit, edge_limit
            Maximum number of states and of edges, one for each token of a state, before equivalent
            states are merged.

        Raises
        ------
        LimitError
            If there are more.
        """
        states = checked_integer("state_limit", state_limit, least=1)
        edges = checked_integer("edge_limit", edge_limit, least=1)
        return TokenAutomaton(_core.Graph.of_tokens(self.core, states, edges), self.vocabulary)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraint) or type(other) is not type(self):
            return NotImplemented
        mine = (self._key, self.language, self.vocabulary)
        same = mine == (other._key, other.language, other.vocabulary)
        # Equal vocabularies may merge differently, which matters to canonical tokens only.
        return same and (
            self.tokenization == "all" or self.vocabulary.merges_like(other.vocabulary)
        )

    def __hash__(self) -> int:
        return hash((self._key, self.language, self.vocabulary))

    def __copy__(self) -> Constraint:
        return self

    def __deepcopy__(self, memo: object) -> Constraint:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.language, self.vocabulary, *self._key)

    def __repr__(self) -> str:
        canonical = ", tokenization='canonical'" if self.tokenization != "all" else ""
        return f"Constraint({self.language!r}, {self.vocabulary!r}{canonical})"


def _check_tokenization(tokenization: object) -> None:
    if tokenization not in ("all", "canonical"):
        hint = None
        if tokenization == "canonical-given":
            hint = "pass it to a Query, which knows what is given"
        raise ArgumentError(
            f"tokenization must be 'all' or 'canonical', got {tokenization!r}", hint=hint
        )


def _rebuild(
    language: Language,
    vocabulary: Vocabulary,
    tokenization: Tokenization,
    width: int | None,
    memory_limit_bytes: int | None,
    state_limit: int | None,
) -> Constraint:
    return Constraint(
        language,
        vocabulary,
        tokenization=tokenization,
        width=width,
        memory_limit_bytes=memory_limit_bytes,
        state_limit=state_limit,
    )
