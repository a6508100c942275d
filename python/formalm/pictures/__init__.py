"""Drawings of automata and grammars: Graphviz source, SVG, notebook views, railroad diagrams."""

from formalm.pictures.diagram import Diagram
from formalm.pictures.dot import dot
from formalm.pictures.html import html
from formalm.pictures.svg import svg

__all__ = ["Diagram", "dot", "html", "svg"]
