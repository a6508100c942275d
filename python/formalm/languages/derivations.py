"""What grammars know of their members beside that they are: how they are derived."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeAlias

from formalm import _core
from formalm.languages.language import Language
from formalm.languages.trees import STEP_LIMIT, Tree, parsed

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Derivations", "Written"]

#: Text, syntax, lexing, start and languages of a grammar, as the core takes them.
Written: TypeAlias = "tuple[str, str, str | None, str | None, list[tuple[str, _core.Expression]]]"


class Derivations(Language):
    """A language whose members are derived by rules: the part of :class:`Grammar` that tells how.

    The core reads the text once more for it, when it is first asked: the machine of a grammar keeps
    nothing of rules.
    """

    __slots__ = ("_trees",)

    def __init__(self, *arguments: Hashable) -> None:
        super().__init__(*arguments)
        self._trees: _core.Trees | None = None

    @abstractmethod
    def _written(self) -> Written:
        """What the core reads the grammar from."""

    def _core_trees(self) -> _core.Trees:
        if self._trees is None:
            self._trees = _core.Trees(*self._written())
        return self._trees

    def parse(
        self,
        text: str | bytes,
        *,
        ambiguity: str = "first",
        whole: bool = False,
        step_limit: int = STEP_LIMIT,
    ) -> Tree:
        """The tree of a member: its rules, and the lexemes of its terminals with their places.

        Trees have the shape that Lark gives them: ``?rule`` with one child is that child,
        ``_rule`` hands its children on, texts within rules and terminals that begin with ``_`` are
        left out but under ``!rule``, aliases name alternatives, and ``[x]`` that is not there is
        None. The root is a tree always. In GBNF and EBNF everything is shown. What is ignored
        is in no tree.

        Where a text has several trees, that is counted in ``ways``. The one taken has at each place
        the alternative that is written first; in it the last symbol is as short as it can be,
        then the one before it. Ways that come back to the same rule at the same place are left out.

        Parameters
        ----------
        text
            A member.
        ambiguity
            ``"first"`` takes that tree, ``"refuse"`` refuses a text with several.
        whole
            Show what the shape leaves out too, marked by ``kept``.
        step_limit
            Most steps to take; ordinary grammars take some dozens for each lexeme.

        Raises
        ------
        TokenError
            If the text is not a member.
        LanguageError
            If it has several trees and they are refused.
        LimitError
            If more steps are needed.

        Examples
        --------
        >>> from formalm import Grammar
        >>> sums = Grammar('''
        ...     ?start: start "+" NUMBER -> add
        ...           | NUMBER
        ...     NUMBER: /[0-9]+/
        ... ''')
        >>> tree = sums.parse("1+22")
        >>> print(tree.pretty())
        add
          start
            NUMBER '1'
          NUMBER '22'
        >>> tree.children[1].span, tree.ways
        ((2, 4), 1)
        """
        return parsed(self._core_trees(), self.automaton(), text, ambiguity, whole, step_limit)
