"""Lengths beyond which a model computes differently: attention windows, rotary positions.

The behavior of a model beyond such a length cannot be seen in shorter inputs. The comparison at
load time reads beyond the lengths it can afford, narrows the windows it can narrow, and names the
rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from formalm.models.transformers.facts import rope_parameters, text_config

__all__ = ["NARROW", "Windows", "switches_of", "windows_of"]

# Windows that the library's masks and caches read from the configuration at every forward pass.
FORWARD = ("sliding_window", "attention_chunk_size")
# Windows that models read when they are built.
BUILT = ("window_size", "attention_window_size", "block_size", "index_topk")
# Number of positions of a row that are attended to, including padding. Few prefixes reveal it,
# so no comparison finds it reliably.
SPARSE = "keep_window_size"
NARROW = 4
# Maximum tokens of a prefix in the comparison, and maximum tokens × parameters of a pass.
LONGEST = 160
WORK = {"cpu": 1e10}
WORK_ELSEWHERE = 2e12


class Windows:
    """The attention windows of a model: within reach of a comparison, narrowed for it, or neither.

    Attributes
    ----------
    reached
        Lengths that prefixes of the comparison exceed without changes.
    narrowed
        Names and lengths of the windows that are narrowed during the comparison.
    unseen
        Windows that are not compared.
    is_sparse
        True if a prefix is reliable only when evaluated alone and from the start.
    """

    def __init__(
        self, model: Any, found: dict[str, int], switches: tuple[int, ...], reach: int
    ) -> None:
        # A switch out of reach needs no comparison: longer prefixes are always kept separate.
        self.reached = {length for length in (*found.values(), *switches) if length <= reach}
        beyond = {name: length for name, length in found.items() if length > reach}
        self.is_sparse = _length(text_config(model), SPARSE) is not None
        # Other kernels are built with the window, so narrowing would not change them.
        kernel = getattr(text_config(model), "_attn_implementation", None)
        narrow = kernel in ("eager", "sdpa")
        self.narrowed = {name: beyond[name] for name in beyond if narrow and name in FORWARD}
        self.unseen = {name: beyond[name] for name in beyond if name not in self.narrowed}
        # The parts of a model may have copies of its configuration.
        parts = [text_config(model)]
        parts += [module.config for module in model.modules() if hasattr(module, "config")]
        self._configs = list({id(config): config for config in parts}.values())

    @property
    def lengths(self) -> set[int]:
        """Prefix lengths that end one token after each window, and some that are longer."""
        ends = self.reached | ({NARROW} if self.narrowed else set())
        return {end + more for end in ends for more in (1, 4)}

    @contextmanager
    def narrow(self) -> Iterator[None]:
        """Narrows the windows of the configuration temporarily."""
        places = [
            (config, name, length)
            for name, length in self.narrowed.items()
            for config in self._configs
            if _length(config, name) == length
        ]
        try:
            for config, name, _ in places:
                setattr(config, name, NARROW)
            yield
        finally:
            for config, name, length in places:
                setattr(config, name, length)


def windows_of(model: Any, context_length: int | None) -> Windows:
    """Returns the windows that an input can exceed, and which of them a comparison can reach."""
    config = text_config(model)
    lengths = {name: _length(config, name) for name in (*FORWARD, *BUILT)}
    found = {
        name: length
        for name, length in lengths.items()
        if length and (context_length is None or length < context_length)
    }
    size = max(1, sum(weights.numel() for weights in model.parameters()))
    reach = int(min(LONGEST, WORK.get(model.device.type, WORK_ELSEWHERE) / size)) - 4
    return Windows(model, found, switches_of(model), reach)


def switches_of(model: Any) -> tuple[int, ...]:
    """Returns the longest prefix length for each set of rotary factors that the model uses.

    Under LongRoPE, the length of the longest prefix in a batch decides the factors of all positions
    of all its prefixes. Prefixes on different sides of such a length must share neither a batch nor
    a cache.
    """
    config = text_config(model)
    switches = set()
    for part in rope_parameters(config):
        if part.get("rope_type", part.get("type")) in ("longrope", "su"):
            switches.add(
                part.get("original_max_position_embeddings")
                or _length(config, "original_max_position_embeddings")
                or _length(config, "max_position_embeddings")
            )
    return tuple(sorted(length for length in switches if length))


def _length(config: Any, name: str) -> int | None:
    try:
        value = getattr(config, name, None)
    except RuntimeError:  # the library's result if layers have different values
        return None
    return value if type(value) is int and value > 0 else None
