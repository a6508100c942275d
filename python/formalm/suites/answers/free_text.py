"""Free generation as a baseline: unconstrained texts, and the members found in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from formalm.errors import VocabularyError
from formalm.generation import Generation, generate
from formalm.languages import Language, Regex
from formalm.models import LanguageModel
from formalm.suites.suite_items import Item
from formalm.vocabulary import Vocabulary

__all__ = ["begins_with", "free", "judged_text"]

Judge = Callable[[str], bool] | None


def free(model: LanguageModel, item: Item, judge: Judge, *, batch_size: int) -> dict[str, Any]:
    """Lets a model write without constraint after the given prefix, and searches the output.

    A text is cut at the end token or after ``max_tokens``, never by its characters, so that no part
    of the end is mistaken for text. The members are then searched in it: at its beginning, or
    anywhere with the event ``"contains"``.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupted it.
    """
    question, rule = item.question, item.query.decoding
    start = "" if item.query.given is None else (item.query.given.shortest() or b"").decode()
    prompt = (question.prompt or "") + start
    written = generate(
        model,
        prompt or None,
        n=question.draws,
        seed=question.seed,
        max_tokens=item.query.max_tokens,
        temperature=rule.temperature,
        top_k=rule.top_k,
        top_p=rule.top_p,
        min_p=rule.min_p,
        bos=item.query.bos,
        batch_size=batch_size,
    )
    if any(one.reason == "interrupted" for one in written):
        raise KeyboardInterrupt
    language = item.query.effective_language
    everywhere = None
    if item.query.event == "contains":
        everywhere = Regex(r"(?s).*") + language + Regex(r"(?s).*")
    rows = []
    for one in written:
        text = start + one.text
        row: dict[str, Any] = {"text": text, "tokens": len(one.token_ids)}
        row["ended"] = one.reason == "end_token"
        row["canonical"] = _is_canonical(model.vocabulary, prompt, one)
        row["match"] = row["ended"] and language.matches(text)
        if everywhere is not None:
            row["found"] = text if everywhere.matches(text) else None
        else:
            row["found"] = begins_with(language, text)
        if judge is not None:
            found = row["found"]
            row["valid"] = found is not None and judge(judged_text(item, found))
        rows.append(row)
    front = len(written[0].prompt_token_ids) if written else 0
    tokens = sum(row["tokens"] for row in rows)
    work = {"forwards": tokens, "calls": 0, "tokens_computed": front + tokens}
    work |= {"cache_hits": 0, "expansions": tokens}
    return {
        "ask": "free",
        "texts": rows,
        "status": "done",
        "truncated_by": None,
        "work": work,
    }


def begins_with(language: Language, text: str) -> str | None:
    """Returns the longest prefix of a text that is a member; None if there is none."""
    longest = "" if language.matches("") else None
    for end in range(1, len(text) + 1):
        if not language.is_viable(text[:end]):
            break
        if language.matches(text[:end]):
            longest = text[:end]
    return longest


def judged_text(item: Item, text: str) -> str:
    """Returns the part of a member that the oracle sees: a slot, or all of it."""
    judged = item.question.judge
    if judged is None:
        return text
    found = item.query.effective_language.captures(text)
    return text if found is None else str(found[judged])


def _is_canonical(vocabulary: Vocabulary, prompt: str, one: Generation) -> bool | None:
    """Returns whether the tokens are canonical; None if the text has no canonical tokens."""
    ids = one.token_ids[:-1] if one.reason == "end_token" else one.token_ids
    try:
        front = vocabulary.encode(prompt) if prompt else []
        whole = vocabulary.encode(prompt + one.data.decode())
    except (VocabularyError, UnicodeDecodeError):
        return None  # it has no encoder, or the text was cut inside a character
    return list(whole) == [*front, *ids]
