"""``formalm doctor``: checks of versions, masks, tokenizer and the embedded model."""

from __future__ import annotations

from collections.abc import Callable

import typer

from formalm.cli.exit_status import ERROR, print_json, reported
from formalm.cli.shared_options import Json
from formalm.cli.terminal_output import say

__all__ = ["doctor"]


def doctor(json: Json = False) -> None:
    """Check the installation: versions, masks, tokenizer, embedded model."""
    with reported(json):
        checks = [_run(name, check) for name, check in _CHECKS.items()]
        for name, good, text in checks:
            if json:
                print_json({"check": name, "ok": good, "text": text})
            else:
                mark, color = ("ok    ", None) if good else ("failed", "red")
                say(f"{mark}  {name:10}  {text}", color=color)
        if not all(good for _, good, _ in checks):
            raise typer.Exit(ERROR)


def _run(name: str, check: Callable[[], str]) -> tuple[str, bool, str]:
    try:
        return name, True, check()
    except Exception as error:  # a failed check must not stop the others
        return name, False, f"{type(error).__name__}: {error}"


def _versions() -> str:
    import platform

    import numpy as np

    from formalm import __version__

    versions = f"formalm {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    return f"{versions}, {platform.platform()}"


def _masks() -> str:
    from formalm.constraint import Constraint
    from formalm.languages import Regex
    from formalm.reference.naive_mask import naive_mask
    from formalm.vocabulary import Vocabulary

    tokens = [b"a", b".", b".2", b"1", "é".encode()[:1], None]
    vocabulary = Vocabulary.from_tokens(tokens, end_token_ids=[5])
    language = Regex(r"[0-9]+\.[0-9]+|é")
    matcher = Constraint(language, vocabulary).matcher()
    for token_id in (3, 2, 3):
        if not (matcher.mask() == naive_mask(language, vocabulary, matcher.text)).all():
            raise ValueError(f"the mask after {matcher.text!r} differs from its definition")
        matcher.advance(token_id)
    return "equal to the reference implementation"


def _encoding() -> str:
    import tokenizers

    return f"tokenizers {tokenizers.__version__}"


def _canary() -> str:
    from formalm.generation import generate
    from formalm.languages import Regex
    from formalm.models.canary import canary

    text = generate(canary(), "", Regex("[0-9]{3}-[0-9]{4}"), seed=1)
    return f"{len(canary().vocabulary):,} tokens; generated {text.text}"


def _torch() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"torch {version('torch')}, optional"
    except PackageNotFoundError:
        return "not installed, optional"


_CHECKS: dict[str, Callable[[], str]] = {
    "versions": _versions,
    "masks": _masks,
    "encoding": _encoding,
    "canary": _canary,
    "torch": _torch,
}
