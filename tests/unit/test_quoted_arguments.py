"""Arguments between quotation marks are refused: they would have to be escaped."""

import pytest

from formalm import CallFormat, LanguageError


@pytest.mark.parametrize(
    "call",
    [
        '{"name": "{name}", "arguments": "{arguments}"}',
        "{name}: '{arguments}'",
        '{"name": "{name}", "arguments": " {arguments} "}',
    ],
)
def test_arguments_between_quotation_marks_are_refused(call: str) -> None:
    with pytest.raises(LanguageError, match="between quotation marks"):
        CallFormat(call, "<call>", "</call>")


def test_arguments_next_to_a_single_quotation_mark_are_read() -> None:
    for call in ('{"name": "{name}", "arguments": {arguments}}', '"{name}"{arguments}'):
        assert CallFormat(call, "<call>", "</call>").call == call
