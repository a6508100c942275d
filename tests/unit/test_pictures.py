"""Pictures: what can be checked about them without eyes."""

import random
import re
import xml.etree.ElementTree as ElementTree

import pytest

from formalm import ArgumentError, LimitError, Regex
from formalm.pictures import Diagram, dot, html, svg

SVG = "{http://www.w3.org/2000/svg}"
XML = ElementTree.fromstring
NASTY = "<&\"'>\\ \n\x00\x1b\ud800\u202e\ufffe日本"


def drawn(states: int, edges: int, seed: int) -> Diagram:
    draw = random.Random(seed)
    pairs = {(draw.randrange(states), draw.randrange(states)) for _ in range(edges)}
    labeled = tuple((a, draw.choice(["a", "0-9 a-z", NASTY, "x" * 40]), b) for a, b in pairs)
    accepting = frozenset(draw.sample(range(states), (states + 1) // 2))
    start = draw.randrange(states)
    return Diagram(start, accepting, labeled, states, len(labeled), "random")


CASES = [
    Diagram(0, frozenset(), (), 1, 0, "nothing"),
    Diagram(0, frozenset({0}), ((0, "a", 0),), 1, 1, "a*"),
    Diagram(0, frozenset({9}), tuple((i, "a", i + 1) for i in range(9)), 10, 9, "chain"),
    Regex(r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])").to_automaton().diagram(),
    Regex(r"[a-z.]+@([a-z]+\.)+(com|org)").to_automaton().diagram(),
    *(drawn(states, edges, seed) for seed, (states, edges) in enumerate([(5, 12), (20, 80)])),
]


def numbers(element: ElementTree.Element, *names: str) -> list[float]:
    return [float(element.attrib[name]) for name in names]


@pytest.mark.parametrize("diagram", CASES, ids=range(len(CASES)))
def test_everything_is_there_and_inside(diagram: Diagram) -> None:
    root = XML(svg(diagram))
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    groups = root.findall(f"{SVG}g")
    states = [group for group in groups if "state" in group.attrib["class"].split()]
    edges = [group for group in groups if group.attrib["class"] == "edge"]
    assert len(states) == diagram.state_count
    assert len(edges) == len(diagram.edges)
    rings = [len(state.findall(f"{SVG}circle")) for state in states]
    assert [ring == 2 for ring in rings] == [
        state in diagram.accepting for state in range(diagram.state_count)
    ]
    for text in root.iter(f"{SVG}text"):
        x, y = numbers(text, "x", "y")
        half = 7.2 * len(text.text or "") / 2
        assert left <= x - half
        assert x + half <= left + width
        assert top <= y - 12
        assert y <= top + height
    for circle in root.iter(f"{SVG}circle"):
        x, y, r = numbers(circle, "cx", "cy", "r")
        assert left <= x - r < x + r <= left + width
        assert top <= y - r < y + r <= top + height


@pytest.mark.parametrize("diagram", CASES, ids=range(len(CASES)))
def test_states_and_labels_do_not_overlap(diagram: Diagram) -> None:
    root = XML(svg(diagram))
    boxes = []
    for group in root.findall(f"{SVG}g"):
        text = group.find(f"{SVG}text")
        circle = group.find(f"{SVG}circle")
        if circle is not None:
            x, y, r = numbers(circle, "cx", "cy", "r")
            boxes.append((x - r, y - r, x + r, y + r))
        elif text is not None:
            x, y = numbers(text, "x", "y")
            half = 7.2 * len(text.text or "") / 2
            boxes.append((x - half, y - 11, x + half, y + 2))
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart = (
                one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            )
            assert apart, (one, other)


@pytest.mark.parametrize("diagram", CASES, ids=range(len(CASES)))
def test_no_edge_runs_through_a_label(diagram: Diagram) -> None:
    """Points along every curve, against the box of every label but its own."""
    root = XML(svg(diagram))
    edges = [g for g in root.findall(f"{SVG}g") if g.attrib["class"] == "edge"]
    labels = []
    for edge in edges:
        text = edge.find(f"{SVG}text")
        assert text is not None
        x, y = numbers(text, "x", "y")
        half = 7.2 * len(text.text or "") / 2
        labels.append((x - half, y - 9, x + half, y + 1))
    for edge in edges:
        path = edge.find(f"{SVG}path")
        assert path is not None
        for x, y in points(path.attrib["d"]):
            for left, top, right, bottom in labels:
                assert not (left < x < right and top < y < bottom)


def points(path: str) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for kind, written in re.findall(r"([MLHC])([^MLHC]*)", path):
        values = [float(value) for value in written.split()]
        if kind == "H":
            values.append(found[-1][1])
        if kind == "C":
            start = found[-1]
            bend = [start, *zip(values[::2], values[1::2], strict=True)]
            for step in range(1, 21):
                t = step / 20
                weights = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3]
                found.append(
                    (
                        sum(w * x for w, (x, _) in zip(weights, bend, strict=True)),
                        sum(w * y for w, (_, y) in zip(weights, bend, strict=True)),
                    )
                )
        else:
            end = (values[0], values[1])
            if found:
                x, y = found[-1]
                found += [(x + (end[0] - x) * i / 20, y + (end[1] - y) * i / 20) for i in range(20)]
            found.append(end)
    return found


def test_equal_diagrams_give_equal_bytes() -> None:
    assert svg(drawn(20, 80, 3)) == svg(drawn(20, 80, 3))
    assert dot(drawn(20, 80, 3)) == dot(drawn(20, 80, 3))


def test_invisible_characters_are_written_as_escapes() -> None:
    diagram = Diagram(0, frozenset({1}), ((0, NASTY, 1),), 2, 1, NASTY)
    picture = svg(diagram)
    root = XML(picture.encode())  # also: it can be encoded
    escaped = "<&\"'>\\ \\n\\x00\\x1b\\ud800\\u202e\\ufffe日本"
    assert root.findtext(f"{SVG}title") == escaped
    (edge,) = [g for g in root.findall(f"{SVG}g") if g.attrib["class"] == "edge"]
    assert edge.findtext(f"{SVG}title") == f"0 → 1: {escaped}"
    shown = edge.findtext(f"{SVG}text")
    assert shown is not None
    assert shown.endswith("…")
    source = dot(diagram).encode().decode()
    assert "<&amp;\\\"'>\\\\ \\\\n" in source
    assert len(source.splitlines()) == 9
    assert "\x1b" not in html(diagram)


def test_dot_names_every_state() -> None:
    diagram = Diagram(1, frozenset({2}), ((1, "a", 2),), 4, 1, "x")
    source = dot(diagram)
    assert re.findall(r"^  (\d+)(?: \[shape=doublecircle\])?;$", source, re.M) == ["0", "2", "3"]
    assert "start -> 1;" in source


def test_limits() -> None:
    large = drawn(151, 160, 1)
    with pytest.raises(LimitError) as refused:
        svg(large)
    assert (refused.value.needed, refused.value.allowed) == (151, 150)
    assert svg(large, state_limit=151).startswith("<svg")
    with pytest.raises(LimitError):
        svg(drawn(60, 5000, 1))
    with pytest.raises(ArgumentError):
        svg(large, state_limit=True)


def test_a_notebook_shows_a_table_for_large_automata() -> None:
    assert "<svg" in html(CASES[3])
    assert CASES[3]._repr_html_() == html(CASES[3])
    chain = tuple((i, "a", i + 1) for i in range(199))
    finite = Diagram(0, frozenset({199}), chain, 200, 199, "<b>")
    assert "finitely many" in html(finite)
    assert "infinitely many" not in html(finite)
    assert "&lt;b&gt;" in html(finite)
    assert "infinitely many" in html(Diagram(0, {199}, (*chain, (199, "b", 5)), 200, 200, "x"))
    # A cycle that no member goes through makes no member.
    assert "infinitely" not in html(Diagram(0, {5}, (*chain, (199, "b", 50)), 200, 200, "x"))
    assert ">none<" in html(Diagram(0, frozenset(), chain, 200, 199, "x"))


@pytest.mark.parametrize(
    "change",
    [
        {"start": 2},
        {"accepting": {-1}},
        {"edges": ((0, "a", 2),)},
        {"edges": ((0, b"a", 1),)},
        {"edges": ((0, "a", 1), (0, "b", 1))},
        {"edges": ((0, "a"),)},
        {"state_count": 0},
        {"edge_count": -1},
        {"title": None},
    ],
)
def test_a_diagram_is_checked(change: dict) -> None:
    good = {
        "start": 0,
        "accepting": frozenset({1}),
        "edges": ((0, "a", 1),),
        "state_count": 2,
        "edge_count": 1,
        "title": "a",
    }
    Diagram(**good)
    with pytest.raises(ArgumentError):
        Diagram(**{**good, **change})


def test_a_large_picture_is_drawn_in_bounded_time() -> None:
    import time

    began = time.perf_counter()
    svg(drawn(150, 400, 2))
    assert time.perf_counter() - began < 20  # a second on a quiet machine
