"""Best-first search: the most probable members of a language, in exact order.

The module is not called ``search``, because that is the function's name at the top: Python would
replace ``formalm.search`` with the module as soon as anything imported it.
"""

from formalm.searching.best_first_search import Hit, Search, search

__all__ = ["Hit", "Search", "search"]
