"""Runs the small suite in a process of its own, slowly enough to be killed in the middle."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from formalm.suites import Step, Suite, run_suite
from tests.suites.small_suites import MODEL, TINY


class Slow:
    """The small model, with a pause before each answer."""

    vocabulary, bos_token_id, context_length = MODEL.vocabulary, None, None

    def next_logprobs(self, prefixes):
        time.sleep(0.01)
        return MODEL.next_logprobs(prefixes)


def told(step: Step) -> None:
    print(step.source, flush=True)


if __name__ == "__main__":
    run_suite(Suite.from_toml(TINY), Slow(), sys.argv[1], identity="small", progress=told)
