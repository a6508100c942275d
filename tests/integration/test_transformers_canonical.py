"""Canonical tokens with models of transformers: in our searches and in the library's `generate`."""

from __future__ import annotations

from itertools import chain

import pytest
import torch
import transformers
from tokenizers import pre_tokenizers

from formalm import Constraint, Regex, TokenError, Vocabulary, from_transformers, generate
from formalm.integrations import logits_processors
from tests.canonical.small_tokenizers import trained
from tests.integration.transformers_models import tiny

torch.set_num_threads(1)

LANGUAGE = Regex("( the| then| quick| brown| [0-9]{1,3},| don't){2,4}")
PROMPTS = ["In the", "It's", "The quick brown fox said:"]


@pytest.fixture(scope="module")
def tokenizer():
    inner = trained(pre_tokenizers.ByteLevel(add_prefix_space=False))
    inner.encode_special_tokens = False
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="</s>", pad_token="<pad>", padding_side="left"
    )


@pytest.fixture(scope="module", params=["gpt2", "llama", "mamba"])
def network(request, tokenizer):
    return tiny(request.param, vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id)


@pytest.mark.parametrize("options", [{"seed": 3}, {"temperature": 0}], ids=str)
def test_hooks_and_drivers_write_the_same_canonical_tokens(network, tokenizer, options) -> None:
    model = from_transformers(network, tokenizer)
    constraint = Constraint(LANGUAGE, model.vocabulary, tokenization="canonical")
    count = 3 if "seed" in options else 1
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    inputs.pop("token_type_ids", None)
    output = network.generate(
        **inputs,
        logits_processor=logits_processors(network, tokenizer, inputs, constraint, **options),
        max_new_tokens=40,
        do_sample=count > 1,
        num_return_sequences=count,
        pad_token_id=tokenizer.pad_token_id,
    )
    length = inputs["input_ids"].shape[1]
    theirs = tokenizer.batch_decode(output[:, length:], skip_special_tokens=True)
    given = {"n": count, "max_tokens": 40, **options}
    ours = generate(model, PROMPTS, constraint, **given)
    asked = generate(model, PROMPTS, constraint, measure=True, **given)
    assert theirs == [text.text for row in ours for text in row]
    assert any(text.forced.any() for row in ours for text in row)
    for some, every in zip(chain(*ours), chain(*asked), strict=True):
        assert some.token_ids == every.token_ids
        kept = ~some.forced
        assert some.logprobs[kept] == pytest.approx(every.logprobs[kept], abs=1e-4)
        ids = [*some.prompt_token_ids, *some.token_ids]
        text = [each for each in ids if each != tokenizer.eos_token_id]
        assert text == tokenizer(tokenizer.decode(text))["input_ids"]


def test_several_tokens_are_evaluated_in_one_pass_if_the_result_is_the_same(
    network, tokenizer
) -> None:
    model = from_transformers(network, tokenizer)
    ids = tokenizer("The quick brown fox jumps over")["input_ids"]
    stem, other = model.start(ids[:2]), model.start(ids[:3])
    states = model.extend_many([stem, other, stem], [ids[2:6], ids[3:5], ids[2:3]])
    wanted = model.next_logprobs([ids[:6], ids[:5], ids[:3]])
    for state, row in zip(states, wanted, strict=True):
        assert state.logprobs == pytest.approx(row, abs=1e-4)
    longer = model.extend(states, ids[:3])
    assert [state.length for state in longer] == [7, 6, 4]
    assert model.is_stepwise == (type(network).__name__ == "MambaForCausalLM")


def test_a_prompt_that_nothing_follows_is_refused(tokenizer) -> None:
    network = tiny("llama", vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id)
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    constraint = Constraint(Regex("the cat"), vocabulary, tokenization="canonical")
    inputs = tokenizer(["In "], return_tensors="pt")
    inputs.pop("token_type_ids", None)
    processors = logits_processors(network, tokenizer, inputs, constraint)
    with pytest.raises(TokenError, match="no member continues in canonical tokens after the"):
        network.generate(**inputs, logits_processor=processors, max_new_tokens=5)


def test_padding_is_no_part_of_a_prompt(tokenizer) -> None:
    network = tiny("llama", vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id)
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    constraint = Constraint(LANGUAGE, vocabulary, tokenization="canonical")
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    inputs.pop("token_type_ids", None)
    # A text's own token, as models without one for padding are given.
    letter = tokenizer("e")["input_ids"][0]
    inputs["input_ids"][inputs["attention_mask"] == 0] = letter
    processors = logits_processors(network, tokenizer, inputs, constraint, seed=1)
    masks = processors[0](inputs["input_ids"], torch.zeros(len(PROMPTS), len(tokenizer)))
    assert (masks > -torch.inf).sum() == len(PROMPTS)
