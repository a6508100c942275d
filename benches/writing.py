"""Records as files: every figure as JSON, and a page of them."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

__all__ = ["origin", "write"]


def write(
    folder: Path, name: str, record: dict[str, Any], page: str, *, indent: int | None = None
) -> None:
    """Write a record and its page, named after the day."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{name}-{datetime.now(timezone.utc):%Y-%m-%d}"
    stem.with_suffix(".json").write_text(json.dumps(record, indent=indent) + "\n")
    stem.with_suffix(".md").write_text(page)


def origin(about: dict[str, Any], load_after: object) -> list[str]:
    """Return the lines that say when, where and with what it was measured."""
    versions = ", ".join(
        f"{name} {version}" for name, version in about["versions"].items() if version
    )
    return [
        f"{about['date']}; {about['cpu']}, {about['cores']} cores; Python {about['python']};",
        f"{versions}; formalm at {about['commit']}.",
        f"Load averages: {about['load_average']} before, {load_after} after.",
    ]
