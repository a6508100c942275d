"""Code written for ReLM: its paper's and README's examples, on a model taught their answers."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from formalm import ArgumentError, LanguageError, Query, Regex, from_transformers, search  # noqa: E402
from formalm.compat import relm  # noqa: E402
from formalm.compat.relm.lowering import lowered, pattern_of  # noqa: E402
from tests.integration.transformers_models import byte_tokenizer, tiny  # noqa: E402

PAPER = sorted(Path(__file__).parents[3].glob("shared/seeds/000_*.txt"))
PHONE = "My phone number is 555 555 5555"
BIRTH = "George Washington was born on July 4, 1732"
ALL = relm.QueryTokenizationStrategy.ALL_TOKENS
BEST = relm.QuerySearchStrategy.SHORTEST_PATH
DRAWN = relm.QuerySearchStrategy.RANDOM_SAMPLING

# As the README has it, but for the import and an option that transformers 5 no longer knows.
README = """
from formalm.compat import relm
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(model_id, use_fast=True)
model = AutoModelForCausalLM.from_pretrained(model_id,
                                             pad_token_id=tokenizer.eos_token_id)
query_string = relm.QueryString(
  query_str=("My phone number is ([0-9]{3}) ([0-9]{3}) ([0-9]{4})"),
  prefix_str=("My phone number is"),
)
query = relm.SimpleSearchQuery(
  query_string=query_string,
  search_strategy=relm.QuerySearchStrategy.SHORTEST_PATH,
  tokenization_strategy=relm.QueryTokenizationStrategy.ALL_TOKENS,
  top_k_sampling=40,
  num_samples=10,
)
ret = relm.search(model, tokenizer, query)
for x in ret:
  print(tokenizer.decode(x))
"""


class Enough(Exception):  # noqa: N818
    """Ends an example that would list a whole language."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and its tokenizer, taught two texts."""
    torch.set_num_threads(1)
    tokenizer = byte_tokenizer(bos_token="<s>")
    model = tiny("gpt2", vocab_size=260, bos_token_id=0, eos_token_id=1, pad_token_id=2)
    rows = [tokenizer(f"<s>{text}</s>")["input_ids"] for text in (PHONE, BIRTH)]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(120):
        loss = sum(model(torch.tensor([row]), labels=torch.tensor([row])).loss for row in rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    path = tmp_path_factory.mktemp("model")
    model.eval().save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def loaded(folder: Path) -> tuple[Any, Any]:
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def printed(source: str, most: int = 10, **names: Any) -> list[str]:
    """What a program prints, until it has printed enough."""
    lines: list[str] = []

    def show(text: str) -> None:
        lines.append(text)
        if len(lines) >= most:
            raise Enough

    with suppress(Enough):
        exec(source, {"relm": relm, "print": show, **names})  # noqa: S102
    return lines


def figure(number: int) -> str:
    """A program of the paper, its line numbers taken off."""
    if not PAPER:
        pytest.skip("no paper in ../shared/seeds")
    before = PAPER[0].read_text().split(f"Figure {number}: Python")[0]
    lines = re.findall(r"^(\d+)(.*)$", before[-1500:], re.MULTILINE)
    start = max(place for place, (count, _) in enumerate(lines) if count == "1")
    return "\n".join(line for _, line in lines[start:])


def test_the_readme_prints_what_the_model_was_taught(folder: Path) -> None:
    lines = printed(README, most=99, model_id=str(folder))
    assert lines[0] == PHONE
    assert len(lines) == len(set(lines)) == 10
    assert all(re.fullmatch(r"My phone number is \d{3} \d{3} \d{4}", line) for line in lines)


@pytest.mark.parametrize("ours", [True, False], ids=["formalm", "transformers"])
def test_figure_4_yields_texts(loaded: tuple[Any, Any], folder: Path, ours: bool) -> None:
    model = from_transformers(*loaded) if ours else loaded[0]
    lines = printed(figure(4).replace("\n (", "\n("), most=3, model=model)
    assert lines[0] == PHONE
    assert len(set(lines)) == 3


def test_figure_11_yields_token_ids(loaded: tuple[Any, Any]) -> None:
    lines = printed(figure(11), most=2, model=loaded[0], tokenizer=loaded[1])
    assert lines[0] == BIRTH
    assert re.fullmatch(r"George Washington was born on \w+ \d\d?, \d{4}", lines[1])


def test_results_are_those_of_the_same_query_in_our_words(loaded: tuple[Any, Any]) -> None:
    pattern, prefix = "My phone number is 5[0-9]{2} [0-9]{3}", "My phone number is"
    query = relm.SearchQuery(pattern, prefix=prefix, add_eos=True, num_samples=20)
    found = relm.search(*loaded, query)
    ours = from_transformers(*loaded)
    asked = Query(Regex(pattern), given=prefix, event="complete", unique="tokens", bos=0)
    hits = list(islice(search(ours, asked), 20))
    given = ours.vocabulary.encode(prefix)
    assert found == [(*given, *hit.token_ids, loaded[1].eos_token_id) for hit in hits]


def test_draws_follow_numpys_seed_and_end(loaded: tuple[Any, Any]) -> None:
    string = relm.QueryString("My phone number is [0-9]{3}", "My phone number is")
    query = relm.SimpleSearchQuery(string, DRAWN, ALL, num_samples=100)

    def draws() -> Any:
        np.random.seed(4)  # noqa: NPY002
        return relm.search(*loaded, query)

    rows = draws()
    assert len(rows) == 100
    assert rows == draws()
    assert {row[-1] for row in rows} == {loaded[1].eos_token_id}
    assert all(re.fullmatch(r"My phone number is \d{3}", loaded[1].decode(r[:-1])) for r in rows)
    endless = relm.search(*loaded, relm.SimpleSearchQuery(string, DRAWN, ALL))
    assert len(list(islice(endless, 150))) == 150


def test_edits_filters_and_lengths(loaded: tuple[Any, Any]) -> None:
    edits = relm.LevenshteinTransformer("ab", num_edits=1, allow_deletes=False)
    wanted = relm.QueryPreprocessors([edits], filter_str="aa|ab")
    query = relm.SearchQuery("aa", preprocessors=wanted, sequence_length=2, num_samples=99)
    assert set(relm.search(from_transformers(*loaded), query)) == {"ba"}
    query = relm.SearchQuery("aa", preprocessors=relm.QueryPreprocessors([edits]), num_samples=99)
    assert len(relm.search(from_transformers(*loaded), query)) == 1 + 2 + 4
    prefixed = relm.SearchQuery("xaa", "x", preprocessors=relm.QueryPreprocessors([edits]))
    with pytest.raises(ArgumentError, match="outside symbol_set"):
        relm.search(from_transformers(*loaded), prefixed)
    edits.allow_passthrough_substitutions = True
    texts = set(relm.search(from_transformers(*loaded), prefixed))
    # The prefix is edited too, and all edits together are at most one.
    wanted = {"xaa", *(c + "aa" for c in "ab"), *(c + "xaa" for c in "ab")}
    wanted |= {"xba", "xab", "xbaa", "xaba", "xaab", "xaaa"}
    assert texts == wanted


@pytest.mark.parametrize(
    ("strategy", "tokenization"),
    [("CANONICAL_TOKENS", "canonical"), ("PREFIX_CANONICAL_TOKENS", "canonical-given")],
)
def test_tokenization_options_use_the_names_of_this_library(
    loaded: tuple[Any, Any], strategy: str, tokenization: str
) -> None:
    vocabulary = from_transformers(*loaded).vocabulary
    chosen = relm.QueryTokenizationStrategy[strategy]
    query = relm.SearchQuery("ab", prefix="a", tokenization_strategy=chosen)
    try:
        Query(Regex("ab"), given="a", tokenization=tokenization)
    except ArgumentError as error:
        # A query that cannot be asked is refused, whoever asks.
        with pytest.raises(ArgumentError, match=re.escape(error.message)):
            lowered(query, vocabulary)
    else:
        assert lowered(query, vocabulary).tokenization == tokenization
        assert relm.search(*loaded, query) is not None


def test_posix_classes_mean_what_they_mean_in_rust() -> None:
    assert pattern_of(r"[[:alnum:]_]+\[[:a]").matches("aZ9_[:")
    assert pattern_of("[^[:space:]a]").pattern == r"[^\t\n\v\f\r a]"
    assert pattern_of("[][:digit:]]+").matches("]7")
    url = pattern_of(r"https://www\.([[:alnum:]]|_|-|#|%)+\.([[:alnum:]]|_|-|#|%|/)+")
    assert url.matches("https://www.a-b.com/x#1")
    with pytest.raises(LanguageError, match=r"\[:vowel:\]"):
        pattern_of("[[:vowel:]]")


def test_options_that_do_not_apply_are_refused(loaded: tuple[Any, Any]) -> None:
    ours = from_transformers(*loaded)
    with pytest.raises(ArgumentError, match="model must have a tokenizer or a local folder, got a"):
        relm.search(tiny("gpt2"), relm.SearchQuery("a"))
    with pytest.raises(ArgumentError, match="experimental_dijkstra"):
        relm.SearchQuery("a", experimental_dijkstra=True)
    with pytest.raises(ArgumentError, match="the tokenizer must have the tokens of the model's"):
        relm.search(ours, _other_tokenizer(), relm.SearchQuery("a"))
    with pytest.raises(ArgumentError, match="progress_bar"):
        relm.search(ours, relm.SearchQuery("a", progress_bar=True))
    with pytest.raises(ArgumentError, match="equally many tokens"):
        relm.search(ours, relm.SearchQuery("a{3}", prefix="a{1,2}", sequence_length=9))
    with pytest.raises(LanguageError, match="must be a prefix of a member"):
        relm.search(ours, relm.SearchQuery("ab", prefix="b"))
    with pytest.raises(ArgumentError, match="got 1 arguments"):
        relm.search(ours)


def _other_tokenizer() -> Any:
    from formalm import Vocabulary

    return Vocabulary.from_tokens([b"a", None])
