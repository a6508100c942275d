"""A language lifted to a vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from formalm import _core
from formalm.automata import TokenAutomaton
from formalm.automata.encoding import checked_integer, checked_seconds
from formalm.bitmask import apply_bitmask, fill_bitmasks, new_bitmask
from formalm.errors import ArgumentError, TokenError
from formalm.languages import Language, as_language
from formalm.languages.report import Report, grammar_notes, schemas_within
from formalm.languages.special_tokens import special_tokens_of, spelled
from formalm.languages.structure.marks import check_marks
from formalm.matcher import Explanation, Matcher
from formalm.vocabulary import Vocabulary
from formalm.vocabulary.parts import token_ids
from formalm.vocabulary.vocabulary import check_vocabulary

__all__ = [
    "Constraint",
    "ConstraintStats",
    "Explanation",
    "Matcher",
    "Report",
    "apply_bitmask",
    "fill_bitmasks",
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
        The language's machine: states, and what they are made of.
    class_bytes
        Which states have one mask, and what masks are put together from.
    completion_bytes
        Shortest completions.
    canonical_bytes
        Positions of canonical tokens.
    mask_bytes
        Masks.
    array_bytes
        Arrays of :meth:`Matcher.bitmask`, and what finds them.
    pinned_bytes
        Replaced state that matchers keep alive.
    limit_bytes
        ``memory_limit_bytes`` of the constraint.
    pinned_epochs
        How many states of the constraint, replaced as wholes, matchers keep alive.
    replacements
        How often the state was replaced.
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
        """All parts together, pinned state included."""
        parts = (self.machine_bytes, self.class_bytes, self.completion_bytes, self.canonical_bytes)
        return sum(parts) + self.mask_bytes + self.array_bytes + self.pinned_bytes


class Constraint:
    r"""A language over a vocabulary: masks, computed on first visit and shared by all matchers.

    Immutable, hashable, shared freely between threads; a copy in another process compiles again.

    Parameters
    ----------
    language
        A :class:`~formalm.Language`, or a list of strings.
    vocabulary
        Token id → bytes.
    tokenization
        ``"all"``: any token sequence that spells a member. ``"canonical"``: only those that the
        tokenizer itself makes of a member; the vocabulary must come from a tokenizer that merges.
    width
        Number of logits a mask covers; None is ``len(vocabulary)``. Ids beyond the vocabulary are
        never allowed.
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
    ------
    LanguageError
        If the language is empty, or a mark of a :class:`~formalm.Structure` has the name of a
        special token in it as text; if it has a :class:`~formalm.SpecialToken` in it, beside the
        byte that tells these.
    LimitError
        If ``state_limit`` is too small.
    VocabularyError
        If the language has a special token in it that the vocabulary has not, or that ends texts;
        if tokens are to be canonical and the tokenizer is not one whose canonical tokens are known
        exactly.

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

    # Whether a member can be a text of its own, rather than the rest of one.
    _begins = True

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
            automaton, self.spelled.core, memory_limit_bytes, width, encoder, self._begins
        )

    @property
    def has_special(self) -> bool:
        """Whether the language has special tokens in it; ``spelled`` has their bytes."""
        return self.spelled is not self.vocabulary

    def _automaton(self, state_limit: int | None) -> _core.Automaton:
        return self.language.automaton(state_limit=state_limit)

    @property
    def tokenization(self) -> Tokenization:
        """Which token sequences of a member are allowed."""
        return self._key[0]

    @property
    def report(self) -> Report:
        """Whether the masks are exactly those of what was written, and where they are not."""
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
            what = "beginning" if undecided == 1 else "beginnings"
            inexact.append(
                f"{undecided} {what} in canonical tokens: a search for members that go on from"
                " there was cut short, and they are allowed; a dead end is possible behind them"
            )
        given_up = self.core.given_up_count
        if given_up:
            what = "place" if given_up == 1 else "places"
            inexact.append(
                f"{given_up} {what} of which no shortest completion was found in time: where a text"
                " had to end within a budget, tokens that lead there were left out"
            )
        return Report(not inexact, tuple(inexact), notes + grammar_notes(self.language), paths)

    @property
    def width(self) -> int:
        """Number of logits a mask covers."""
        return self.core.width

    @property
    def memory_bytes(self) -> int:
        """Memory of the masks and states held now, the vocabulary's excluded."""
        return self.core.memory_bytes

    def stats(self) -> ConstraintStats:
        """Memory by part, and how often interned state was replaced."""
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
        """Number of masks held now."""
        return self.core.mask_count

    def matcher(
        self, *, after: Iterable[int] = (), timeout_seconds: float | None = None
    ) -> Matcher:
        """A matcher at the beginning of a text.

        Parameters
        ----------
        after
            Token ids that the text goes on from. They matter to canonical tokens, which are then
            those that the tokenizer makes of these tokens' text and the member together, from the
            last special token on.
        timeout_seconds
            Most time for each call of the matcher that asks which tokens are allowed; see
            :attr:`Matcher.timeout_seconds`.

        Raises
        ------
        DeadlineError
            If following ``after`` takes longer than ``timeout_seconds``.
        TokenError
            If no member goes on after them in canonical tokens;
            :func:`~formalm.continuations.continuation` gives tokens back until one does.
        """
        ids = [] if type(after) is tuple and not after else token_ids(after)
        seconds = None
        if timeout_seconds is not None:
            seconds = checked_seconds("timeout_seconds", timeout_seconds)
        core: _core.Matcher | None
        if not ids and self._begins:
            core, good = self.core.matcher(), 0
        else:
            self._check_range(ids)
            if seconds is None:
                core, good = self.core.matcher_after(ids)
            else:
                with _core.Deadline("follow", seconds):
                    core, good = self.core.matcher_after(ids)
        if core is not None:
            if seconds is not None:
                core.timeout_seconds = seconds
            return Matcher(self, core)
        raise self._unfollowed(ids, good)

    def _check_range(self, ids: Sequence[int]) -> None:
        size = len(self.vocabulary)
        for token_id in ids:
            if not 0 <= token_id < size:
                raise ArgumentError(
                    f"token ids must be below the size of the vocabulary ({size}), got {token_id}"
                )

    def _unfollowed(self, ids: Sequence[int], good: int) -> TokenError:
        """Why nothing goes on after tokens."""
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
        """All token sequences that spell a member, written out as a minimal automaton.

        Parameters
        ----------
        state_limit, edge_limit
            Most states and most edges (a token of a state is one) before equivalent states are
            joined.

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
