"""Checks that every given prefix starts a member, and lists a finite language's members."""

from __future__ import annotations

from collections import deque
from functools import lru_cache

from formalm.constraint import Constraint
from formalm.errors import LanguageError, LimitError
from formalm.languages import Choice, Language
from formalm.languages.special_tokens import special_tokens_of
from formalm.query.state_ids import States
from formalm.vocabulary import Vocabulary

__all__ = ["PREFIX_LIMIT", "anything", "byte_vocabulary", "check_prefixes", "members"]

PREFIX_LIMIT = 10_000
PAIR_LIMIT = 100_000


@lru_cache(maxsize=1)
def byte_vocabulary() -> Vocabulary:
    """Returns a vocabulary of all single bytes: a constraint over it walks the language itself."""
    return Vocabulary.from_tokens([bytes([byte]) for byte in range(256)])


@lru_cache(maxsize=1)
def anything() -> Language:
    """Returns the language of all byte sequences."""
    return Choice([bytes([byte]) for byte in range(256)]).star()


def check_prefixes(given: Language, language: Language, pair_limit: int = PAIR_LIMIT) -> None:
    """Refuses a prefix language with a string that no member starts with.

    Raises
    ------
    LanguageError
        With the first such string, and the place in it where no member continues.
    LimitError
        If more than ``pair_limit`` pairs of states would have to be examined.
    """
    machine = language.machine()
    if machine is not None and not machine.is_exact:
        # Parsers read characters, not bytes.
        for text in members(given):
            good = machine.viable_length(text)
            if good < len(text):
                raise _mismatch(text, good)
        return
    vocabulary = byte_vocabulary()
    names = special_tokens_of(language)
    if names:
        # No text contains them, but the vocabulary that the language is read over does.
        ids = {name: 256 + number for number, name in enumerate(names)}
        tokens = [*vocabulary.tokens(), *(None for _ in names)]
        vocabulary = Vocabulary.from_tokens(tokens, special_tokens=ids)
    left, right = (States(Constraint(one, vocabulary)) for one in (given, language))
    start = (left.after(b""), right.after(b""))
    seen = {start}
    queue = deque([(start, b"")])
    while queue:
        (state, other), text = queue.popleft()
        viable = set(right.allowed(other).tolist())
        for byte in left.allowed(state).tolist():
            longer = text + bytes([byte])
            if byte not in viable:
                raise _mismatch(given.shortest(longer) or longer, len(text))
            pair = (left.step(state, byte), right.step(other, byte))
            if pair not in seen:
                seen.add(pair)
                if len(seen) > pair_limit:
                    what = "pairs of states to compare given with the language"
                    raise LimitError(what, len(seen), pair_limit)
                queue.append((pair, longer))


def _mismatch(text: bytes, good: int) -> LanguageError:
    shown = text.decode(errors="replace")
    start = len(text[:good].decode(errors="ignore"))
    if good == 0:
        viable = "no member starts with its first byte"
    else:
        some = f"{good} bytes are" if good > 1 else "byte is"
        viable = f"only its first {some} viable"
    return LanguageError(
        f"given must be a prefix of a member, got {shown!r}: {viable}",
        source=shown,
        span=(start, len(shown)),
        hint="given is part of the member; to pass context outside the language, use prompt",
    )


def members(
    language: Language, limit: int = PREFIX_LIMIT, *, what: str = "strings in given"
) -> list[bytes]:
    """Returns all members of a finite language, by length and then by bytes.

    Raises
    ------
    LimitError
        If there are more than ``limit``, or infinitely many.
    """
    automaton = language.to_automaton()
    if not automaton.is_finite or automaton.count() > limit:
        hint = (
            "list the strings, or narrow the pattern (a+ has infinitely many). A search with"
            " prefix_cost='joint' takes any number of them"
        )
        raise LimitError(what, limit + 1, limit, hint)
    listed = automaton.enumerate(unit="bytes")
    return [text if isinstance(text, bytes) else text.encode() for text in listed]
