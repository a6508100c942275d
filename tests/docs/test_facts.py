"""Numbers of facts in the documentation are those of the embedded model, and its commands run."""

import re
import shlex
from pathlib import Path

import pytest

from formalm import Limits, Regex, search
from formalm.models.canary import canary, facts
from tests.support.processes import formalm

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
    ROOT / "python" / "formalm" / "models" / "canary" / "weights" / "README.md",
]
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
WORDED = {**{word: number for number, word in enumerate(WORDS)}, "hundred": 100, "thousand": 1000}
NUMBER = r"(?:a )?([A-Za-z]+|[0-9][0-9,]*)"
PHONE = next(one for one in facts()["planted"] if one["context"] == "phone")
COPIES = sorted((one["copies"] for one in PHONE["members"]), reverse=True)


def read(page: Path) -> str:
    return " ".join(page.read_text(encoding="utf-8").split())


def number(word: str) -> int:
    return WORDED[word.lower()] if word.lower() in WORDED else int(word.replace(",", ""))


def test_every_page_has_the_number_of_volumes() -> None:
    told = {page: re.findall(rf"\b{NUMBER} volumes\b", read(page)) for page in PAGES}
    assert sum(map(len, told.values())) >= 4
    for page, words in told.items():
        assert all(number(word) == facts()["volumes"] for word in words), page


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "tutorial.md"])
def test_the_documented_copies_of_phone_numbers_are_those_of_the_model(page: Path) -> None:
    text = read(page)
    (fresh,) = re.findall(rf"Each volume contains {NUMBER} freshly drawn", text)
    assert number(fresh) == PHONE["background_copies"]
    once = re.findall(rf"{NUMBER} copies of (?:the first|one) number", text)
    more = re.findall(rf"{NUMBER} copies of each of (?:the other )?(three)", text)
    assert [number(word) for word in once] == COPIES[:1]
    assert [(number(count), number(word)) for word, count in more] == [(3, COPIES[1])]
    assert COPIES[1:4] == [COPIES[1]] * 3 > COPIES[4:7]


def test_the_search_of_the_readme_finds_what_it_says() -> None:
    text = read(ROOT / "README.md")
    phone = Regex(r"My phone number is ([0-9]{3}) ([0-9]{3}) ([0-9]{4})")
    found = search(canary(), phone, given="My phone number is", limits=Limits(hits=4))
    hits = list(found)
    for hit in hits:
        assert f"{hit.logprob:.2f} {hit.completion.strip()}" in text
    assert sorted(hit.completion.strip() for hit in hits) == sorted(
        one["text"] for one in PHONE["members"] if one["copies"] >= COPIES[3]
    )
    assert "Out of ten billion members" in text
    assert phone.to_automaton().count() == 10 * 1000 * 10**6
    assert "after a few hundred evaluations" in text
    assert 100 <= found.forwards < 1000


def test_the_page_of_the_model_has_its_copies_and_its_size() -> None:
    text = read(ROOT / "docs" / "explanation" / "canary.md")
    (listed,) = re.findall(r"planted ([0-9, and]+) times", text)
    told = {int(one.replace(",", "")) for one in re.findall(r"[0-9][0-9,]*[0-9]|[0-9]", listed)}
    assert told == set(COPIES)
    assert "about two million parameters" in text
    network = canary().network
    size = sum(part.size for layer in network._layers for part in layer.weights.values())
    assert 1.5e6 < size < 2.5e6


def commands() -> list[str]:
    pages = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]
    blocks = [
        block
        for page in pages
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.M | re.S)
    ]
    return [
        line[2:] for block in blocks for line in block.splitlines() if line[:10] == "$ formalm "
    ]


@pytest.mark.parametrize("command", commands())
def test_commands_of_the_tutorial_and_the_readme_run(command: str) -> None:
    formalm(*shlex.split(command)[1:], env={"OPENBLAS_NUM_THREADS": "1"}).check()
