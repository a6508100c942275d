"""The plug-in for vLLM: the structured-output backend ``formalm``.

vLLM finds :func:`plugin` by its entry point ``vllm.general_plugins`` and calls it in each of its
processes. ``vllm serve MODEL --structured-outputs-config.backend formalm`` then uses the backend.
In a program, call :func:`register` before ``vllm.LLM(..., structured_outputs_config={"backend":
"formalm"})``, because that checks the name before it loads plug-ins.
"""

from formalm.engines.vllm.registration import plugin, register

__all__ = ["plugin", "register"]
