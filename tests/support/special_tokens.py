"""A vocabulary with special tokens, and languages with some of them."""

from formalm import (
    CallFormat,
    Choice,
    Grammar,
    Language,
    Regex,
    Section,
    SpecialToken,
    StringLiteral,
    Structure,
    ToolCalls,
    TypeScript,
    Vocabulary,
)
from formalm.languages import free_text

CALL, DONE = SpecialToken("<|call|>"), SpecialToken("<|done|>")
# Ordinary tokens that spell the names, or would spell a special token if they were let.
TEXTS = [b"<|call|>", b"<|", b"call", b"|>", b"\xfe", b"\xfe<|call|>\xfe", b"\xfe<|", b"a\xfe"]
BYTES = [bytes([byte]) for byte in range(256)]
TOKENS = [*BYTES, *TEXTS, None, None, None, None]
ID = {"<|call|>": 264, "<|done|>": 265, "<|other|>": 266, "<|end|>": 267}
VOCABULARY = Vocabulary.from_tokens(TOKENS, end_token_ids=[267], special_tokens=ID)

CASES: list[Language] = [
    Structure([Section(CALL, Regex("[0-9]+"), DONE), Section("<x", Choice(["ab"]))], maximum=2),
    Structure([Section(("q<", CALL), Regex("z{2}")), Section((DONE, "n"), CALL)], free=False),
    Structure([Section("<t>", Regex("a+"), DONE)], reasoning=(CALL, DONE)),
    ToolCalls(
        {"add": TypeScript("{ a: 1 }"), "sub": Regex("[0-9]+")},
        CallFormat(("f{name}", DONE, "{arguments}"), begin=CALL, end=("q", DONE), separator=DONE),
        required="sub",
    ),
    Regex("[a<|]*") + CALL + free_text("x") + DONE,
    (Choice(["<|call", "\U0001f600"]) | CALL).repeat(1, 3),
    Grammar("start: <|call|> start <|done|> | /[a-z<|>]*/", lexing="any")
    | StringLiteral("<|call|>"),
    Grammar('start: A (<|call|> A)*\nA: /[a-z]+(?=<|.?)/ "<" | "|"'),
    Grammar('start: %json {"type": "integer"} <|done|> start | <|call|>'),
]
