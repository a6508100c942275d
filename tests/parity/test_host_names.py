"""Host names of other scripts: the ``idna`` package judges labels."""

import json
import unicodedata
from random import Random

import idna
import pytest

from formalm import JsonSchema

WIDE = JsonSchema({"type": "string", "format": "idn-hostname"}, max_whitespace=0)
PLAIN = JsonSchema({"type": "string", "format": "hostname"}, max_whitespace=0)

#: Characters that rules speak of, and some that no label has.
LETTERS = [
    *"abl0-Aß·͵αβ׳״אבبي٠۰۱・ぁァ丈",
    "\u200c",
    "\u200d",
    *"क्षं실례ü",
    "\u0308",
    "\u0301",
    "\u0327",
]
LETTERS += [*"ᠠᠡ〮ـ√Ⅷ", "ﬁ", "e", "u", "ै", "ি", "ক", "া", "ে", "1", "ñ", "\u0323"]


def quoted(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


def is_label(text: str) -> bool:
    """Whether the package takes a text as a label of a name."""
    if text.isascii() and not text.lower().startswith("xn--"):
        plain = text.replace("-", "a").isalnum() and text[0] != "-" and text[-1] != "-"
        return plain and text[2:4] != "--"
    try:
        label = idna.ulabel(text)
        if any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in label):
            idna.check_bidi(label)
        return len(idna.alabel(label)) <= 63 and text == text.lower() and not label.isascii()
    except idna.IDNAError:
        return False


def labels(random: Random, count: int) -> list[str]:
    found = []
    for _ in range(count):
        some = random.sample(LETTERS, 5)
        found.append("".join(random.choice(some) for _ in range(random.randint(1, 7))))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_labels_are_those_of_the_package(seed: int) -> None:
    members = 0
    for label in labels(Random(seed), 400):
        expected = is_label(label)
        members += expected
        assert WIDE.matches(quoted(label)) == expected, (label, label.encode("unicode_escape"))
        if expected:
            text = quoted(label)
            assert all(WIDE.is_viable(text[:end]) for end in range(len(text)))
    assert members > 40


def test_encoded_labels_are_those_of_the_package() -> None:
    random = Random(5)
    members = 0
    for label in labels(random, 800):
        try:
            code = "xn--" + label.encode("punycode").decode("ascii")
        except UnicodeError:
            continue
        if random.random() < 0.3:
            at = random.randrange(4, len(code) + 1)
            code = code[:at] + random.choice("abz019-") + code[at:]
        code = code.lower()
        expected = not code.endswith("-") and is_label(code)
        members += expected
        assert PLAIN.matches(quoted(code)) == expected, code
        assert WIDE.matches(quoted(code)) == expected, code
    assert members > 60


def test_directions_count_for_all_labels() -> None:
    for name, expected in [
        ("0a.com", True),
        ("0a.א", False),
        ("a.א", True),
        ("xn--4db.0a", False),
        ("xn--4db.a0", True),
    ]:
        assert WIDE.matches(quoted(name)) == expected, name


def test_every_viable_prefix_can_be_completed() -> None:
    """No walk of allowed characters comes to a dead end, near the greatest lengths either."""
    random = Random(9)
    for language, letters in ((PLAIN, "abx-n0.üzk"), (WIDE, LETTERS)):
        for start in ("", "x", "xn--", "a" * 58, "xn--" + "a" * 53, "ü" * 20, ("a" * 62 + ".") * 4):
            text = b'"'
            for c in start:
                if language.is_viable(text + c.encode()):
                    text += c.encode()
            for _ in range(10):
                going = [c for c in letters if language.is_viable(text + c.encode())]
                if not going:
                    break
                text += random.choice(going).encode()
            ends = [*letters, *"abcdefghijklmnopqrstuvwxyz0123456789-"]
            while not language.matches(text + b'"'):
                text += next(c.encode() for c in ends if language.is_viable(text + c.encode()))
