"""Clocks that times are taken with.

Other work of the machine shows in times on the wall. A thread's CPU time is without it, but to ask
for it is a call of the system, which takes a large part of a microsecond and shows in small times.
"""

from __future__ import annotations

from time import perf_counter_ns, thread_time_ns

#: In nanoseconds.
CLOCKS = {"wall": perf_counter_ns, "cpu": thread_time_ns}

#: What they tell.
NAMES = {"wall": "time on the wall", "cpu": "the thread's CPU time"}
