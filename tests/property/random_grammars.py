"""Random grammars over three letters, as Lark text."""

from random import Random

#: Patterns that overlap in every way there is.
PIECES = ["/a/", "/b/", "/ab/", "/a+/", "/a*b/", "/ba?/", "/(ab)+/", "/a|bb/", "/[ab]c/", "/aab/"]
IGNORED = ["/c+/", "/c/", "/ca?/"]


def grammar_text(random: Random) -> str:
    """Return rules with recursion, ambiguity and empty alternatives, and their terminals."""
    names = [f"T{at}" for at in range(random.randint(1, 4))]
    rules = ["start", "left", "right"][: random.randint(1, 3)]
    lines = []
    for rule in rules:
        alternatives = []
        for _ in range(random.randint(1, 3)):
            symbols = random.choices([*names, *names, *rules], k=random.randint(0, 3))
            marked = (one + random.choice(["", "", "", "?", "*"]) for one in symbols)
            alternatives.append(" ".join(marked))
        lines.append(f"{rule}: {' | '.join(alternatives)}")
    for name, piece in zip(names, random.sample(PIECES, len(names)), strict=True):
        lines.append(f"{name}: {piece}")
    if random.random() < 0.5:
        lines.append(f"%ignore {random.choice(IGNORED)}")
    return "\n".join(lines)


def pattern(random: Random) -> str:
    """Return a pattern of a regular language over the same letters."""
    atoms = ["a", "b", "c", "[ab]", "[abc]", "(ab|c)", "a*", "b?", "(aa|b)*", "[abc]*"]
    return "".join(random.choices(atoms, k=random.randint(1, 4)))
