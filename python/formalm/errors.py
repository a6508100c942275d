"""All exceptions that formalm raises on purpose.

::

    FormalmError
    ├── LanguageError      a pattern or combination is not a supported language
    ├── LimitError         a step needs more of a resource than its limit
    ├── DeadlineError      a call took longer than its ``timeout_seconds``
    ├── VocabularyError    a tokenizer file or token list cannot be read or trusted
    ├── TokenError         a token or text that the language does not allow here
    ├── ConcurrencyError   two threads use one matcher or search at once
    ├── ParserError        a user's parser failed or violated its contract
    ├── ModelError         a model does not fit its vocabulary, or returns invalid values
    ├── SuiteError         a suite file or a run of a suite is invalid
    └── ArgumentError      a wrong type, dtype, shape, range or combination of arguments

Errors are data: a message, numbers, a span of the source, and a hint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "ArgumentError",
    "ConcurrencyError",
    "DeadlineError",
    "FormalmError",
    "LanguageError",
    "LimitError",
    "ModelError",
    "ParserError",
    "SuiteError",
    "TokenError",
    "VocabularyError",
]


class FormalmError(Exception):
    """The base class of all errors.

    Parameters
    ----------
    message
        The problem, in one sentence.
    hint
        The remedy.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  hint: {self.hint}"


class _PlacedError(FormalmError, ValueError):
    """An error with a span in the user's text."""

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        span: tuple[int, int] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.source = source
        self.span = span

    def __str__(self) -> str:
        lines = self._placed()
        if self.hint is not None:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def _placed(self) -> list[str]:
        """Returns the message, and the span if there is one."""
        if self.source is None or self.span is None:
            return [self.message]
        return [self.message, *_caret(self.source, *self.span)]


class LanguageError(_PlacedError):
    """A pattern or combination is not a supported language.

    Parameters
    ----------
    message, hint
        As in :class:`FormalmError`.
    source
        The user's text.
    span
        ``(start, end)`` in characters of ``source``.
    """


class LimitError(FormalmError, RuntimeError):
    """A step needs more of a resource than its limit.

    Parameters
    ----------
    what
        The resource, such as ``"states"`` or ``"tokens"``.
    needed
        The amount needed; a lower bound if the work stopped early.
    allowed
        The limit.
    hint
        The remedy.
    is_estimate
        ``needed`` is the best that a bounded search found, so less may suffice.
    """

    def __init__(
        self,
        what: str,
        needed: int,
        allowed: int,
        hint: str | None = None,
        *,
        is_estimate: bool = False,
    ) -> None:
        message = f"needs at least {needed:,} {what}, but the limit is {allowed:,}"
        if is_estimate:
            message = f"{allowed:,} {what} may not suffice: {needed:,} are the fewest found"
        super().__init__(message, hint=hint)
        self.what = what
        self.needed = needed
        self.allowed = allowed
        self.is_estimate = is_estimate

    def __reduce__(self) -> tuple[object, ...]:
        return _limit_error, (self.what, self.needed, self.allowed, self.hint, self.is_estimate)


def _limit_error(
    what: str, needed: int, allowed: int, hint: str | None, is_estimate: bool
) -> LimitError:
    """Makes the error again from a pickle."""
    return LimitError(what, needed, allowed, hint, is_estimate=is_estimate)


class DeadlineError(FormalmError, TimeoutError):
    """A call took longer than its ``timeout_seconds``.

    The object that was called is unchanged and can be called again; it keeps the work done so
    far.

    Parameters
    ----------
    what
        The task: ``"compile"`` (a language), ``"mask"`` (any call of a matcher that computes
        allowed tokens), ``"advance"`` (tokens or bytes that a matcher reads), ``"forced"``,
        ``"explain"``, ``"follow"`` (the tokens before a matcher's start) or ``"wait"`` (for a
        constraint that another thread compiles).
    needed
        Seconds that had passed when it ended: a lower bound on the time needed.
    allowed
        The deadline, in seconds.
    hint
        The remedy.
    """

    def __new__(cls, *_arguments: object, **_keywords: object) -> Self:
        """Ignores the arguments, which OSError would read as an error number and a message."""
        return super().__new__(cls)

    def __init__(self, what: str, needed: float, allowed: float, hint: str | None = None) -> None:
        if hint is None:
            hint = "raise timeout_seconds, or call again: the work done so far is kept"
        message = f"{what} needs more than {needed:.3g} seconds, but the limit is {allowed:.3g}"
        super().__init__(message, hint=hint)
        self.what = what
        self.needed = needed
        self.allowed = allowed

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.needed, self.allowed, self.hint)


def lone_surrogate(name: str, text: str) -> tuple[str, str, tuple[int, int]]:
    """Returns the message, hint and span of the error for a string without a UTF-8 form."""
    at = next(at for at, one in enumerate(text) if "\ud800" <= one <= "\udfff")
    what = f"{name} must be encodable as UTF-8, got the lone surrogate {text[at]!r} at index {at}"
    hint = (
        "a lone surrogate comes from decoding with errors='surrogateescape' or from half of a"
        " UTF-16 pair; decode the bytes as UTF-8, or replace it"
    )
    return what, hint, (at, at + 1)


class VocabularyError(FormalmError, ValueError):
    """A tokenizer file or token list cannot be read or trusted."""


class TokenError(FormalmError, ValueError):
    """A token or text that the language does not allow here.

    Parameters
    ----------
    message, hint
        As in :class:`FormalmError`.
    token_id
        The token that was refused, if it was one.
    """

    def __init__(
        self, message: str, *, token_id: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.token_id = token_id


class ConcurrencyError(FormalmError, RuntimeError):
    """Two threads used one matcher or one search at once.

    Give each thread a ``fork()`` of the matcher, or a search of its own. In a forked process: a
    thread of the parent was changing a language, or a constraint over it, that cannot be compiled
    again, because its parser's ``copy()`` fails.
    """


class ParserError(FormalmError, RuntimeError):
    """A user's parser failed or violated its contract.

    The exception that it raised, if any, is the ``__cause__``.
    """


class ModelError(FormalmError, ValueError):
    """A model does not fit its vocabulary, or returns invalid values.

    Parameters
    ----------
    message, hint
        As in :class:`FormalmError`.
    status
        The HTTP status of a server's refusal, if there was one.
    """

    def __init__(self, message: str, *, hint: str | None = None, status: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class SuiteError(_PlacedError):
    """A suite file or a run of a suite is invalid.

    Parameters
    ----------
    message, hint
        As in :class:`FormalmError`.
    source
        The text of the file, if the mistake is in a file.
    span
        ``(start, end)`` in characters of ``source``.
    """

    @property
    def line(self) -> int | None:
        """The line of the mistake, from 1; None if it is not in a file."""
        place = self._place
        return None if place is None else place[0]

    @property
    def column(self) -> int | None:
        """The column at which it begins, in characters from 1."""
        place = self._place
        return None if place is None else place[1]

    def _placed(self) -> list[str]:
        if self.source is None or self.span is None:
            return [self.message]
        start, end = self.span
        first = self.source.rfind("\n", 0, start) + 1
        row = self.source[first:].split("\n", 1)[0]
        end = max(min(end - first, len(row)), start - first + 1)
        message = f"{self.message} (line {self.line}, column {self.column})"
        return [message, *_caret(row, start - first, end)]

    @property
    def _place(self) -> tuple[int, int] | None:
        if self.source is None or self.span is None:
            return None
        before = self.source[: self.span[0]]
        return before.count("\n") + 1, len(before) - before.rfind("\n")


class ArgumentError(FormalmError, ValueError):
    """A wrong type, dtype, shape, range or combination of arguments."""


def _caret(source: str, start: int, end: int, width: int = 72) -> list[str]:
    """Returns two lines: a window of the source, and carets under the span."""
    left = max(0, start - width // 2)
    window = source[left : left + width]
    printable = "".join(c if c.isprintable() else "·" for c in window)
    lead = "…" if left else ""
    tail = "…" if left + width < len(source) else ""
    carets = max(1, min(end, left + width) - start)
    return [f"  {lead}{printable}{tail}", "  " + " " * (len(lead) + start - left) + "^" * carets]
