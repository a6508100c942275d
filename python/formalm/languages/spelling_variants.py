"""Ready-made rules for :meth:`Language.rewrite`: case, whitespace and punctuation variants.

Each function returns a new table, which you may change before use.
"""

from __future__ import annotations

from functools import lru_cache

__all__ = ["case", "punctuation", "whitespace"]

# No script with cases lies beyond Adlam; the rest of Unicode is not worth the time.
LAST_CASED = 0x1E943
BLANKS = (" ", "\t", "\n", "\u00a0", "  ")
ALIKE = (
    ("'", "\u2019", "\u2018", "\u00b4", "`"),
    ('"', "\u201c", "\u201d", "\u201e", "\u00ab", "\u00bb"),
    ("-", "\u2010", "\u2011", "\u2013", "\u2014", "\u2212"),
    ("...", "\u2026"),
)


def case() -> dict[str, list[str]]:
    """Returns rules from every letter with case to its upper, lower and title forms.

    Forms of several letters are included (``"ß"`` becomes ``"SS"``), but not their inverses.

    Examples
    --------
    >>> from formalm import StringLiteral
    >>> from formalm.languages import spelling_variants
    >>> StringLiteral("Paris").rewrite(spelling_variants.case(), optional=True).matches("pARIS")
    True
    """
    return {letter: list(forms) for letter, forms in _cases()}


def whitespace() -> dict[str, list[str]]:
    """Returns rules among a space, two spaces, a tab, a line feed and a no-break space."""
    return _exchanged(BLANKS)


def punctuation() -> dict[str, list[str]]:
    """Returns rules among straight and curly quotes, among dashes, and for the ellipsis.

    Examples
    --------
    >>> from formalm import StringLiteral
    >>> from formalm.languages import spelling_variants
    >>> rules = spelling_variants.punctuation()
    >>> StringLiteral("don't").rewrite(rules, optional=True).matches("don’t")
    True
    """
    table = {}
    for group in ALIKE:
        table.update(_exchanged(group))
    return table


def _exchanged(texts: tuple[str, ...]) -> dict[str, list[str]]:
    return {text: [other for other in texts if other != text] for text in texts}


@lru_cache
def _cases() -> tuple[tuple[str, tuple[str, ...]], ...]:
    pairs = []
    for letter in map(chr, range(LAST_CASED + 1)):
        forms = {letter.upper(), letter.lower(), letter.title()} - {letter}
        if forms:
            pairs.append((letter, tuple(sorted(forms))))
    return tuple(pairs)
