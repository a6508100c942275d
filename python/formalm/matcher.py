"""``Matcher``: a position in a constraint, its allowed tokens, and explanations of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm.argument_checks import checked_seconds
from formalm.automata.text_of_bytes import SPECIAL, shown_bytes, shown_text
from formalm.languages.grammar.queries import Expected, GrammarQueries

if TYPE_CHECKING:
    from formalm.constraint import Constraint

__all__ = ["Explanation", "Matcher"]


@dataclass(frozen=True)
class Explanation:
    """The reason why a token is allowed after a text, or why not.

    Attributes
    ----------
    allowed
        Whether the token is allowed.
    token_id
        The token.
    token
        Its bytes; empty for a special token that the language does not name.
    viable_bytes
        Length of the longest prefix of its bytes that some member continues with.
    expected
        The bytes that may follow that prefix.
    text
        The explanation in one sentence.
    places
        The parts of the language's description that forbid the token, if they are known. For a
        :class:`~formalm.JsonSchema`: the JSON pointers of a smallest set of keywords without which
        it would be allowed, or the name of an option that forbids it.
    terminals
        For a :class:`~formalm.Grammar`: the terminals that may follow that prefix, with the rules
        that contain them.
    """

    allowed: bool
    token_id: int
    token: bytes
    viable_bytes: int
    expected: bytes
    text: str
    places: tuple[str, ...] = ()
    terminals: tuple[Expected, ...] = ()


class Matcher:
    """One sequence's position in a constraint: which tokens may follow, and the steps so far.

    :meth:`Constraint.matcher` and :meth:`fork` make matchers. A matcher belongs to one thread at a
    time; a call that overlaps another thread's raises :class:`~formalm.ConcurrencyError`. Calls
    that read, compute or explain raise :class:`~formalm.DeadlineError` after
    :attr:`timeout_seconds`. A call that raises leaves the position unchanged.

    Examples
    --------
    >>> from formalm import Choice, Constraint, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", None], end_token_ids=[3])
    >>> matcher = Constraint(Choice(["ab"]), vocabulary).matcher()
    >>> matcher.allowed_token_ids().tolist()
    [0, 2]
    >>> matcher.advance(2)
    >>> matcher.is_accepting, matcher.allowed_token_ids().tolist()
    (True, [3])
    """

    __slots__ = {
        "constraint": "The constraint of this position.",
        "core": "The matcher of the core, for calls that have no method here.",
    }

    # No core method is bound here: from Python 3.11 on, a method that only forwards costs as much
    # as a bound method in a slot (112 ns a step, 195 ns a cached mask), and a matcher
    # is made in half the time.
    def __init__(self, constraint: Constraint, core: _core.Matcher) -> None:
        self.constraint = constraint
        self.core = core

    def fill_bitmask(self, out: Any, row: int | None = None) -> None:
        """Writes the mask into one row of a bitmask.

        Bit ``i % 32`` of word ``i // 32`` is 1 if token ``i`` is allowed.

        Parameters
        ----------
        out
            An int32 array or CPU tensor ``(rows, ceil(width / 32))``, or one row of it, such as
            :func:`~formalm.new_bitmask` makes.
        row
            The row to overwrite; None is the first.

        Raises
        ------
        ArgumentError
            For another dtype, shape or layout, memory that cannot be written, or no such row.
        DeadlineError
            After :attr:`timeout_seconds`.
        """
        self.core.fill_bitmask(out, row)

    def bitmask(self) -> npt.NDArray[np.int32]:
        """Returns the mask as a read-only int32 array ``(ceil(width / 32),)``.

        Nothing is copied: positions with equal masks share one array, as long as 0.8 MB hold the
        arrays in use.

        Raises
        ------
        DeadlineError
            After :attr:`timeout_seconds`.
        """
        return self.core.bitmask()

    def mask(self) -> npt.NDArray[np.bool_]:
        """Returns the mask as a bool array ``(width,)``.

        Raises
        ------
        DeadlineError
            After :attr:`timeout_seconds`.
        """
        return self.core.mask()

    def allowed_token_ids(self) -> npt.NDArray[np.uint32]:
        """Returns the ids of the allowed tokens, ascending, as a uint32 array.

        Raises
        ------
        DeadlineError
            After :attr:`timeout_seconds`.
        """
        return self.core.allowed_token_ids()

    def allows(self, token_id: int) -> bool:
        """Returns whether the mask has ``token_id``, without computing the mask.

        Raises
        ------
        DeadlineError
            After :attr:`timeout_seconds`.
        """
        return self.core.allows(token_id)

    def advance(self, token_id: int) -> None:
        """Reads one token. An end token finishes the sequence.

        Raises
        ------
        TokenError
            If ``token_id`` is not allowed here.
        DeadlineError
            After :attr:`timeout_seconds`; nothing is read then.
        """
        self.core.advance(token_id)

    def advance_many(self, token_ids: Sequence[int]) -> int:
        """Reads tokens up to the first that is not allowed, and returns how many it read.

        Raises
        ------
        ArgumentError
            If ``token_ids`` contains anything but integers; nothing is read then.
        DeadlineError
            After :attr:`timeout_seconds`; nothing is read then.
        """
        return self.core.advance_many(token_ids)

    def validate_tokens(self, token_ids: Sequence[int]) -> int:
        """Returns how many of the tokens :meth:`advance_many` would read; nothing changes.

        Ids outside the vocabulary, such as the padding ``-1`` of a draft, are not allowed.

        Raises
        ------
        ArgumentError
            If ``token_ids`` contains anything but integers.
        DeadlineError
            After :attr:`timeout_seconds`.

        Examples
        --------
        >>> from formalm import Constraint, Regex, Vocabulary
        >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
        >>> matcher = Constraint(Regex("aab"), vocabulary).matcher()
        >>> matcher.validate_tokens([0, 0, 0]), matcher.token_ids
        (2, [])
        """
        return self.core.validate_tokens(token_ids)

    def advance_bytes(self, text: bytes) -> None:
        """Reads bytes as one step that belongs to no token.

        Raises
        ------
        TokenError
            If no member continues with ``text``; always if tokens must be canonical, because the
            tokens of these bytes are unknown.
        DeadlineError
            After :attr:`timeout_seconds`; nothing is read then.
        """
        self.core.advance_bytes(text)

    def rollback(self, count: int = 1) -> None:
        """Undoes the last ``count`` steps; a call of :meth:`advance_bytes` is one step.

        Raises
        ------
        ArgumentError
            If fewer steps were taken.
        """
        self.core.rollback(count)

    def reset(self) -> None:
        """Returns to the beginning; all steps are undone."""
        self.core.reset()

    def forced_bytes(self) -> bytes:
        """Returns the longest bytes that every continuation begins with; empty if none are.

        Raises
        ------
        DeadlineError
            After :attr:`timeout_seconds`.
        """
        return self.core.forced_bytes()

    def forced_token_ids(self) -> list[int]:
        """Returns the tokens that follow as long as exactly one token is allowed.

        Raises
        ------
        DeadlineError
            After :attr:`timeout_seconds`.
        """
        return self.core.forced_token_ids()

    def fork(self) -> Matcher:
        """Returns an independent matcher at the same position, with the same deadline."""
        return Matcher(self.constraint, self.core.fork())

    def __reduce__(self) -> tuple[object, ...]:
        after, steps = self.core.history()
        core = self.core
        return _read_again, (
            *(self.constraint, after, steps, core.timeout_seconds, core.end_token_ids),
        )

    @property
    def is_accepting(self) -> bool:
        """True if the text so far is in the language."""
        return self.core.is_accepting

    @property
    def is_finished(self) -> bool:
        """True if nothing but the end of the sequence may follow."""
        return self.core.is_finished

    @property
    def is_terminated(self) -> bool:
        """True if an end token was read; :meth:`rollback` of that step makes it False again.

        Engines stop a sequence here. :attr:`is_finished` is True earlier: as soon as nothing but an
        end token may follow.
        """
        return self.core.is_terminated

    @property
    def end_token_ids(self) -> tuple[int, ...]:
        """Ids that end the sequence, ascending: those given to :meth:`Constraint.matcher`, or the
        vocabulary's.
        """
        own = self.core.end_token_ids
        return tuple(sorted(self.constraint.vocabulary.end_token_ids) if own is None else own)

    @property
    def text(self) -> bytes:
        """The bytes read so far; special tokens as :attr:`formalm.SpecialToken.data`."""
        return self.core.text

    @property
    def token_ids(self) -> list[int]:
        """The tokens read so far."""
        return self.core.token_ids

    @property
    def timeout_seconds(self) -> float | None:
        """Maximum time of one call that reads, computes or explains; None means no limit.

        It applies to ``fill_bitmask``, ``bitmask``, ``mask``, ``allowed_token_ids`` and ``allows``,
        to ``advance``, ``advance_many`` and ``advance_bytes``, to ``forced_bytes``,
        ``forced_token_ids`` and ``explain``, to the matcher's row in
        :func:`~formalm.fill_bitmasks`, and to completions within a budget.
        It belongs to the matcher and not to each call, because the code that creates a matcher
        knows the request's deadline, while masks are computed in another library's loop. After a
        :class:`~formalm.DeadlineError`, the same call may be repeated: the work done so far is
        kept. A call waits for a step of another thread. Forks have the same deadline.

        Examples
        --------
        >>> from formalm import Constraint, StringLiteral, Vocabulary
        >>> constraint = Constraint(StringLiteral("yes"), Vocabulary.from_tokens([b"yes", b"no"]))
        >>> matcher = constraint.matcher(timeout_seconds=0.25)
        >>> matcher.allowed_token_ids().tolist(), matcher.fork().timeout_seconds
        ([0], 0.25)
        """
        return self.core.timeout_seconds

    @timeout_seconds.setter
    def timeout_seconds(self, seconds: float | None) -> None:
        self.core.timeout_seconds = checked_seconds("timeout_seconds", seconds)

    @property
    def state_key(self) -> int:
        """A key of the state: matchers of one constraint with equal keys allow equal texts."""
        return self.core.state_key

    def explain(self, token_id: int) -> Explanation:
        r"""Returns why ``token_id`` is allowed here or not: the byte that fails, what was expected.

        Examples
        --------
        >>> from formalm import Constraint, StringLiteral, Vocabulary
        >>> vocabulary = Vocabulary.from_tokens([b"yes", b"yet"])
        >>> print(Constraint(StringLiteral("yes"), vocabulary).matcher().explain(1).text)
        b'yet' is not allowed: b't' cannot follow b'ye', expected is b's'

        >>> from formalm import Grammar
        >>> sums = Grammar('start: number ("+" number)*\nnumber: /[1-9]+/')
        >>> vocabulary = Vocabulary.from_tokens([b"1", b"+*"])
        >>> matcher = Constraint(sums, vocabulary).matcher()
        >>> matcher.advance(0)
        >>> print(matcher.explain(1).text)
        b'+*' is not allowed: b'*' cannot follow b'1+', expected is b'1'-b'9': /[1-9]+/ in number

        Raises
        ------
        DeadlineError
            After :attr:`timeout_seconds`.
        """
        seconds = self.timeout_seconds
        with nullcontext() if seconds is None else _core.Deadline("explain", seconds):
            explained = self._explained(token_id)
        return explained

    def _explained(self, token_id: int) -> Explanation:
        refusal, viable, token, expected, _ = self.core.explain(token_id)
        language = self.constraint.language
        terminals: tuple[Expected, ...] = ()
        if isinstance(language, GrammarQueries) and refusal not in ("ended", "special"):
            terminals = language.expected(self.text + (token or b"")[:viable])
        text = self._sentence(token_id, refusal, viable, token or b"", expected)
        if terminals and refusal in ("not viable", "not a member") and expected:
            text = f"{text}: {_named(terminals)}"
        places = self._places(refusal, token or b"", viable)
        if places:
            text = f"{text}; forbidden by {', '.join(places)}"
        return Explanation(
            refusal is None, token_id, token or b"", viable, expected, text, places, terminals
        )

    def _places(self, refusal: str | None, token: bytes, viable: int) -> tuple[str, ...]:
        language = self.constraint.language
        if refusal == "not a member":
            return language.places_against(self.text, b"")
        if refusal is None or viable >= len(token):
            return ()
        return language.places_against(self.text + token[:viable], token[viable : viable + 1])

    def _sentence(
        self, token_id: int, refusal: str | None, viable: int, token: bytes, expected: bytes
    ) -> str:
        named = _byte_set(expected)
        if self.constraint.has_special and SPECIAL in expected:
            named = " or ".join([*filter(None, [_byte_set(expected[:-1])]), "a special token"])
        wanted = f"expected is {named}" if expected else "nothing may follow"
        if refusal == "ended":
            return f"token {token_id} is not allowed: an end token was read"
        if refusal == "special":
            return f"token {token_id} is special, and the language does not name it"
        if refusal == "not a member":
            return f"the end is not allowed: the text is not in the language yet, {wanted}"
        if refusal == "not canonical":
            return f"{token!r} is not allowed: the tokenizer encodes this text with other tokens"
        if refusal is None and not token:
            return "the end is allowed: the text is in the language"
        special = token.startswith(SPECIAL) and self.constraint.has_special
        name = f"the special token {shown_text(token)!r}" if special else repr(token)
        if refusal is None:
            if not self.constraint.core.is_exact:
                return f"{name} is allowed: no parser refused it; whether a member follows is open"
            return f"{name} is allowed: some member goes on with it"
        read = shown_bytes(self.text + token[:viable])[-20:]
        place = f"follow {read!r}" if read else "come first"
        what = "it" if special else repr(token[viable : viable + 1])
        return f"{name} is not allowed: {what} cannot {place}, {wanted}"

    def __repr__(self) -> str:
        return f"<Matcher after {self.text!r}>"


def _named(terminals: tuple[Expected, ...]) -> str:
    """Returns terminals with their rules; those that have begun come first."""
    names = []
    for one in sorted(terminals, key=lambda one: not one.begun):
        rules = " or ".join(one.rules[:2]) + (" and others" if len(one.rules) > 2 else "")
        goes_on = " (goes on)" if one.begun else ""
        names.append(f"{one.terminal}{goes_on}" + (f" in {rules}" if rules else ""))
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"


def _byte_set(data: bytes) -> str:
    """Returns a short name of a set of bytes: runs as ``a-z``."""
    runs: list[list[int]] = []
    for byte in sorted(data):
        if runs and byte == runs[-1][1] + 1:
            runs[-1][1] = byte
        else:
            runs.append([byte, byte])
    names = []
    for first, last in runs:
        ends = [first] if first == last else [first, last]
        names.append("-".join(repr(bytes([byte])) for byte in ends))
    shown = " ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _read_again(
    constraint: Constraint,
    after: list[int],
    steps: list[tuple[int | None, bytes, bool]],
    timeout_seconds: float | None,
    end_token_ids: list[int] | None = None,
) -> Matcher:
    """Returns a matcher that repeats the steps of another one, for pickling."""
    matcher = constraint.matcher(after=after, end_token_ids=end_token_ids)
    for token, text, inside in steps:
        if token is not None:
            matcher.advance(token)
        elif inside:
            matcher.core.advance_inside(text)
        else:
            matcher.advance_bytes(text)
    matcher.core.timeout_seconds = timeout_seconds
    return matcher
