"""Encoding of chat messages to token ids by the tokenizer's own template.

The names of special tokens that the *template* writes become those tokens. In a message, the same
names are ordinary text, so the author of a message cannot end it and begin another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from formalm.argument_checks import checked_flag
from formalm.errors import ArgumentError
from formalm.vocabulary.chat_template import ChatTemplate
from formalm.vocabulary.tokenizer_libraries import JsonTokenizer, checked_text

__all__ = ["encode_chat"]

# Private-use characters around the names of tokens in messages, while a chat is rendered.
OPEN, CLOSE = "\U000f0000", "\U000f0001"
MAX_DEPTH = 64
REASONING = ("reasoning_content", "thinking", "reasoning")


class Inputs(NamedTuple):
    """The arguments of a chat template."""

    messages: list[Any]
    tools: list[Any] | None
    prompt: bool
    given: dict[str, Any]


def encode_chat(
    template: ChatTemplate,
    tokenizer: JsonTokenizer,
    messages: object,
    tools: object,
    add_generation_prompt: object,
    given: Mapping[str, Any],
) -> list[int]:
    """Returns the token ids of a conversation; see :meth:`formalm.Vocabulary.encode_chat`."""
    begins_answer = checked_flag("add_generation_prompt", add_generation_prompt)
    arguments = {name: _plain(value, f"argument {name}") for name, value in given.items()}
    inputs = Inputs(_messages(messages), _tools(tools), begins_answer, arguments)
    text = checked_text(template.render(*inputs))
    control = _control(template, tokenizer, inputs.tools)
    # Of a thousand special tokens, few occur in a text, and searching only for those is fast.
    pattern = _pattern([name for name in control if name in text])
    ids = tokenizer.encode_marked(text)
    if not any(pattern.search(each) for each in _strings(inputs)):
        known = set(control.values())
        if sum(token_id in known for token_id in ids) == len(pattern.findall(text)):
            return ids
        raise _unsafe("a special token appears where neither template nor messages name it")
    if any(pattern.search(joined) for joined in _joined(inputs, pattern)):
        raise _unsafe("its name is put together from several parts")
    # A message contains the name of a special token. Cut the rendered text at the tokens that the
    # template wrote, and encode the parts as text. This is exact if cutting the text at *every*
    # such name gives the tokenizer's own result, which is checked and not assumed.
    if _cut(tokenizer, control, pattern, text) != ids:
        raise _unsafe("this tokenizer reads the text around special tokens in ways of its own")
    marked = template.render(*_marked(inputs, pattern))
    if marked.replace(OPEN, "").replace(CLOSE, "") != text:
        raise _unsafe("the template decides by the token's name")
    wrapped = re.compile(f"{OPEN}({pattern.pattern}){CLOSE}|{pattern.pattern}")
    if {OPEN, CLOSE} & {*wrapped.sub("", marked)}:
        raise _unsafe("the template cuts the token's name into pieces")
    return _cut(tokenizer, control, wrapped, marked)


def _cut(
    tokenizer: JsonTokenizer, control: dict[str, int], pattern: re.Pattern[str], text: str
) -> list[int]:
    """Returns the ids of a text, cut at the names that the pattern finds outside its group."""
    ids: list[int] = []
    part, end = "", 0
    for match in pattern.finditer(text):
        part += text[end : match.start()]
        end = match.end()
        if match.lastindex:
            part += match[1]
            continue
        ids += tokenizer.encode_plain(part, control) if part else []
        ids.append(control[match[0]])
        part = ""
    part += text[end:]
    return ids + (tokenizer.encode_plain(part, control) if part else [])


def _control(template: ChatTemplate, tokenizer: JsonTokenizer, tools: object) -> dict[str, int]:
    """Returns names and ids of the tokens that no message may produce.

    These are the special tokens, and the added tokens that the template itself writes.
    """
    literal = template.literal_text(tools)
    return {
        name: token_id
        for name, token_id, special in tokenizer.added_tokens()
        if name and (special or (name in literal and not name.isspace()))
    }


def _pattern(names: Sequence[str]) -> re.Pattern[str]:
    """Returns a pattern that finds names; the longest at each position, as in tokenizers."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")


def _unsafe(why: str) -> ArgumentError:
    return ArgumentError(
        f"a message holds the name of a special token, and {why}",
        hint="take the name out of the message; it would be read as the token, not as text",
    )


def _strings(value: object) -> list[str]:
    """Returns all strings in a value; the parts of one content also as one string."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for pair in value.items() for each in pair for text in _strings(each)]
    if isinstance(value, (list, tuple)):
        return ["".join(_parts(value)), *(text for each in value for text in _strings(each))]
    return []


def _parts(value: list[Any] | tuple[Any, ...]) -> list[str]:
    """Returns the strings of a content that is a list of parts."""
    texts = [part.get("text") for part in value if isinstance(part, Mapping)]
    return [text for text in texts if isinstance(text, str)]


def _joined(value: object, pattern: re.Pattern[str]) -> list[str]:
    """Returns the remainder of contents in several parts, without names inside one part."""
    if isinstance(value, Mapping):
        return [text for each in value.values() for text in _joined(each, pattern)]
    if isinstance(value, (list, tuple)):
        whole = "".join(pattern.sub(OPEN, part) for part in _parts(value))
        return [whole, *(text for each in value for text in _joined(each, pattern))]
    return []


def _marked(value: Any, pattern: re.Pattern[str]) -> Any:
    """Returns a value with every name of a special token between marks."""
    if isinstance(value, str):
        if OPEN in value or CLOSE in value:
            raise _unsafe("it holds the private-use characters that would mark it")
        return pattern.sub(f"{OPEN}\\g<0>{CLOSE}", value)
    if isinstance(value, Mapping):
        return {_marked(key, pattern): _marked(each, pattern) for key, each in value.items()}
    if isinstance(value, Inputs):
        return Inputs(*(_marked(each, pattern) for each in value))
    if isinstance(value, (list, tuple)):
        return [_marked(each, pattern) for each in value]
    return value


def _messages(messages: object) -> list[Any]:
    """Returns messages as plain data, without absent values; errors name the place."""
    if not isinstance(messages, (list, tuple)):
        kind = type(messages).__name__
        raise ArgumentError(f"messages must be a list of dicts, got {kind}")
    if not messages:
        raise ArgumentError("messages must have at least one message, got none")
    return [_message(message, f"messages[{at}]") for at, message in enumerate(messages)]


def _message(message: object, place: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise ArgumentError(
            f"{place} must be a dict with role and content, got {type(message).__name__}"
        )
    plain: dict[str, Any] = {
        key: value for key, value in _plain(message, place).items() if value is not None
    }
    role = plain.get("role")
    if not isinstance(role, str) or not role:
        raise ArgumentError(f"{place}['role'] must be a name such as 'user', got {role!r}")
    said = {"content", "tool_calls", *REASONING} & plain.keys()
    if not said:
        raise ArgumentError(f"{place}['content'] must be given")
    content = plain.get("content", "")
    if not isinstance(content, (str, list, tuple, dict)):
        kind = type(content).__name__
        raise ArgumentError(f"{place}['content'] must be a str or a list of parts, got {kind}")
    reasoning = next((plain[name] for name in REASONING if name in plain), None)
    if reasoning is not None:  # templates read it under one of two names
        plain = {"thinking": reasoning, **plain, "reasoning_content": reasoning}
    return plain


def _tools(tools: object) -> list[Any] | None:
    if tools is None:
        return None
    if not isinstance(tools, (list, tuple)):
        raise ArgumentError(f"tools must be a list of dicts, got {type(tools).__name__}")
    for at, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            raise ArgumentError(
                f"tools[{at}] must be a dict with the tool's JSON Schema, got {type(tool).__name__}"
            )
    return [_plain(tool, f"tools[{at}]") for at, tool in enumerate(tools)]


def _plain(value: object, place: str, depth: int = 0) -> Any:
    """Returns a copy made of JSON types only: templates must not receive objects with methods."""
    if depth > MAX_DEPTH:
        raise ArgumentError(f"{place} must be nested at most {MAX_DEPTH} deep")
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if type(key) not in (str, int, float, bool, type(None)):
                raise ArgumentError(f"keys of {place} must be str, got {type(key).__name__}")
        return {key: _plain(each, f"{place}[{key!r}]", depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, f"{place}[{at}]", depth + 1) for at, each in enumerate(value)]
    for kind in (str, int, float):
        if isinstance(value, kind):  # an enum's member, for one
            return kind.__str__(value) if kind is str else kind(value)
    raise ArgumentError(
        f"{place} must be JSON, got {type(value).__name__}", hint="templates read JSON"
    )
