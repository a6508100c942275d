"""The plug-in for SGLang: the grammar backend ``formalm``.

SGLang finds :func:`plugin` by its entry point ``sglang.srt.plugins`` and calls it in each of its
processes before it reads arguments. ``--grammar-backend formalm`` then uses the backend.
"""

from formalm.engines.sglang.registration import plugin, register

__all__ = ["plugin", "register"]
