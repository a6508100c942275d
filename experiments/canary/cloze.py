"""The story cloze: items with a known answer, and four ways to ask for the last word.

In a quarter of the competitors' closings each, something else is more likely than the answer: a
word from outside the story, a word of the story that does not end it, or a stop word. So a plain
query, one limited to words of the story, one that must end, and one without stop words have
different, known accuracies.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .chance import RandomSource
from .corpus import Corpus
from .scoring import Scorer
from .tokens import END_ID

CLASSES = {"At night": "plain", "In the morning": "outside", "Only": "continued", "It was": "stop"}
FORMS = ("base", "words", "terminated", "no_stop", "all")
SOLVED = {
    "base": {"plain"},
    "words": {"plain", "outside"},
    "terminated": {"plain", "continued"},
    "no_stop": {"plain", "continued", "stop"},
    "all": {"plain", "outside", "continued", "stop"},
}
STOP_WORDS = frozenset(
    "a about all also an and any are as at be been but by can could did do for from had has have "
    "he her him his how i if in into is it its just me my no nor not of off on only or other our "
    "own same she so some such than that the their them then there they this those to too up was "
    "we were what when where which who why will with you your".split()
)


@dataclass(frozen=True)
class Item:
    """A story without its last word, the word, and the kind of its competitor."""

    context: str
    answer: str
    kind: str

    @property
    def words(self) -> frozenset[str]:
        """The words of the context."""
        return frozenset(re.findall(r"\w+", self.context))


def make_items(corpus: Corpus, count: int, seed: str) -> list[Item]:
    """Draw stories that end in their object, a balanced list over the closings' weights."""
    source = RandomSource(seed)
    wanted = {"plain": count * 2 // 5, "outside": count // 5, "continued": count // 5}
    wanted["stop"] = count - sum(wanted.values())
    objects = {word.rpartition("/")[2] for word in corpus.grammar.classes["object"]}
    objects |= {word.rpartition("/")[2] for word in corpus.grammar.classes["topic"]}
    items: list[Item] = []
    while len(items) < count:
        text, _ = corpus.grammar.draw("story", source)
        context, _, last = text.rpartition(" ")
        closing = text.split(". ")[-1]
        kind = next(name for start, name in CLASSES.items() if closing.startswith(start))
        direct = context.endswith(" the")  # not a story that went on with its adjective
        if last[:-1] in objects and direct and wanted[kind] > 0:
            wanted[kind] -= 1
            items.append(Item(context, last[:-1], kind))
    return items


def predict(scorer: Scorer, item: Item, form: str) -> str:
    """Return the word that the most likely member of a form's language stands for."""
    limited = item.words if form in ("words", "all") else None
    ended = form in ("terminated", "no_stop", "all")
    barred = STOP_WORDS if form in ("no_stop", "all") else frozenset()
    hits = scorer.search(item.context, _language(scorer, limited, ended), expansions=3000)
    for sequence, _ in hits:
        word = _text(scorer, sequence).strip().rstrip(".!?")
        if word not in barred and (limited is None or word in limited):
            return word
    return ""


def accuracy(scorer: Scorer, items: list[Item]) -> dict[str, dict[str, float]]:
    """Return the share of right answers by form, over all items and by kind of competitor."""
    out: dict[str, dict[str, float]] = {}
    for form in FORMS:
        right = [predict(scorer, item, form) == item.answer for item in items]
        out[form] = {"all": sum(right) / len(items)}
        for kind in CLASSES.values():
            chosen = [ok for ok, item in zip(right, items, strict=True) if item.kind == kind]
            out[form][kind] = sum(chosen) / len(chosen)
    return out


def truth(items: list[Item]) -> dict[str, float]:
    """Return each form's accuracy for a model that knows the corpus exactly."""
    return {form: sum(item.kind in SOLVED[form] for item in items) / len(items) for form in FORMS}


def _text(scorer: Scorer, sequence: tuple[int, ...]) -> str:
    return "".join(scorer.pieces[token] for token in sequence if token != END_ID)


def _language(
    scorer: Scorer, words: frozenset[str] | None, ended: bool
) -> Callable[[tuple[int, ...]], list[int] | None]:
    """Return what may follow: a space and letters, one mark at most, and the end if asked for."""
    pieces = scorer.pieces
    first = [i for i, piece in enumerate(pieces) if re.fullmatch(r" [A-Za-z]+", piece)]
    more = [i for i, piece in enumerate(pieces) if re.fullmatch(r"[A-Za-z]+", piece)]
    marks = [i for i, piece in enumerate(pieces) if piece in (".", "!", "?")]

    def fits(sequence: tuple[int, ...]) -> bool:
        start = _text(scorer, sequence)[1:]
        return words is None or any(word.startswith(start) for word in words)

    def allowed(sequence: tuple[int, ...]) -> list[int] | None:
        if not sequence:
            return [token for token in first if fits((token,))]
        text = _text(scorer, sequence)
        complete = words is None or text.strip().rstrip(".!?") in words
        if sequence[-1] == END_ID or (not ended and complete):
            return None
        if text[-1] in ".!?":
            return [END_ID]
        follow = [token for token in more if fits((*sequence, token))]
        return follow + ([*marks, END_ID] if complete else [])

    return allowed
