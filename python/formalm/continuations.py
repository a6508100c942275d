"""Continuations of a prompt in the tokenizer's own tokens, and token healing if there are none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from formalm import _core
from formalm.constraint import Constraint, Matcher
from formalm.errors import ArgumentError, TokenError, VocabularyError
from formalm.vocabulary.canonical_tokens import LeadingSpace
from formalm.vocabulary.loaded_vocabulary import token_ids as _integers

__all__ = ["Continuation", "Rest", "begun", "check_heal", "continuation"]


@dataclass(frozen=True, eq=False)
class Continuation:
    """The constraint on the text after a prompt.

    Attributes
    ----------
    token_ids
        The tokens of the prompt that remain.
    regenerated
        The bytes of the tokens removed from the prompt, or the space that a tokenizer puts before a
        text. The continuation begins with them.
    constraint
        The constraint on the continuation: ``regenerated``, if any, followed by a member.
    """

    token_ids: tuple[int, ...]
    regenerated: bytes
    constraint: Constraint

    def matcher(self) -> Matcher:
        """Returns a matcher of the rest."""
        return self.constraint.matcher(after=self.token_ids)

    def over(self, constraint: Constraint) -> Constraint:
        """Returns another constraint after the bytes that precede this one's members."""
        mine = self.constraint
        return Rest(constraint, mine._front, mine._space) if isinstance(mine, Rest) else constraint


class Rest(Constraint):
    """A constraint after some bytes: the rest of one that began in a prompt.

    Its ``language`` is still that of the whole members. Unlike any other constraint, it may have no
    first mask, only masks after a prompt.

    Parameters
    ----------
    whole
        The constraint of the members.
    front
        The bytes before each.
    space
        The rule of the tokenizer, if these bytes are its leading space: an empty text has none.
    """

    __slots__ = ("_front", "_space", "_whole")

    def __init__(self, whole: Constraint, front: bytes, space: LeadingSpace | None = None) -> None:
        self._whole, self._front, self._space = whole, front, space
        if space is not None and whole.has_special:
            raise VocabularyError(
                "the tokenizer inserts a space before a text at the beginning, which a member with"
                " special tokens need not begin with",
                hint='put a special token into the prompt, or use tokenization="all"',
            )
        tokenization, width, memory_limit_bytes, state_limit = whole._key
        super().__init__(
            whole.language,
            whole.vocabulary,
            tokenization=tokenization,
            width=width,
            memory_limit_bytes=memory_limit_bytes,
            state_limit=state_limit,
        )

    @property
    def _text_begin(self) -> str:
        return "after tokens" if self._space is None else "with inserted space"

    def _automaton(self, state_limit: int | None) -> _core.Automaton:
        refused = ord(" ") if self._space is not None and self._space.unless_there else None
        return self._whole._automaton(state_limit).preceded_by(
            self._front, unless_empty=self._space is not None, refused=refused
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rest):
            return False
        mine = (self._front, self._space, self._whole)
        return mine == (other._front, other._space, other._whole)

    def __hash__(self) -> int:
        return hash((self._front, self._space, self._whole))

    def __reduce__(self) -> tuple[object, ...]:
        return Rest, (self._whole, self._front, self._space)


def check_heal(heal: object, tokenization: str) -> None:
    """Refuses a ``heal`` that is not a number of tokens, or that does not apply."""
    if not isinstance(heal, bool) and (type(heal) is not int or heal < 0):
        raise ArgumentError(f"heal must be True, False or a number of tokens, got {heal!r}")
    if heal is not False and tokenization != "canonical":
        raise ArgumentError(
            f"heal={heal!r} does not apply to tokenization={tokenization!r}, where any tokens may"
            " follow a prompt",
            hint='use tokenization="canonical"',
        )


def continuation(
    constraint: Constraint, token_ids: Iterable[int], *, heal: bool | int = False
) -> Continuation:
    """Returns the constraint on the text after a prompt, and heals the prompt's end if requested.

    The last token of a prompt may be one that the tokenizer never produces before a member. After
    ``"Hello "``, the text ``"world"`` has no canonical tokens, because the tokenizer encodes
    ``" world"`` as one token. Healing removes the space from the prompt, and the continuation must
    begin with it.

    Parameters
    ----------
    constraint
        A constraint on canonical tokens. With ``tokenization="all"``, any tokens may follow, and
        nothing is removed.
    token_ids
        The prompt. Special tokens separate texts; none of them is removed.
    heal
        True removes the fewest tokens after which some member can follow, possibly none. A number
        removes at least that many, or all after the last special token, so that the model may
        choose others: *token healing* is ``heal=1``. False removes none.

    Raises
    ------
    TokenError
        If no member follows in canonical tokens: of the whole prompt, or with ``heal`` whatever is
        removed.
    ArgumentError
        For a ``heal`` that does not apply.

    Examples
    --------
    >>> from formalm import Constraint, StringLiteral, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b"])
    >>> constraint = Constraint(StringLiteral("b"), vocabulary)
    >>> continuation(constraint, [0]).token_ids
    (0,)
    """
    if not isinstance(constraint, Constraint):
        raise ArgumentError(f"constraint must be a Constraint, got {type(constraint).__name__}")
    return begun(constraint, token_ids, heal=heal)[0]


def begun(
    constraint: Constraint, token_ids: Iterable[int], *, heal: bool | int
) -> tuple[Continuation, Matcher]:
    """Returns :func:`continuation` and its matcher, which the search for it needs anyway."""
    ids = tuple(_integers(token_ids))
    check_heal(heal, constraint.tokenization)
    if constraint.tokenization == "canonical":
        space = constraint.vocabulary.space_after(ids)
        if space is not None:
            return _begun(Continuation(ids, b" ", Rest(constraint, b" ", space)))
    least = int(heal) if heal is not True else 0
    whole = Continuation(ids, b"", constraint)
    if least == 0:
        try:
            return _begun(whole)
        except TokenError:
            if heal is False:
                raise
            least = 1
    most = len(constraint.vocabulary.last_text(ids))
    # If nothing can be removed, the error says why nothing follows.
    return _fewest(constraint, ids, min(least, most), most) if most else _begun(whole)


def _fewest(
    constraint: Constraint, ids: tuple[int, ...], least: int, most: int
) -> tuple[Continuation, Matcher]:
    """Removes the fewest tokens that suffice, from ``least`` to ``most``.

    Whatever follows after removing some tokens follows after removing more, so the number is found
    by doubling and bisection.
    """
    failed, count, step = least - 1, least, 1
    found = _given_back(constraint, ids, count)
    while found is None and count < most:
        failed, count, step = count, min(count + step, most), 2 * step
        found = _given_back(constraint, ids, count)
    if found is None:
        raise TokenError(
            "no member continues the prompt in canonical tokens, however many of its tokens are"
            " given back",
            hint='use tokenization="all", or change the prompt',
        )
    while count - failed > 1:
        middle = (failed + count) // 2
        better = _given_back(constraint, ids, middle)
        if better is None:
            failed = middle
        else:
            found, count = better, middle
    return found


def _given_back(
    constraint: Constraint, ids: tuple[int, ...], count: int
) -> tuple[Continuation, Matcher] | None:
    """Returns the continuation without the last ``count`` tokens, if a member can follow."""
    kept, back = ids[: len(ids) - count], ids[len(ids) - count :]
    text = constraint.vocabulary.decode(back)
    try:
        return _begun(Continuation(kept, text, Rest(constraint, text)))
    except TokenError:
        return None


def _begun(found: Continuation) -> tuple[Continuation, Matcher]:
    return found, found.matcher()
