"""Models: the table, any function, and the session that checks them."""

import numpy as np
import pytest

from formalm import ArgumentError, FunctionModel, ModelError, TableModel, generate
from formalm.models import IncrementalModel, LanguageModel, Session, log_softmax
from tests.support.tiny_models import AB_VOCABULARY

HALVES = [0.5, 0.5, 0.0]


class Counter:
    """An incremental model: after n tokens, the n-th token modulo three is certain."""

    def __init__(self, length: int = 0) -> None:
        self.vocabulary = AB_VOCABULARY
        self.bos_token_id = None
        self.context_length = None
        self.length = length

    @property
    def logprobs(self) -> np.ndarray:
        row = np.full(3, -np.inf)
        row[self.length % 3] = 0.0
        return row

    def next_logprobs(self, prefixes) -> np.ndarray:
        return np.stack([Counter(len(prefix)).logprobs for prefix in prefixes])

    def start(self, prefix) -> "Counter":
        return Counter(len(prefix))

    def extend(self, states, token_ids) -> list["Counter"]:
        return [Counter(state.length + 1) for state in states]


def test_tables() -> None:
    model = TableModel(AB_VOCABULARY, {(): {0: 0.75, 2: 0.25}, (0,): HALVES}, default=[0, 0, 1])
    rows = np.exp(model.next_logprobs([(), (0,), (1, 0)]))
    assert rows.tolist() == [[0.75, 0, 0.25], [0.5, 0.5, 0], [0, 0, 1]]
    bigram = TableModel(AB_VOCABULARY, {(): HALVES, (0,): [0, 1, 0], (1,): [1, 0, 0]}, order=1)
    assert np.exp(bigram.next_logprobs([(0, 1)])).tolist() == [[1, 0, 0]]
    function = TableModel(AB_VOCABULARY, lambda context: {len(context) % 3: 1.0})
    assert function.next_logprobs([(0, 0)]).argmax() == 2


def test_a_random_table_is_fixed_by_its_seed() -> None:
    one = TableModel.random(AB_VOCABULARY, seed=3, order=2)
    two = TableModel.random(AB_VOCABULARY, seed=3, order=2)
    prefixes = [(), (0,), (0, 1), (1, 0, 1)]
    assert np.array_equal(one.next_logprobs(prefixes), two.next_logprobs(prefixes[:]))
    assert np.allclose(np.exp(one.next_logprobs(prefixes)).sum(axis=1), 1)


@pytest.mark.parametrize("row", [[0.5, 0.5], [0.5, 0.4, 0], [1.5, -0.5, 0], {5: 1.0}, [[1, 0, 0]]])
def test_a_row_that_is_no_distribution(row: object) -> None:
    with pytest.raises(ModelError):
        TableModel(AB_VOCABULARY, {(): row}).next_logprobs([()])


def test_a_missing_row() -> None:
    with pytest.raises(ModelError, match="must have a distribution"):
        TableModel(AB_VOCABULARY, {}).next_logprobs([(0,)])


def test_any_function_is_a_model() -> None:
    model = FunctionModel(AB_VOCABULARY, lambda prefixes: [[0.0, 0.0, -np.inf]] * len(prefixes))
    assert np.exp(model.next_logprobs([(), (1,)])).tolist() == [HALVES, HALVES]
    assert isinstance(model, LanguageModel)
    assert not isinstance(model, IncrementalModel)


@pytest.mark.parametrize(
    "logits", [[[np.nan, 0, 0]], [[-np.inf] * 3], [0.0, 0.0, 0.0], [], [[np.inf, 0, 0]]]
)
def test_a_function_that_answers_nonsense(logits: list) -> None:
    with pytest.raises(ModelError):
        FunctionModel(AB_VOCABULARY, lambda prefixes: logits).next_logprobs([()])


def test_incremental_and_plain_models_agree() -> None:
    incremental = Counter()
    plain = TableModel(AB_VOCABULARY, lambda context: {len(context) % 3: 1.0})
    assert isinstance(incremental, IncrementalModel)
    for model in (incremental, plain):
        session = Session(model)
        start = session.start([])
        once = session.extend([start, start], [0, 1])
        twice = session.extend([once[0]], [1])
        assert [int(np.argmax(position.logprobs)) for position in (start, *once, *twice)] == [
            0, 1, 1, 2,
        ]  # fmt: skip
        assert once[1].token_ids == (1,)
        assert (session.forwards, session.calls) == (4, 3)
    assert generate(incremental, None, max_tokens=5).text == "ab"


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((1, 3)),
        np.log([[0.5, 0.5]]),
        np.log([0.5, 0.25, 0.25]),
        np.array([[np.nan, 0.0, -1.0]]),
        np.array([[1, 0, 0]]),
        np.full((1, 3), -np.inf),
        np.log([[0.5, 0.25, 0.25]] * 2),
    ],
)
def test_a_model_that_answers_nonsense(rows: np.ndarray) -> None:
    model = Counter()
    model.next_logprobs = lambda prefixes: rows
    del_incremental = FunctionModel(AB_VOCABULARY, lambda prefixes: rows)
    del_incremental.next_logprobs = model.next_logprobs
    with pytest.raises(ModelError):
        Session(del_incremental).start([])


def test_logits_beyond_the_vocabulary_are_fine() -> None:
    model = FunctionModel(AB_VOCABULARY, lambda prefixes: np.zeros((len(prefixes), 8)))
    generation = generate(model, None, max_tokens=20, seed=1)
    assert max(generation.token_ids) < 3
    assert generation.allowed_mass[0] == pytest.approx(3 / 8)


def test_objects_that_are_not_models_are_refused() -> None:
    with pytest.raises(ModelError, match="model must be a LanguageModel"):
        Session(lambda prefixes: 0)
    with pytest.raises(ArgumentError):
        FunctionModel([b"a"], lambda prefixes: 0)
    with pytest.raises(ArgumentError):
        TableModel(AB_VOCABULARY, {}, order=-1)


def test_prefixes_are_checked() -> None:
    model = TableModel(AB_VOCABULARY, {}, default=HALVES, context_length=2)
    session = Session(model)
    with pytest.raises(ArgumentError):
        session.start([3])
    with pytest.raises(ArgumentError):
        session.start([0, 0, 0])


def test_log_softmax() -> None:
    assert np.allclose(np.exp(log_softmax([[1000.0, 1000.0]])), 0.5)


@pytest.mark.parametrize(
    "options",
    [{"bos_token_id": value} for value in (True, "0", 0.0, -1, 3, [0], np.int64(0))]
    + [{"context_length": value} for value in (True, "8", 8.0, -1, 0, float("inf"))],
    ids=str,
)
def test_beginnings_and_lengths_that_are_refused(options: dict[str, object]) -> None:
    name, value = next(iter(options.items()))
    for make in (
        lambda: TableModel(AB_VOCABULARY, {}, default=HALVES, **options),
        lambda: FunctionModel(AB_VOCABULARY, lambda prefixes: [[0.0] * 3], **options),
    ):
        with pytest.raises(ArgumentError, match=name) as caught:
            make()
        assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"seed": value} for value in (-1, True, 1.5, "1", None, np.int64(1))]
    + [{"concentration": value} for value in (0, -1.0, float("inf"), float("nan"), "1", True)]
    + [{"order": value} for value in (-1, True, 1.0, "1")],
    ids=str,
)
def test_random_tables_that_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(options))):
        TableModel.random(AB_VOCABULARY, **{"seed": 1, **options})
    with pytest.raises(ArgumentError, match="got str"):
        TableModel.random("abc", seed=1)


def test_objects_that_are_not_functions_are_refused() -> None:
    with pytest.raises(ArgumentError, match="function"):
        FunctionModel(AB_VOCABULARY, 5)
