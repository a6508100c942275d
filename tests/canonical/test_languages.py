"""Bounded languages: the sequences that masks allow are what the library makes of the members."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from formalm import Constraint, Regex
from tests.canonical.small_tokenizers import LANGUAGES, members, sequences
from tests.canonical.tokenizer_files import Case, needs_files

pytestmark = needs_files
MORE = [
    r"boolean: ((true)|(false))",
    r"(Việt| Việt|V|ệ){0,2}",
    r"(<0x0A>|\n|<s>|<｜User｜>|<|U){0,2}",
    r"(::|//|/|\n|a){0,4}",
    r"(a|b|ſ|'){0,4}",
    r"[ -~]{0,2}",
    r"(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day( morning| evening)?",
    r"-?[0-9]{1,2}(\.[0-9]{1,2})?",
    r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-0[1-9]",
    r"https?://(www\.)?(example|test)\.(com|org)/?",
    r"[a-c]{1,2}@[a-c]{1,2}\.(com|de)",
    r"(def |class )[a-c]{1,3}\(\):\n(    |\t)pass\n",
    r"( {0,9}\n){0,3}x",
    r"(\r\n|\n|\r| ){0,5}",
    r"\{\n {2,4}\"id\": [0-9]{1,3},\n {2,4}\"ok\": (true|false)\n\}",
    r"\[(1|22|333)(, ?(1|22|333)){0,2}\]",
    r"(I|you|we)('m|'re|'ve|'ll|’s| am)? (not )?(here|there)",
    r"(DON'T|Don't|don'T|don''t|'t|'T){1,2}",
    r"(日本|日|本語|にほん|ニッポン){0,3}",
    r"(ا|ل|ال|ن){0,4}",
    r"(한|국|한국어| ){0,3}",
    r"(é|e\u0301|É|E\u0301|ñ| ){0,3}",
    r"(😀|👍🏽|👨‍👩‍👧|❤️|a){0,2}",
    r"(\u00a0|\u2003|\u3000|\u200b| |x){0,4}",
    r"(1|12|123|١|²|½|Ⅳ){0,3}",
    r"(foo|Foo|FOO|fooBar|Bar|bar){1,3}",
    r"[ab]{0,2}(\.|\?|!|;){1,3}\n{0,2}[ab]{0,2}",
    r"(=|==|===|!=|=>|->|>>){1,3}",
    r"(#|##|###)? ?(a|The|1)\n{1,3}",
    r"\"(\\\\n|\\\\u00e9|a|\\\\\"){0,3}\"",
    r"(the|The|THE)( [a-c]{1,2}){0,2}\.",
    r"(<b>|</b>|<br/>|a|&amp;){0,3}",
    r"0x[0-9a-f]{1,3}",
    r"(_|__|a|A|1){0,4}",
]
LONG = [pytest.mark.slow, pytest.mark.timeout(1800)]
LARGE = [
    r"[0-9]{1,5}",
    r"[ab]{0,12}",
    r" {0,40}x?",
    r"[ \na1'sé]{0,6}",
    r"[\u0000-\u2fff]",
    r"[\u3000-\ud7ff\ue000-\uffff]",
    r"[\U0001f300-\U0001faff] ?",
]
QUICK = [*LANGUAGES[:4], *LANGUAGES[5:], *MORE]


@cache
def texts_of(pattern: str) -> list[str]:
    return sorted(text.decode() for text in members(Regex(pattern)))


@pytest.mark.parametrize(
    "pattern", [*QUICK, *(pytest.param(pattern, marks=LONG) for pattern in LARGE)]
)
def test_masks_accept_exactly_the_encodings(
    case: Case, pattern: str, record_property: Callable[[str, object], None]
) -> None:
    encoded = case.encode_all(texts_of(pattern))
    expected = {tuple(ids) for ids in encoded if ids is not None}
    constraint = Constraint(Regex(pattern), case.vocabulary, tokenization="canonical")
    # Every state on the way that is not accepting has a token that leads on.
    assert sequences(constraint) == expected
    record_property("sequences", len(expected))
