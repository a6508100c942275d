"""What a question costs: progress while it is answered, and the cost report of its result."""

from formalm.drivers.cost import Cost
from formalm.drivers.progress import Progress

__all__ = ["Cost", "Progress"]
