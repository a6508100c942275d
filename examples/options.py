"""Choose among options: one answer for each prompt of a batch, and how sure the model is.

The contexts are short stories that the embedded model was tested on; the last word is missing, and
it is one that the story mentions. The options of all stories are open for every one of them.
"""

from __future__ import annotations

import math

from formalm import Choice, generate
from formalm.models.canary import canary, facts


def main() -> None:
    """Fill in the last word of eight stories."""
    stories = [item for item in facts()["cloze"]["items"] if item["kind"] == "plain"][:8]
    words = Choice(sorted({" " + story["answer"] for story in stories}))
    answers = generate(canary(), [story["context"] for story in stories], words, beams=3)
    right = 0
    for story, answer in zip(stories, answers, strict=True):
        right += answer.text.strip() == story["answer"]
        print(f"… {story['context'][-40:]}{answer.text}   p = {math.exp(answer.logprob):.2f}")
    print(f"{right} of {len(stories)} as the stories have it")
    assert right >= 6


if __name__ == "__main__":
    main()
