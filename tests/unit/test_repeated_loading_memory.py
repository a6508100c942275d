"""Loading a tokenizer many times takes no more memory than loading it a few times."""

import pytest

from tests.support.processes import needs_limits, run_python

pytest.importorskip("tokenizers")


def growth(loads: int, use: str) -> float:
    """MiB that resident memory grows by in the second half of loading a tokenizer."""
    program = f"""
        import gc
        from formalm import Constraint, Regex, Vocabulary
        from formalm.models.canary import WEIGHTS

        data = (WEIGHTS / "tokenizer.json").read_bytes()

        def resident():
            gc.collect()
            return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20

        for at in range({loads}):
            if at == {loads} // 2:
                half = resident()
            vocabulary = Vocabulary.from_tokenizer_json(data)
            {use}
        print(resident() - half)
        """
    return float(run_python(program, timeout=600).check().stdout)


CANONICAL = (
    "Constraint(Regex('[a-z ]+'), vocabulary, tokenization='canonical').matcher().bitmask();"
    " vocabulary.is_canonical([1, 2]); vocabulary.encode(f'the cat {at} sat')"
)


@needs_limits
def test_a_tokenizer_that_is_used_canonically_is_loaded_a_hundred_times() -> None:
    # Each load took four more megabytes.
    assert growth(100, CANONICAL) < 20


@needs_limits
@pytest.mark.slow
def test_a_tokenizer_that_is_used_canonically_is_loaded_fifteen_hundred_times() -> None:
    assert growth(1_500, CANONICAL) < 20
