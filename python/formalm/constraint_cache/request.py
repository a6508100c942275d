"""One request to a cache: its language, options and deadline."""

from __future__ import annotations

import time
from typing import NamedTuple

from formalm.argument_checks import checked_seconds
from formalm.constraint import Constraint, ConstraintOptions
from formalm.constraint_keys import Key, description_of
from formalm.errors import ArgumentError, DeadlineError, LimitError
from formalm.languages import Language
from formalm.vocabulary import Vocabulary

__all__ = ["Request", "RequestLimits", "is_long"]

#: Options of a constraint that the cache takes.
OPTIONS = ("tokenization", "width", "memory_limit_bytes", "state_limit")

#: Seconds between checks that a compilation that is waited for still runs. Chosen, not measured.
PAUSE = 0.5

#: Characters of a description above which a coroutine reads it in a thread: that takes 0.1 ms.
LONG = 1 << 14


class RequestLimits(NamedTuple):
    """The vocabulary of a cache, and its limits of one request."""

    vocabulary: Vocabulary
    timeout_seconds: float | None
    max_description_bytes: int


class Request:
    """A request: its language, options and deadline."""

    def __init__(
        self, limits: RequestLimits, timeout_seconds: float | None, options: ConstraintOptions
    ) -> None:
        for name in options:
            if name not in OPTIONS:
                raise ArgumentError(
                    f"options must be those of Constraint, got {name}",
                    hint=f"the options are {', '.join(OPTIONS)}",
                )
        self.begun = time.monotonic()
        given = checked_seconds("timeout_seconds", timeout_seconds)
        self.allowed = limits.timeout_seconds if given is None else given
        self.options = options
        self.size = 0
        self._limits = limits

    def describe(self, language: object) -> None:
        """Reads the language and computes its key."""
        limits = self._limits
        self._description = description_of(language)
        self.size = self._description.size
        if self.size > limits.max_description_bytes:
            hint = "raise max_description_bytes of the cache"
            raise LimitError("bytes of description", self.size, limits.max_description_bytes, hint)
        options = tuple(self.options.get(name) for name in OPTIONS)
        self.key: Key = self._description.key(limits.vocabulary.fingerprint, options)

    def compiled(self) -> Constraint:
        """Compiles the constraint in the time that is left."""
        left = self.seconds_left()
        if left is not None and left <= 0:
            raise self._late("wait")
        try:
            return Constraint(
                self._description.made(),
                self._limits.vocabulary,
                timeout_seconds=left,
                **self.options,
            )
        except DeadlineError as error:
            if self.allowed is None:
                raise
            # Errors are compared by the time that the whole request had.
            raise DeadlineError(error.what, self._taken(), self.allowed, error.hint) from None

    def settles(self, error: Exception) -> bool:
        """Returns True if another request's error applies: of a deadline, if ours is no later."""
        if not isinstance(error, DeadlineError):
            return True
        is_compile = error.what == "compile"
        return is_compile and self.allowed is not None and self.allowed <= error.allowed

    def seconds_left(self) -> float | None:
        """Returns the seconds until the deadline; None without one."""
        return None if self.allowed is None else self.allowed - self._taken()

    def pause(self) -> float:
        """Returns the seconds until the next check that the compilation still runs."""
        left = self.seconds_left()
        return PAUSE if left is None else min(PAUSE, max(left, 0.001))

    def check_wait(self, grace: float = 0.0) -> None:
        """Raises if the time is over."""
        left = self.seconds_left()
        if left is not None and left + grace <= 0:
            raise self._late("wait")

    def _late(self, what: str) -> DeadlineError:
        assert self.allowed is not None
        return DeadlineError(what, self._taken(), self.allowed)

    def _taken(self) -> float:
        return time.monotonic() - self.begun


def is_long(language: object) -> bool:
    """Returns True if reading a description could hold up an event loop."""
    if isinstance(language, Language):
        arguments = language._arguments
        return sum(len(one) for one in arguments if isinstance(one, str | bytes | tuple)) > LONG
    return True
