"""``python -m formalm``."""

from formalm.cli import main

main()
