"""Configuration of the documentation; `make docs` builds it, warnings are errors."""

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from typer.testing import CliRunner

import formalm
from formalm.cli.app import app as command_line

project = "formalm"
author = "The formalm authors"
version = release = formalm.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns: list[str] = []

html_theme = "furo"
html_title = f"formalm {version}"
html_copy_source = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
# Array types spelled out in full make signatures unreadable.
autodoc_type_aliases = {"LogProbs": "LogProbs"}
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Attributes of one name in two classes, such as a group's `start` and an automaton's: a
# description that mentions one is no link to any of them.
suppress_warnings = ["ref.python"]


class CommandHelp(Directive):
    """The help of a command as it is, so that the page cannot differ from it."""

    optional_arguments = 2

    def run(self) -> list[nodes.Node]:
        """Return what ``formalm [COMMAND] --help`` prints."""
        environment = {"COLUMNS": "84", "NO_COLOR": "1", "TERM": "dumb"}
        result = CliRunner().invoke(command_line, [*self.arguments, "--help"], env=environment)
        text = result.output.replace("Usage: root", "Usage: formalm")
        return [nodes.literal_block(text, text, language="text")]


def setup(app: Sphinx) -> None:
    """Register what this configuration adds."""
    app.add_directive("command-help", CommandHelp)
