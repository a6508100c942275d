"""Notes about formats that depend on a version or have no maximum length."""

from formalm import JsonSchema


def test_characters_of_host_names_are_reported_with_their_unicode_version() -> None:
    notes = JsonSchema({"format": "idn-hostname"}).notes
    assert [(note.place, note.effect) for note in notes] == [("#/format", "exact")]
    assert "Unicode 14" in notes[0].message
    assert JsonSchema({"format": "hostname"}).notes == ()


def test_addresses_have_no_limit_of_length() -> None:
    """RFC 5321, 4.5.3.1: 64 bytes must be taken, and more may be."""
    address = JsonSchema({"type": "string", "format": "email"})
    for length in (64, 65, 300):
        assert address.matches(f'"{"a" * length}@b.c"')
