"""Chat templates: rendering of messages to text by the tokenizer's Jinja template, in a sandbox.

Templates are written for the renderer of the transformers library. This one provides the same
environment: a sandbox, ``trim_blocks`` and ``lstrip_blocks``, loop controls, ``{% generation %}``,
``tojson``, ``raise_exception`` and ``strftime_now``. The tests compare the two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from formalm.errors import ArgumentError, LimitError, VocabularyError

__all__ = ["ChatTemplate"]

MAX_CHARACTERS = 1 << 24

# Parameter names of the renderer of transformers, which cannot be variables of a template.
RESERVED = "messages tools add_generation_prompt chat_template continue_final_message tokenize"


class ChatTemplate:
    """The templates of a tokenizer and the texts of its named special tokens.

    Parameters
    ----------
    templates
        Templates by name: ``"default"``, and possibly ``"tool_use"`` for conversations with tools.
    variables
        Variables such as ``{"bos_token": "<s>"}``.
    """

    def __init__(self, templates: Mapping[str, str], variables: Mapping[str, str]) -> None:
        self.templates = dict(templates)
        self.variables = dict(variables)

    def source(self, tools: object) -> str:
        """Returns the template of a conversation with these tools."""
        name = "tool_use" if tools is not None and "tool_use" in self.templates else "default"
        if name not in self.templates:
            names = ", ".join(sorted(self.templates))
            raise VocabularyError(f"none of the chat templates ({names}) is the default")
        return self.templates[name]

    def render(
        self, messages: list[Any], tools: list[Any] | None, prompt: bool, given: Mapping[str, Any]
    ) -> str:
        """Returns the text of a conversation.

        Raises
        ------
        ArgumentError
            If the template refuses the messages, or does not use an argument.
        VocabularyError
            If the template is broken or does what the sandbox forbids.
        """
        source = self.source(tools)
        template, variables, _ = _compiled(source)
        unused = [name for name in given if name in RESERVED.split() or name not in variables]
        if unused:
            known = ", ".join(sorted(variables - {*RESERVED.split(), *self.variables})) or "none"
            raise ArgumentError(
                f"arguments must be those of the chat template, got {unused[0]!r}",
                hint=f"its arguments: {known}",
            )
        if tools is not None and "tools" not in variables:
            raise ArgumentError("the chat template has no place for tools")
        values = {"documents": None, **self.variables, **given}
        return _rendered(
            template,
            {"messages": messages, "tools": tools, "add_generation_prompt": prompt, **values},
        )

    def literal_text(self, tools: object) -> str:
        """Returns the strings that the template itself writes, concatenated."""
        return _compiled(self.source(tools))[2]


def _rendered(template: Any, values: dict[str, Any]) -> str:
    from jinja2.exceptions import SecurityError, TemplateError

    text, length = [], 0
    try:
        for part in template.generate(**values):
            text.append(part)
            length += len(part)
            if length > MAX_CHARACTERS:
                break
    except SecurityError as error:
        raise VocabularyError(f"the chat template does what it must not: {error}") from None
    except TemplateError as error:
        raise ArgumentError(f"the chat template refuses these messages: {error}") from None
    except Exception as error:  # whatever an expression of the template raises
        what = f"{type(error).__name__}: {error}"
        raise ArgumentError(f"the chat template fails on these messages: {what}") from None
    if length > MAX_CHARACTERS:
        raise LimitError("characters of a rendered chat", length, MAX_CHARACTERS)
    return "".join(text)


@lru_cache(maxsize=64)
def _compiled(source: str) -> tuple[Any, frozenset[str], str]:
    """Returns the template, the names it reads from outside, and the strings it writes itself."""
    environment = _environment()
    from jinja2 import TemplateSyntaxError, meta, nodes

    try:
        tree = environment.parse(source)
        variables = frozenset(meta.find_undeclared_variables(tree))
        texts = [node.data for node in tree.find_all(nodes.TemplateData)]
        constants = [node.value for node in tree.find_all(nodes.Const)]
        texts += [value for value in constants if isinstance(value, str)]
        return environment.from_string(source), variables, "\0".join(texts)
    except TemplateSyntaxError as error:
        raise VocabularyError(
            f"the chat template is broken: {error.message}, line {error.lineno}"
        ) from None
    except RecursionError:
        raise VocabularyError("the chat template is nested too deeply") from None


@lru_cache(maxsize=1)
def _environment() -> Any:
    try:
        import jinja2
        from jinja2.ext import Extension, loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise VocabularyError(
            "chat templates need the jinja2 package", hint="pip install 'formalm[chat]'"
        ) from None

    class Generation(Extension):  # type: ignore[misc]
        """``{% generation %}`` marks an assistant's output; here the mark has no effect."""

        tags = {"generation"}  # noqa: RUF012 - the name and type that jinja2 asks for

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            # A call block, as in transformers, so that variables set inside stay inside.
            call = self.call_method("_same")
            return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

        def _same(self, caller: Any) -> Any:
            return caller()

    class Namespace(jinja2.utils.Namespace):  # type: ignore[misc]
        """A namespace whose attributes are not Python's own."""

        def __init__(*args: Any, **values: Any) -> None:
            jinja2.utils.Namespace.__init__(args[0])
            for name, value in dict(*args[1:], **values).items():
                args[0][name] = value

        def __setitem__(self, name: str, value: Any) -> None:
            if str(name).startswith("_"):
                raise jinja2.exceptions.SecurityError(f"namespaces have no attribute {name!r}")
            super().__setitem__(name, value)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    environment.globals["namespace"] = Namespace
    return environment


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    """Returns JSON without the HTML escapes of Jinja's own filter."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _refuse(message: object) -> None:
    from jinja2.exceptions import TemplateError

    raise TemplateError(str(message))
