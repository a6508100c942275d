"""The programs of the guides of engines, with the embedded model."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from formalm.models.canary import WEIGHTS
from tests.support.engine_models import (
    ctranslate2_generator,
    gguf_file,
    mlx_network,
    onnx_folder,
)

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


def programs(name: str) -> list[str]:
    """The blocks of a guide that are programs for the engine."""
    page = (GUIDES / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [block for block in blocks if block.startswith(("from ", "import "))]


def run(name: str, **values: object) -> None:
    found = programs(name)
    assert found
    for number, program in enumerate(found, start=1):
        exec(compile(program, f"{name}.md, program {number}", "exec"), dict(values))  # noqa: S102


def with_tokenizer(folder: Path) -> Path:
    for file in WEIGHTS.iterdir():
        if "token" in file.name:
            shutil.copy(file, folder)
    return folder


def test_llama_cpp(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp", reason="make engines-llama installs it")
    run("llama_cpp", FILE=str(gguf_file(tmp_path)))


def test_mlx(tmp_path: Path) -> None:
    pytest.importorskip("mlx_lm", reason="make engines-light installs it")
    mlx_network(tmp_path)
    run("mlx", FOLDER=str(with_tokenizer(tmp_path)), PROMPT="The")


def test_ctranslate2(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="make engines-light installs it")
    ctranslate2_generator(tmp_path)
    run("ctranslate2", FOLDER=str(tmp_path), TOKENIZER=str(WEIGHTS))


def test_onnxruntime(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_genai", reason="make engines-onnx installs it")
    pytest.importorskip("onnx_ir", reason="make engines-onnx installs it")
    pytest.importorskip("torch", reason="make engines-onnx installs it")
    folder, _ = onnx_folder(tmp_path)
    run("onnxruntime", FOLDER=str(with_tokenizer(folder)))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_vllm(tmp_path: Path) -> None:
    pytest.importorskip("vllm", reason="make engines-vllm installs it")
    (program,) = programs("vllm")
    file = tmp_path / "program.py"
    file.write_text(f"MODEL = {str(WEIGHTS)!r}\n{program}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(file)], check=True, capture_output=True, text=True, timeout=800
    )
    # vLLM logs to the same stream.
    assert re.search("^ [0-9]{3} [0-9]{4}$", done.stdout, re.MULTILINE)
