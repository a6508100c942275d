"""GPT-2's forward pass in NumPy, with a key-value cache shared between forks.

Weights are stored as float16 and computed with in float32; only the last step, the logarithm of the
softmax, is float64. Batched and single, cached and fresh evaluations agree up to the rounding of
float32 sums, whose order the linear algebra library chooses.

The cache is a value. A :class:`State` refers to the keys and values of its prefix in blocks that
all of its continuations share. A search frontier therefore costs one row per token, not one prefix
per state. Gathering those blocks for each step copies them. That is slower than a cache updated in
place, and is the price of free forks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formalm.errors import ModelError

Float = NDArray[np.float32]

SIZES = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
LARGEST = 1 << 24
"""Largest size in a configuration: larger ones are damage, and would be allocated."""
FIXED = {
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-05,
    "tie_word_embeddings": True,
}
"""The configuration entries that this forward pass assumes, with their values."""

_ROWS = 128  # maximum number of sequences evaluated together, which bounds the memory of a step


@dataclass(frozen=True, eq=False)
class State:
    """A prefix that has been evaluated.

    Attributes
    ----------
    logprobs
        Natural log-probabilities of the next token, float64, shape ``(width,)``.
    length
        Number of tokens in the prefix.
    blocks
        Keys and values of the prefix, arrays of shape ``(tokens, layers, 2, heads, size)``.
    """

    logprobs: NDArray[np.float64]
    length: int
    blocks: tuple[Float, ...]

    @property
    def memory_bytes(self) -> int:
        """Memory that this state adds to the one it was extended from, without its answer."""
        return self.blocks[-1].nbytes

    def bare(self) -> State:
        """Returns the same prefix without its log-probabilities, to continue from."""
        return State(self.logprobs[:0].copy(), self.length, self.blocks)


@dataclass(frozen=True)
class Layer:
    """The weights of one transformer layer, by their names in the file."""

    weights: Mapping[str, Float]

    def normed(self, name: str, x: Float) -> Float:
        """Applies a layer normalization."""
        return layer_norm(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def mapped(self, name: str, x: Float) -> Float:
        """Applies an affine map."""
        return _affine(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])


class Gpt2:
    """A GPT-2 network.

    Parameters
    ----------
    weights
        Arrays by Hugging Face's names, with or without the prefix ``transformer.``. The output
        matrix is the token embedding.
    config
        The entries of ``config.json``.
    """

    def __init__(self, weights: Mapping[str, NDArray[Any]], config: Mapping[str, Any]) -> None:
        arrays = {
            name.removeprefix("transformer."): np.ascontiguousarray(array, dtype=np.float32)
            for name, array in weights.items()
        }
        self.heads = int(config["n_head"])
        self.context_length = int(config["n_positions"])
        self.width = int(config["vocab_size"])
        self._embedding, self._places = arrays["wte.weight"], arrays["wpe.weight"]
        self._unembedding = np.ascontiguousarray(self._embedding.T)
        self._final = arrays["ln_f.weight"], arrays["ln_f.bias"]
        self._layers = [_layer(arrays, number) for number in range(int(config["n_layer"]))]
        self._size = self._embedding.shape[1] // self.heads

    @classmethod
    def load(cls, directory: Path) -> Gpt2:
        """Reads ``config.json`` and ``model.safetensors`` from a directory.

        Raises
        ------
        ModelError
            If a file cannot be read, or the files do not belong together.
        """
        config, weights = directory / "config.json", directory / "model.safetensors"
        sizes = _config(config)
        arrays = _arrays(weights)
        _check_shapes(arrays, sizes, weights)
        return cls(arrays, sizes)

    def fingerprint(self) -> str:
        """Returns a hex digest of all current weights and of the settings computed with them."""
        digest = sha256(f"{self.heads} {self.context_length} {self.width}".encode())
        arrays = [self._embedding, self._places, *self._final]
        for layer in self._layers:
            arrays += [layer.weights[name] for name in sorted(layer.weights)]
        for array in arrays:
            digest.update(f"{array.shape}".encode() + array.tobytes())
        return digest.hexdigest()

    def logprobs(self, sequences: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
        """Returns every sequence's next-token log-probabilities after each of its tokens.

        Parameters
        ----------
        sequences
            Non-empty token id sequences, each no longer than the context.

        Returns
        -------
        list of ndarray
            One ``(len(sequence), width)`` array for each sequence.
        """
        out: list[NDArray[np.float64]] = []
        for start in range(0, len(sequences), _ROWS):
            chunk = sequences[start : start + _ROWS]
            hidden, _ = self._forward(chunk)
            for row, sequence in zip(hidden, chunk, strict=True):
                out.append(self._read_out(row[: len(sequence)]))
        return out

    def next_logprobs(self, sequences: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """Returns the log-probabilities after each whole sequence, ``(len(sequences), width)``."""
        out = np.empty((len(sequences), self.width))
        for start in range(0, len(sequences), _ROWS):
            chunk = sequences[start : start + _ROWS]
            hidden, _ = self._forward(chunk)
            last = [len(sequence) - 1 for sequence in chunk]
            out[start : start + len(chunk)] = self._read_out(hidden[np.arange(len(chunk)), last])
        return out

    def start(self, sequence: Sequence[int]) -> State:
        """Evaluates a whole prefix once."""
        hidden, cache = self._forward([sequence])
        return State(self._read_out(hidden[0, -1]), len(sequence), (cache[0],))

    def extend(self, states: Sequence[State], runs: Sequence[Sequence[int]]) -> list[State]:
        """Appends one or more tokens to each state; the given states stay valid."""
        out = list(states)
        single = [place for place, run in enumerate(runs) if len(run) == 1]
        for start in range(0, len(single), _ROWS):
            places = single[start : start + _ROWS]
            after = self._extend([states[p] for p in places], [runs[p][0] for p in places])
            for place, state in zip(places, after, strict=True):
                out[place] = state
        for place, run in enumerate(runs):
            if len(run) > 1:
                out[place] = self._extend_run(states[place], run)
        return out

    def _extend_run(self, state: State, run: Sequence[int]) -> State:
        """Reads several tokens after one state, in one pass."""
        past = np.concatenate(state.blocks) if state.blocks else None
        hidden, cache = self._forward([run], past)
        return State(
            self._read_out(hidden[0, -1]), state.length + len(run), (*state.blocks, cache[0])
        )

    def _forward(
        self, sequences: Sequence[Sequence[int]], past: Float | None = None
    ) -> tuple[Float, Float]:
        """Returns the last hidden rows and the cache; padding is on the right and masked.

        ``past`` is the cache of a prefix that all the sequences continue.
        """
        count, length = len(sequences), max(map(len, sequences))
        ids = np.zeros((count, length), dtype=np.int64)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = sequence
        before = 0 if past is None else len(past)
        x = self._embedding[ids] + self._places[before : before + length]
        hidden_future = np.full((length, before + length), -np.inf, dtype=np.float32)
        hidden_future = np.triu(hidden_future, before + 1)
        shape = (count, length, len(self._layers), 2, self.heads, self._size)
        cache = np.empty(shape, dtype=np.float32)
        for number, layer in enumerate(self._layers):
            parts = layer.mapped("attn.c_attn", layer.normed("ln_1", x))
            parts = parts.reshape(count, length, 3, self.heads, self._size)
            cache[:, :, number] = parts[:, :, 1:]
            query, key, value = parts.transpose(2, 0, 3, 1, 4)
            if past is not None:
                seen = past[:, number].transpose(1, 2, 0, 3)
                shape = (2, count, *seen.shape[1:])
                key, value = np.concatenate(
                    [np.broadcast_to(seen[:, None], shape), (key, value)], 3
                )
            scores = query @ key.swapaxes(-1, -2) / np.float32(math.sqrt(self._size))
            mixed = softmax(scores + hidden_future) @ value
            x = self._finish(layer, x, mixed.swapaxes(1, 2).reshape(count, length, -1))
        return x, cache

    def _extend(self, states: Sequence[State], token_ids: Sequence[int]) -> list[State]:
        lengths = np.array([state.length for state in states])
        count, longest = len(states), int(lengths.max())
        past = np.zeros((count, longest, len(self._layers), 2, self.heads, self._size), np.float32)
        for row, state in enumerate(states):
            np.concatenate(state.blocks, out=past[row, : state.length])
        unseen = np.where(np.arange(longest) < lengths[:, None], np.float32(0), -np.inf)
        unseen = unseen.astype(np.float32)[:, None, :]
        x = self._embedding[np.asarray(token_ids)] + self._places[lengths]
        rows = np.empty((count, 1, *past.shape[2:]), dtype=np.float32)
        for number, layer in enumerate(self._layers):
            parts = layer.mapped("attn.c_attn", layer.normed("ln_1", x))
            parts = parts.reshape(count, 3, self.heads, self._size)
            query, key, value = parts[:, 0], parts[:, 1], parts[:, 2]
            rows[:, 0, number] = parts[:, 1:]
            seen = past[:, :, number].transpose(2, 0, 3, 1, 4)
            before = (seen[0] @ query[..., None])[..., 0]
            now = (query * key).sum(-1, keepdims=True)
            scores = np.concatenate([before + unseen, now], axis=-1)
            share = softmax(scores / np.float32(math.sqrt(self._size)))
            mixed = (share[:, :, None, :-1] @ seen[1])[:, :, 0] + share[:, :, -1:] * value
            x = self._finish(layer, x, mixed.reshape(count, -1))
        logprobs = self._read_out(x)
        return [
            State(logprobs[row], state.length + 1, (*state.blocks, rows[row]))
            for row, state in enumerate(states)
        ]

    def _finish(self, layer: Layer, x: Float, mixed: Float) -> Float:
        x = x + layer.mapped("attn.c_proj", mixed)
        inner = gelu(layer.mapped("mlp.c_fc", layer.normed("ln_2", x)))
        return x + layer.mapped("mlp.c_proj", inner)

    def _read_out(self, hidden: Float) -> NDArray[np.float64]:
        logits = layer_norm(hidden, *self._final) @ self._unembedding
        return log_softmax(logits)


def _config(path: Path) -> dict[str, Any]:
    """Returns the entries of ``config.json``, including the sizes of the network."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{str(path)!r} is not JSON: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise ModelError(f"{str(path)!r} must be a JSON object, got a {type(found).__name__}")
    for name in SIZES:
        value = found.get(name)
        if type(value) is not int or not 0 < value <= LARGEST:
            raise ModelError(
                f"{str(path)!r}: {name} must be an integer from 1 to {LARGEST:,}, got {value!r:.60}"
            )
    for name, wanted in FIXED.items():
        if found.get(name, wanted) != wanted:
            raise ModelError(
                f"{str(path)!r}: {name} must be {wanted!r}, got {found[name]!r:.60}",
                hint="open other models with formalm.from_transformers",
            )
    return found


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Returns the weights in a file, all of which must be numeric."""
    from safetensors.numpy import load_file

    try:
        found: dict[str, NDArray[Any]] = load_file(path)
    except OSError as error:
        raise ModelError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except Exception as error:  # the loader's own errors, and KeyError for a dtype that NumPy lacks
        words = " ".join(str(error).split())
        raise ModelError(f"{str(path)!r} cannot be read as safetensors: {words:.200}") from None
    for name, array in found.items():
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ModelError(f"{str(path)!r}: {name} must be finite numbers of a floating type")
    return {name.removeprefix("transformer."): array for name, array in found.items()}


def _check_shapes(
    arrays: Mapping[str, NDArray[Any]], config: Mapping[str, Any], path: Path
) -> None:
    """Refuses weights that do not fit a configuration."""
    size, layers = config["n_embd"], config["n_layer"]
    if size % config["n_head"]:
        raise ModelError(f"n_embd, {size}, must be a multiple of n_head, {config['n_head']}")
    wanted = {
        "wte.weight": (config["vocab_size"], size),
        "wpe.weight": (config["n_positions"], size),
        **_normed("ln_f", size),
    }
    numbered = {name.split(".")[1] for name in arrays if name.startswith("h.")}
    if numbered != {str(number) for number in range(layers)}:
        raise ModelError(
            f"{str(path)!r} must have the {layers} layers of config.json, got {len(numbered)}"
        )
    for number in range(layers):
        front = f"h.{number}."
        wanted |= {
            **_normed(f"{front}ln_1", size),
            **_normed(f"{front}ln_2", size),
            **_mapped(f"{front}attn.c_attn", size, 3 * size),
            **_mapped(f"{front}attn.c_proj", size, size),
            **_mapped(f"{front}mlp.c_fc", size, config.get("n_inner") or 4 * size),
            **_mapped(f"{front}mlp.c_proj", config.get("n_inner") or 4 * size, size),
        }
    for name, shape in wanted.items():
        if name not in arrays:
            raise ModelError(f"{str(path)!r} must have the tensor {name}")
        if arrays[name].shape != shape:
            raise ModelError(
                f"{str(path)!r}: {name} must have the shape {shape} of config.json, got"
                f" {arrays[name].shape}"
            )


def _normed(name: str, size: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}


def _mapped(name: str, size: int, to: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (size, to), f"{name}.bias": (to,)}


def _layer(arrays: Mapping[str, Float], number: int) -> Layer:
    prefix = f"h.{number}."
    return Layer(
        {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
    )


def _affine(x: Float, weight: Float, bias: Float) -> Float:
    # One flat product: NumPy would otherwise loop over the leading axes with small ones.
    out: Float = (x.reshape(-1, x.shape[-1]) @ weight + bias).reshape(*x.shape[:-1], -1)
    return out


def layer_norm(x: Float, weight: Float, bias: Float) -> Float:
    """Normalizes the last axis to mean 0 and variance 1, then scales and shifts it."""
    centered = x - x.mean(-1, keepdims=True)
    variance = (centered * centered).mean(-1, keepdims=True)
    out: Float = centered / np.sqrt(variance + np.float32(1e-5)) * weight + bias
    return out


def gelu(x: Float) -> Float:
    """Returns GPT-2's approximate GELU."""
    scale = np.float32(math.sqrt(2 / math.pi))
    cube = x * x * x * np.float32(0.044715)
    out: Float = np.float32(0.5) * x * (1 + np.tanh(scale * (x + cube)))
    return out


def softmax(x: Float) -> Float:
    """Returns the softmax over the last axis."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    out: Float = powers / powers.sum(-1, keepdims=True)
    return out


def log_softmax(logits: Float) -> NDArray[np.float64]:
    """Returns normalized natural log-probabilities over the last axis, in float64."""
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    out: NDArray[np.float64] = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    return out
