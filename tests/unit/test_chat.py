"""Chats: wrong messages and templates are typed errors that name the place."""

from __future__ import annotations

import enum
import json
from typing import Any

import pytest

from formalm import ArgumentError, LimitError, Vocabulary, VocabularyError
from formalm.models.canary import WEIGHTS
from formalm.vocabulary import chat_template as templates

PLAIN = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
USER = [{"role": "user", "content": "Hi"}]


def vocabulary(source: str, tmp_path: Any) -> Vocabulary:
    """The embedded model's tokenizer with a template."""
    pytest.importorskip("jinja2")
    (tmp_path / "tokenizer.json").write_bytes((WEIGHTS / "tokenizer.json").read_bytes())
    config = {"eos_token": "<|endoftext|>", "chat_template": source}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return Vocabulary.from_pretrained(tmp_path)


class Role(str, enum.Enum):
    USER = "user"


def test_a_chat_is_a_prompt(tmp_path: Any) -> None:
    chat = vocabulary(PLAIN, tmp_path)
    assert chat.can_chat
    assert chat.encode_chat(USER) == chat.encode("user: Hi\n")
    assert chat.encode_chat([{"role": Role.USER, "content": "Hi"}]) == chat.encode_chat(USER)
    assert chat.encode_chat(tuple(USER)) == chat.encode_chat(USER)


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        (None, "messages"),
        ("Hi", "messages"),
        ({"role": "user", "content": "Hi"}, "messages"),
        ([], "at least one message"),
        ([*USER, "Hi"], r"messages\[1\]"),
        ([*USER, {"content": "Hi"}], r"messages\[1\]\['role'\]"),
        ([{"role": 5, "content": "Hi"}], r"messages\[0\]\['role'\]"),
        ([{"role": "user"}], r"messages\[0\]\['content'\]"),
        ([{"role": "user", "content": None}], r"messages\[0\]\['content'\]"),
        ([{"role": "user", "content": 5}], r"messages\[0\]\['content'\]"),
        ([{"role": "user", "content": b"Hi"}], r"messages\[0\]\['content'\]"),
        ([{"role": "user", "content": "a", "x": [object()]}], r"messages\[0\]\['x'\]\[0\]"),
        ([{"role": "user", "content": "a", 5j: 1}], r"keys of messages\[0\] must be str"),
        ([{"role": "user", "content": "\ud800"}], "surrogate"),
    ],
)
def test_malformed_messages(messages: Any, place: str, tmp_path: Any) -> None:
    with pytest.raises(ArgumentError, match=place):
        vocabulary(PLAIN, tmp_path).encode_chat(messages)


def test_no_given_option_is_ignored(tmp_path: Any) -> None:
    chat = vocabulary(PLAIN, tmp_path)
    for given in (
        {"tools": [{"name": "f"}]},
        {"enable_thinking": True},
        {"continue_final_message": True},
        {"chat_template": PLAIN},
        {"messages": []},
        {"add_generation_prompt": "yes"},
    ):
        if "messages" in given:
            continue
        with pytest.raises(ArgumentError):
            chat.encode_chat(USER, **given)
    with_tools = vocabulary("{{ tools }}", tmp_path)
    for tools in ("f", [print], {"name": "f"}, [{"f": print}]):
        with pytest.raises(ArgumentError, match="tools"):
            with_tools.encode_chat(USER, tools=tools)  # type: ignore[arg-type]


def test_a_deep_message_is_refused(tmp_path: Any) -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ArgumentError, match="deep"):
        vocabulary(PLAIN, tmp_path).encode_chat([{"role": "user", "content": deep}])


@pytest.mark.parametrize(
    ("source", "kind", "match"),
    [
        ("{{ raise_exception('no system role') }}", ArgumentError, "no system role"),
        ("{{ messages[9].content.x }}", ArgumentError, "refuses"),
        ("{{ messages + 1 }}", ArgumentError, "TypeError"),
        ("{% for %}", VocabularyError, "line 1"),
        ("{{ messages.__class__.__mro__ }}", VocabularyError, "must not"),
        ("{{ messages.append(1) }}", VocabularyError, "must not"),
        ("{% set ns = namespace(_x=1) %}", VocabularyError, "_x"),
    ],
)
def test_templates_that_fail(source: str, kind: Any, match: str, tmp_path: Any) -> None:
    with pytest.raises(kind, match=match):
        vocabulary(source, tmp_path).encode_chat(USER)


def test_a_template_cannot_write_forever(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "MAX_CHARACTERS", 1000)
    with pytest.raises(LimitError):
        vocabulary("{% for i in range(2000) %}x{{ i }}{% endfor %}", tmp_path).encode_chat(USER)


def test_without_a_template() -> None:
    bare = Vocabulary.from_tokens([b"a"])
    assert not bare.can_chat
    with pytest.raises(VocabularyError, match="must have a chat template"):
        bare.encode_chat(USER)
