"""The bench of the article's Table 2: its texts are members, and it measures every step."""

from __future__ import annotations

import random
import re

from tokenizers import pre_tokenizers

from benches.canonical_table2 import ARTICLE, measure, page
from benches.documents import random_call
from tests.canonical.small_tokenizers import trained


def test_random_calls_are_members_of_their_patterns() -> None:
    chance = random.Random(5)
    patterns = set()
    for _ in range(300):
        pattern, text = random_call(chance)
        assert re.fullmatch(pattern, text), text
        patterns.add(pattern)
    assert len(patterns) > 250


def test_every_step_of_the_table_is_measured() -> None:
    data = trained(pre_tokenizers.ByteLevel(add_prefix_space=False)).to_str().encode()
    figures = measure(data, 3)
    for way in ("text", "typed"):
        assert 0 < figures[way]["again"] < figures[way]["visits"]
        assert figures[way]["tokens"] > 10
    about = dict.fromkeys(("date", "cpu", "cores", "python", "commit", "load_average"), "")
    record = {"calls": 3, "tokenizers": {"small": figures}}
    text = page({**record, "about": {**about, "versions": {}, "load_average_after": []}})
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(ARTICLE) + 2
    assert "| 20,900 |" in text
    assert "| 1.53 |" in text
