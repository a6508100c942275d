"""Languages with special tokens in transformers: its own `generate`, ours, and the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from formalm import (
    Grammar,
    Language,
    Regex,
    Section,
    SpecialToken,
    Structure,
    from_transformers,
    generate,
    stream,
)
from formalm.integrations import logits_processors
from tests.integration.transformers_models import byte_tokenizer, tiny

torch = pytest.importorskip("torch", reason="these models are PyTorch's")
transformers = pytest.importorskip("transformers", reason="these models are transformers'")
typer_testing = pytest.importorskip("typer.testing")
torch.set_num_threads(1)

CALL, DONE = 260, 261
PROMPTS = ["a", "one two", "ninety"]
CALLS = SpecialToken("<|call|>") + Regex("[a-c]{1,4}") + SpecialToken("<|done|>")
LIST = Grammar("start: <|call|> ITEM (<|call|> ITEM)* <|done|>\nITEM: /[a-c]{1,2}/")
PARTS = Structure([Section(SpecialToken("<|call|>"), Regex("[0-9]{2}"), SpecialToken("<|done|>"))])
#: What the tokens of a member spell, special ones in angle brackets of their own.
SPELLED = {
    "calls": (CALLS, "«[a-c]{1,4}»"),
    "list": (LIST, "(«[a-c]{1,2})+»"),
    "parts": (PARTS, "(?s:[^«»]*(«[0-9]{2}»[^«»]*)*)"),
}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    made = byte_tokenizer(padding_side="left")
    made.add_special_tokens({"additional_special_tokens": ["<|call|>", "<|done|>"]})
    assert made.convert_tokens_to_ids(["<|call|>", "<|done|>"]) == [CALL, DONE]
    return made


@pytest.fixture(scope="module")
def network() -> Any:
    return tiny("llama", vocab_size=264, eos_token_id=1, bos_token_id=0, pad_token_id=2)


def spelled(ids: list[int], tokenizer: Any) -> str:
    """The text of tokens up to the end token, with marks for special ones."""
    parts = []
    for token_id in ids[: ids.index(1)] if 1 in ids else ids:
        mark = {CALL: "«", DONE: "»"}.get(token_id)
        parts.append(mark or tokenizer.decode([token_id]))
    return "".join(parts)


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"do_sample": True, "num_return_sequences": 3},
        {"num_beams": 3, "num_return_sequences": 2},
        {"num_beams": 2, "do_sample": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["calls", "list"])
def test_in_generate_of_transformers(network, tokenizer, name: str, options) -> None:
    torch.manual_seed(3)
    language, pattern = SPELLED[name]
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    inputs.pop("token_type_ids", None)
    processors = logits_processors(network, tokenizer, inputs, language)
    output = network.generate(**inputs, logits_processor=processors, max_new_tokens=60, **options)
    rows = output[:, inputs["input_ids"].shape[1] :].tolist()
    assert len(rows) == 3 * options.get("num_return_sequences", 1)
    for row in rows:
        # A list may go on until it is cut.
        text = spelled(row, tokenizer)
        whole = text if 1 in row else text.rstrip("»«") + "»"
        assert re.fullmatch(pattern, whole), text


@pytest.mark.parametrize("name", SPELLED)
@pytest.mark.parametrize("beams", [None, 3])
def test_in_ours(network, tokenizer, name: str, beams: int | None) -> None:
    model = from_transformers(network, tokenizer)
    language, pattern = SPELLED[name]
    options = {"seed": 4} if beams is None else {"beams": beams}
    found = generate(model, "a", language, n=3, max_tokens=40, finish=True, **options)
    assert len(found) == 3
    for one in found:
        assert re.fullmatch(pattern, spelled(list(one.token_ids), tokenizer)), one.text
        assert language.matches(one.data)
    if beams is None:
        batch = generate(model, PROMPTS, language, max_tokens=40, finish=True, seed=4)
        for one in batch:
            assert re.fullmatch(pattern, spelled(list(one.token_ids), tokenizer)), one.text


@pytest.mark.parametrize("name", SPELLED)
def test_pieces_show_the_names(network, tokenizer, name: str) -> None:
    model = from_transformers(network, tokenizer)
    language: Language = SPELLED[name][0]
    pieces = stream(model, "a", language, max_tokens=40, finish=True, seed=6)
    text = "".join(pieces)
    assert text == pieces.generation.text
    assert "\ufffd" not in text or name == "parts"
    ids = list(pieces.generation.token_ids)
    assert text.count("<|call|>") == ids.count(CALL)
    assert text.count("<|done|>") == ids.count(DONE)


def test_on_the_command_line(network, tokenizer, tmp_path: Path) -> None:
    from formalm.cli.app import app

    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    file = tmp_path / "calls.lark"
    file.write_text("start: <|call|> ITEM <|done|>\nITEM: /[a-c]{1,2}/\n")

    def run(*arguments: str) -> Any:
        return typer_testing.CliRunner().invoke(app, list(arguments))

    done = run("generate", "a", "-m", str(tmp_path), "--grammar", str(file), "--seed", "1")
    assert done.exit_code == 0, done.output
    assert re.fullmatch(r"<\|call\|>[a-c]{1,2}<\|done\|>\n", done.stdout)
    mask = run("mask", "-m", str(tmp_path), "--grammar", str(file))
    assert mask.exit_code == 0, mask.output
    assert str(CALL) in mask.stdout
    other = run("generate", "a", "--grammar", str(file))
    assert other.exit_code == 1
    assert "<|call|>" in other.output
