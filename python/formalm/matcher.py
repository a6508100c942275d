"""A position in a constraint: what may follow the tokens read so far, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm.automata.texts import SPECIAL, checked_seconds, shown_bytes, shown_text
from formalm.languages.derivations import Derivations, Expected

if TYPE_CHECKING:
    from formalm.constraint import Constraint

__all__ = ["Explanation", "Matcher"]

#: What a matcher has from the core as it is.
CALLS = (
    "advance",
    "advance_bytes",
    "advance_many",
    "allowed_token_ids",
    "allows",
    "bitmask",
    "fill_bitmask",
    "forced_bytes",
    "forced_token_ids",
    "mask",
    "reset",
    "rollback",
)


@dataclass(frozen=True)
class Explanation:
    """Why a token is allowed after a text, or why not.

    Attributes
    ----------
    allowed
        Whether the mask has the token.
    token_id
        The token asked about.
    token
        Its bytes; empty for a special token that the language does not name.
    viable_bytes
        How many of its bytes, from the first, some member goes on with.
    expected
        The bytes that may stand after those.
    text
        The same in a sentence.
    places
        What of the language's description forbids the token, where it is known: for a
        :class:`~formalm.JsonSchema` the JSON pointers of the keywords without which it would be
        allowed, as few as possible together, or the name of an option that forbids it.
    terminals
        For a :class:`~formalm.Grammar`: the terminals that may stand after those bytes, with the
        rules they are written in.
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
    """One sequence's position in a constraint: what may follow, and the steps so far.

    Made by :meth:`Constraint.matcher` and :meth:`fork`. A matcher belongs to one thread at a time;
    two at once are a :class:`~formalm.ConcurrencyError`. The calls of a decoding loop go straight
    to the core: ``fill_bitmask(out, row=0)`` (writes the mask into a row of an int32 array or CPU
    tensor), ``bitmask()`` (the mask as a read-only int32 array ``(ceil(width / 32),)``, which is
    not copied: positions with the same mask share one, as far as 0.8 MB holds them),
    ``advance(token_id)``, ``rollback(count=1)``, ``allows(token_id)``, ``mask()`` (bool
    array ``(width,)``), ``allowed_token_ids()`` (uint32 array), ``advance_many(token_ids)`` (how
    many were accepted), ``advance_bytes(text)``, ``reset()``, ``forced_bytes()``,
    ``forced_token_ids()``.
    Where tokens must be canonical, ``advance_bytes`` always refuses: bytes have no tokens.
    With :attr:`timeout_seconds`, calls that ask which tokens are allowed raise
    :class:`~formalm.DeadlineError` where they take longer, and change nothing then.
    ``advance`` and ``advance_bytes`` raise :class:`~formalm.TokenError` for what is not allowed and
    change nothing then.
    """

    __slots__ = (*CALLS, "constraint", "core")

    fill_bitmask: Callable[..., None]
    bitmask: Callable[[], npt.NDArray[np.int32]]
    mask: Callable[[], npt.NDArray[np.bool_]]
    allowed_token_ids: Callable[[], npt.NDArray[np.uint32]]
    allows: Callable[[int], bool]
    advance: Callable[[int], None]
    advance_many: Callable[[Sequence[int]], int]
    advance_bytes: Callable[[bytes], None]
    rollback: Callable[..., None]
    reset: Callable[[], None]
    forced_bytes: Callable[[], bytes]
    forced_token_ids: Callable[[], list[int]]

    def __init__(self, constraint: Constraint, core: _core.Matcher) -> None:
        self.constraint = constraint
        self.core = core
        # Bound once: a wrapper's own call would cost a tenth of a mask.
        self.bitmask = core.bitmask
        self.fill_bitmask = core.fill_bitmask
        self.advance = core.advance

    def __getattr__(self, name: str) -> Any:
        # The other calls are bound when they are first asked for: most matchers need few of them.
        if name not in CALLS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        call = getattr(self.core, name)
        setattr(self, name, call)
        return call

    def fork(self) -> Matcher:
        """An independent matcher at the same position."""
        return Matcher(self.constraint, self.core.fork())

    def __reduce__(self) -> tuple[object, ...]:
        after, steps = self.core.history()
        return _read_again, (self.constraint, after, steps, self.core.timeout_seconds)

    @property
    def is_accepting(self) -> bool:
        """Whether the text so far is in the language."""
        return self.core.is_accepting

    @property
    def is_finished(self) -> bool:
        """Whether nothing but the end of the sequence may follow."""
        return self.core.is_finished

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
        """Most time for one call that asks which tokens are allowed; None is no limit.

        It holds for ``fill_bitmask``, ``bitmask``, ``mask``, ``allowed_token_ids`` and ``allows``,
        for the matcher's row in :func:`~formalm.fill_bitmasks`, and for completions within a
        budget. It belongs to the matcher rather than to each call: who makes a matcher knows the
        request's deadline, while masks are mostly asked for in a loop of somebody else's, and
        calls without a deadline cost what they did. A matcher can be asked again after a
        :class:`~formalm.DeadlineError`, at once or with more time; what was found out until then
        is kept. A step of another thread at the same time is waited for. Forks have the same.

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
        """Matchers of one constraint with equal keys have equal futures."""
        return self.core.state_key

    def explain(self, token_id: int) -> Explanation:
        r"""Why ``token_id`` is allowed here or not: which byte fails, what was expected.

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
        """
        refusal, viable, token, expected, _ = self.core.explain(token_id)
        language = self.constraint.language
        terminals: tuple[Expected, ...] = ()
        if isinstance(language, Derivations) and refusal not in ("ended", "special"):
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
            return f"{token!r} is not allowed: the tokenizer writes such texts in other tokens"
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
    """Terminals with the rules they are in, those under way first."""
    names = []
    for one in sorted(terminals, key=lambda one: not one.begun):
        rules = " or ".join(one.rules[:2]) + (" and others" if len(one.rules) > 2 else "")
        goes_on = " (goes on)" if one.begun else ""
        names.append(f"{one.terminal}{goes_on}" + (f" in {rules}" if rules else ""))
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"


def _byte_set(data: bytes) -> str:
    """A short name of a set of bytes: runs as ``a-z``."""
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
) -> Matcher:
    """A matcher that has read what another one had, step by step."""
    matcher = constraint.matcher(after=after)
    for token, text, inside in steps:
        if token is not None:
            matcher.advance(token)
        elif inside:
            matcher.core.advance_inside(text)
        else:
            matcher.advance_bytes(text)
    matcher.core.timeout_seconds = timeout_seconds
    return matcher
