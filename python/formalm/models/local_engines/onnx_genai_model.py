"""``OnnxGenaiModel``: a model of ONNX Runtime GenAI, one sequence that is rewound and continued."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from formalm.errors import ArgumentError, ModelError
from formalm.models.local_engines.prefix_model import Floats, PrefixModel
from formalm.vocabulary import Vocabulary

__all__ = ["OnnxGenaiModel"]


class OnnxGenaiModel(PrefixModel):
    """A model of ONNX Runtime GenAI: search, mass, sampling and generation.

    The engine keeps one sequence. Each prefix is evaluated by rewinding that sequence to the tokens
    that both share, and appending the rest. Texts that are continued one after the other therefore
    cost one token each; batches save nothing. The engine's own guidance is not used. One thread at
    a time may use the model.

    Parameters
    ----------
    path
        The folder with ``genai_config.json``.
    vocabulary
        The tokens of the ids, such as :meth:`formalm.Vocabulary.from_pretrained` reads from the
        same folder.
    bos_token_id
        The token before a text, if the tokenizer puts one there.
    context_length
        Maximum length of a prefix, in tokens; None is that of the configuration. The engine may
        reserve memory for all of it.

    Raises
    ------
    ArgumentError
        For an option out of range, or a folder without a configuration.
    ModelError
        If onnxruntime-genai is missing, or cannot load the model.
    """

    libraries = ("onnxruntime-genai",)

    def __init__(
        self,
        path: str | PathLike[str],
        vocabulary: Vocabulary,
        *,
        bos_token_id: int | None = None,
        context_length: int | None = None,
    ) -> None:
        self._path = Path(fspath(path))
        config = _config_of(self._path)
        try:
            import onnxruntime_genai as engine
        except ImportError:
            raise ModelError(
                "models of ONNX Runtime GenAI require the package onnxruntime-genai",
                hint="pip install onnxruntime-genai",
            ) from None
        entries = config.get("model")
        entries = entries if isinstance(entries, dict) else {}
        limit = entries.get("context_length")
        first = entries.get("bos_token_id")
        length = limit if context_length is None else context_length
        if type(length) is not int or length < 1:
            raise ArgumentError(
                f"context_length must be a positive integer, got {length!r}",
                hint="genai_config.json names none, so pass one",
            )
        try:
            self._model = engine.Model(str(self._path))
        except Exception as error:  # the engine's own errors
            words = " ".join(str(error).split())
            raise ModelError(
                f"ONNX Runtime GenAI cannot load {str(path)!r}: {words:.300}"
            ) from None
        self._engine = engine
        self._padding = _ids(entries.get("pad_token_id")) | _ids(entries.get("eos_token_id"))
        self._length = length
        self._generator: Any = None
        self._read: tuple[int, ...] = ()
        super().__init__(
            vocabulary,
            width=int(entries.get("vocab_size") or len(vocabulary)),
            bos_token_id=bos_token_id,
            empty_prompt_token_id=first if type(first) is int else None,
            context_length=min(length, limit) if type(limit) is int else length,
        )

    def __repr__(self) -> str:
        return f"<OnnxGenaiModel {self._path.name}, {self.width:,} logits>"

    def __reduce__(self) -> NoReturn:
        raise ModelError(
            "a model of ONNX Runtime GenAI cannot be pickled or copied",
            hint="pass the path to the other process and create the model there",
        )

    def weights_fingerprint(self) -> str:
        """Returns a hex digest of the files of the model and its configuration.

        All of them are read, which takes some seconds for each ten gigabytes.
        """
        digest = sha256()
        for file in sorted(self._path.iterdir()):
            if file.name == "genai_config.json" or ".onnx" in file.name:
                digest.update(file.name.encode())
                with file.open("rb") as opened:
                    while part := opened.read(1 << 22):
                        digest.update(part)
        return digest.hexdigest()

    def _rows(self, prefixes: Sequence[tuple[int, ...]]) -> list[Floats]:
        return [self._row(prefix) for prefix in prefixes]

    def _row(self, prefix: tuple[int, ...]) -> Floats:
        # The last token is always read: the engine gives logits only after new ones.
        shared = 0
        for one, two in zip(self._read, prefix[:-1], strict=False):
            if one != two:
                break
            shared += 1
        if self._generator is None or not shared:
            parameters = self._engine.GeneratorParams(self._model)
            parameters.set_search_options(max_length=self._length, batch_size=1)
            self._generator, shared = self._engine.Generator(self._model, parameters), 0
        elif shared < len(self._read):
            self._generator.rewind_to(shared)
        self._read = ()  # unknown, should the engine fail
        self._append(prefix[shared:])
        # As many rows as tokens were appended, or the last one.
        logits = np.asarray(self._generator.get_logits(), dtype=np.float32)
        row: Floats = logits.reshape(-1, logits.shape[-1])[-1].copy()
        if len(row) != self.width:
            raise ModelError(f"the model must have {self.width:,} logits, got {len(row):,}")
        self._read = prefix
        return row

    def _append(self, token_ids: tuple[int, ...]) -> None:
        """Reads tokens. The engine takes padding at the end of several tokens for none at all, so
        it gets such tokens one by one.
        """
        body = len(token_ids)
        while body and token_ids[body - 1] in self._padding:
            body -= 1
        if body:
            self._generator.append_tokens(np.array(token_ids[:body], dtype=np.int32))
        for token_id in token_ids[body:]:
            self._generator.append_tokens(np.array([token_id], dtype=np.int32))


def _ids(entry: object) -> set[int]:
    """Returns the ids of an entry of the configuration: one, or a list."""
    return {one for one in (entry if isinstance(entry, list) else [entry]) if type(one) is int}


def _config_of(path: Path) -> dict[str, Any]:
    """Returns the entries of ``genai_config.json``."""
    file = path / "genai_config.json"
    try:
        found = json.loads(file.read_bytes())
    except OSError as error:
        raise ArgumentError(
            f"path must be a folder with genai_config.json: {error.strerror or error}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{str(file)!r} is not JSON: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise ModelError(f"{str(file)!r} must be a JSON object, got a {type(found).__name__}")
    return found
