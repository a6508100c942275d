"""One argument more in a pipeline of transformers.

The model is a tiny random one, made on the spot, with a tokenizer of single bytes: it knows
nothing, and still answers with one of the options.
"""

from __future__ import annotations

from typing import Any

from formalm import Choice, Regex
from formalm.integrations import pipeline


def random_model() -> tuple[Any, Any]:
    """Make a GPT-2 of two layers and a tokenizer whose tokens are bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<end>": 0} | {character: 1 + i for i, character in enumerate(alphabet)}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(["<end>"])
    names = {"eos_token": "<end>", "pad_token": "<end>", "padding_side": "left"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, **names)
    config = GPT2Config(
        vocab_size=len(vocabulary), n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    return GPT2LMHeadModel(config).eval(), tokenizer


def main() -> None:
    """Ask for an option, then for dates in a batch."""
    model, tokenizer = random_model()
    pipe = pipeline("text-generation", model=model, tokenizer=tokenizer)

    options = Choice(["Option A", "Option B"])
    answer = pipe("Input", enforce=options, return_full_text=False)[0]["generated_text"]
    print(answer)
    assert answer in ("Option A", "Option B")

    date = Regex("20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")
    prompts = ["The first day: ", "The last day: "]
    for records in pipe(prompts, enforce=date, return_full_text=False, batch_size=2):
        print(records[0]["generated_text"])
        assert date.matches(records[0]["generated_text"])


if __name__ == "__main__":
    main()
