"""The command line on a folder that transformers wrote."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
typer_testing = pytest.importorskip("typer.testing")

from formalm.cli.app import app  # noqa: E402
from formalm.models.canary import WEIGHTS  # noqa: E402


def run(*arguments: str):
    done = typer_testing.CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_models_and_tokenizers_of_folders(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    config = transformers.LlamaConfig(
        vocab_size=2048, num_attention_heads=1, eos_token_id=0, bos_token_id=0, **sizes
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(WEIGHTS).save_pretrained(tmp_path)
    text = run("generate", "The", "-m", str(tmp_path), "-c", "yes", "-c", "no", "--seed", "1")
    assert text.strip() in ("yes", "no")
    wanted = run("tokenize", "yes", "--json")
    for option in ("--model", "--tokenizer"):
        assert run("tokenize", "yes", option, str(tmp_path), "--json") == wanted
