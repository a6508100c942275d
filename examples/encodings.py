"""All encodings of a few strings, as ReLM's appendix finds them, and as an automaton.

Its algorithms 1 and 2 add a "shortcut" edge for every token that an automaton reads on a walk.
The result for `The ((cat)|(dog))` and the tokens of GPT-2 is the paper's Figure 12, with `Ġ` for
a space. `python examples/encodings.py figure_12.svg` draws it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from formalm import Constraint, Regex, Vocabulary
from formalm.pictures import svg
from formalm.reference.machine_diagrams import machine_diagram
from formalm.reference.relm import add_ambiguous_edges, byte_machine, encodings

# GPT-2's tokens within "The cat" and "The dog".
WORDS = "T h e Th he The Ġ Ġc Ġca Ġcat Ġd Ġdo Ġdog c a t ca at cat d o g do og dog"


def main() -> None:
    """Count the encodings both ways, print some, and draw the automaton if a path is given."""
    language = Regex("The ((cat)|(dog))")
    words = [word.replace("Ġ", " ") for word in WORDS.split()]
    ambiguous = add_ambiguous_edges(byte_machine(language), words)
    found = encodings(ambiguous, 7)
    for encoding in sorted(found, key=lambda one: (len(one), one))[:4]:
        print("-".join(word.replace(" ", "Ġ") for word in encoding))
    vocabulary = Vocabulary.from_tokens([word.encode() for word in words])
    automaton = Constraint(language, vocabulary).to_automaton()
    print(len(found), "encodings,", automaton.edge_count, "edges")
    assert automaton.count() == len(found) == 64
    # The four paths of Figure 3 lead through "The".
    assert len({encoding[: encoding.index(" ")] for encoding in found if " " in encoding}) == 4
    diagram = machine_diagram(ambiguous, "Figure 12", shown=lambda word: word.replace(" ", "Ġ"))
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(svg(diagram), encoding="utf-8")


if __name__ == "__main__":
    main()
