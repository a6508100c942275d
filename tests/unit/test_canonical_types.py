"""The bench of prepared types: its values are of their types, and each is measured."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
from tokenizers import pre_tokenizers

from benches import canonical_types
from benches.canonical_types import TYPES, combined, first_visits, page
from formalm import Vocabulary
from tests.canonical.small_tokenizers import trained


def test_values_are_of_their_types() -> None:
    for schema, values in TYPES.values():
        validator = jsonschema_rs.validator_for(schema, validate_formats=True)
        assert len(values) == 2
        for value in values:
            assert validator.is_valid(value), value


def test_masks_of_all_types_are_measured(tmp_path: Path) -> None:
    data = trained(pre_tokenizers.ByteLevel(add_prefix_space=False)).to_str().encode()
    path = tmp_path / "saved"
    Vocabulary.from_tokenizer_json(data).save(path, types=True)
    figures = first_visits(str(path))
    assert [one["missed"] for one in figures["schemas"]] == [0, 0]
    way = {"save_s": 1.0, "bytes": path.stat().st_size, **combined([figures, figures])}
    for kind in [*TYPES, "between"]:
        measured = way["schemas"][0][kind]
        assert measured["sum"] >= measured["most"] > 0
    assert json.loads(json.dumps(way)) == way
    about = dict.fromkeys(("date", "cpu", "cores", "python", "commit", "load_average"), "")
    record = {"tokenizers": {"small": {"canonical": way, "types": way}}}
    text = page({**record, "about": {**about, "versions": {}, "load_average_after": []}})
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(TYPES) + 1
    assert canonical_types.NAMES
