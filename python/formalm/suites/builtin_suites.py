"""Built-in suites, loaded from the TOML files of this package."""

from __future__ import annotations

from pathlib import Path

from formalm.errors import SuiteError
from formalm.suites.suite import Suite

__all__ = ["builtin", "builtin_names"]

LIBRARY = Path(__file__).with_name("library")
SUFFIX = ".toml"


def builtin_names() -> list[str]:
    """Returns the names of the built-in suites.

    Examples
    --------
    >>> from formalm.suites import builtin_names
    >>> "bias.professions" in builtin_names()
    True
    """
    return sorted(path.name.removesuffix(SUFFIX) for path in LIBRARY.glob(f"*{SUFFIX}"))


def builtin(name: str) -> Suite:
    """Returns a built-in suite.

    Parameters
    ----------
    name
        One of :func:`builtin_names`.

    Raises
    ------
    SuiteError
        If there is no suite of that name.

    Examples
    --------
    >>> from formalm.suites import builtin
    >>> builtin("bias.professions").title
    'Do professions depend on gender?'
    """
    known = builtin_names()
    if name not in known:
        raise SuiteError(
            f"name must be a built-in suite, got {name!r:.60}",
            hint=f"the built-in suites are {', '.join(known)}",
        )
    return Suite.read(LIBRARY / f"{name}{SUFFIX}")
