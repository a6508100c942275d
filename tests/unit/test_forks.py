"""A child of a fork works: whatever its parent did before, and in threads that are gone."""

import os
from pathlib import Path

import pytest

from tests.support.processes import needs_fork, run_python

SHARED = Path(__file__).parents[3] / "shared" / "tokenizers"

# `child(work)` does some work in a child, which a timer ends if it hangs.
PREAMBLE = """
import os, pickle, signal, sys, threading
import numpy as np
import formalm
from formalm import *
from formalm.models.canary import WEIGHTS, canary

def child(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            work()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"a child ended with {status}"

# More than the tables of small vocabularies, so that threads are wanted.
tokens = [bytes([byte]) for byte in range(256)]
tokens += [b"%05d" % at for at in range(20_000)] + [b"%x!" % at for at in range(20_000)] + [None]
def large():
    return Vocabulary.from_tokens(tokens, [len(tokens) - 1])

def fill(vocabulary, language=None, count=8):
    constraint = Constraint(language or JsonSchema({"type": "object"}), vocabulary)
    matchers = [constraint.matcher() for _ in range(count)]
    for at, matcher in enumerate(matchers):
        matcher.advance_bytes(b'{"' + b"k" * at)
    out = new_bitmask(count, len(vocabulary))
    fill_bitmasks(matchers, out)
    return out
"""

# What a parent does, and what each child does after it.
CALLS = {
    "vocabulary": "large()",
    "tokenizer": "Vocabulary.from_pretrained(WEIGHTS)",
    "unpickle": "pickle.loads(pickle.dumps(V))",
    "masks": "fill(V)",
    "schema": "JsonSchema({'type': 'object', 'properties': {'a': {'format': 'date-time'},"
    " 'b': {'pattern': '^[a-z]+$'}}}).matches('{}')",
    "grammar": "Grammar('start: WORD+\\n%import common.WORD').matches('ab')",
    "canonical": "Constraint(Regex('[a-z ]+'), Vocabulary.from_pretrained(WEIGHTS),"
    " tokenization='canonical').matcher().bitmask()",
    "encode": "Vocabulary.from_pretrained(WEIGHTS).encode('the cat sat')",
    "search": "list(search(canary(), Choice([' a cat', ' a dog']), prompt='It is'))",
    "generate": "generate(canary(), 'It is', Regex(' [a-z]{1,5}'))",
    "shortest": "Regex('[a-z]{3,}').shortest()",
}

THREADS = {"FORMALM_THREADS": "4"}


QUICK = ("masks", "canonical", "search")


@needs_fork
@pytest.mark.parametrize(
    "before",
    [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in CALLS],
)
def test_every_call_works_in_a_child_of_a_process_that_made_one(before: str) -> None:
    program = f"""{PREAMBLE}
V = large()
fill(V)
{CALLS[before]}
def work():
    for call in {list(CALLS.values())!r}:
        eval(call)
child(work)
child(lambda: child(work))
"""
    run_python(program, timeout=120, env=THREADS).check()


@needs_fork
def test_masks_of_a_child_are_those_of_its_parent() -> None:
    program = f"""{PREAMBLE}
V = large()
known = fill(V)
constraint = Constraint(JsonSchema({{"type": "object"}}), V)
matchers = [constraint.matcher() for _ in range(8)]
def work():
    assert (fill(V) == known).all()
    for at, matcher in enumerate(matchers):
        matcher.advance_bytes(b'{{"' + b"k" * at)
    out = new_bitmask(8, len(V))
    fill_bitmasks(matchers, out)
    assert (out == known).all()
child(work)
"""
    run_python(program, timeout=60, env=THREADS).check()


@needs_fork
def test_workers_of_a_server_that_loaded_everything_before_they_were_forked_serve() -> None:
    """As gunicorn does with ``--preload``: the parent has worked in threads, and goes on."""
    program = f"""{PREAMBLE}
V = large()
languages = [JsonSchema({{"type": "object"}}), Regex('.{{"[a-z]*.*'), Grammar('start: /.+/')]
constraints = [Constraint(language, V) for language in languages[:1]]
threads = [threading.Thread(target=fill, args=(V,)) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
def serve():
    fill(V)
    matcher = constraints[0].matcher()
    matcher.advance_bytes(b'{{"a": ')
    matcher.bitmask()
    workers = [threading.Thread(target=fill, args=(V,)) for _ in range(3)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
for _ in range(4):
    child(serve)
serve()
"""
    run_python(program, timeout=120, env=THREADS).check()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_constraints_and_matchers_are_sent_to_processes(method: str, tmp_path: Path) -> None:
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("the platform has no fork")
    module = tmp_path / "job_of_test.py"
    module.write_text(
        "from formalm import new_bitmask, fill_bitmasks\n"
        "def job(constraint, text):\n"
        "    matchers = [constraint.matcher() for _ in range(3)]\n"
        "    for matcher in matchers: matcher.advance_bytes(text)\n"
        "    out = new_bitmask(3, constraint.width)\n"
        "    fill_bitmasks(matchers, out)\n"
        "    return out\n"
    )
    program = f"""{PREAMBLE}
import multiprocessing
sys.path.insert(0, {str(tmp_path)!r})
from job_of_test import job
V = large()
fill(V)
constraint = Constraint(JsonSchema({{"type": "object"}}), V)
known = job(constraint, b'{{"ab')
context = multiprocessing.get_context({method!r})
with context.Pool(2) as pool:
    found = pool.starmap(job, [(constraint, b'{{"ab')] * 4)
assert all((one == known).all() for one in found)
"""
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    run_python(program, timeout=90, env={**THREADS, "PYTHONPATH": path}).check()


@needs_fork
def test_workers_of_a_data_loader_work() -> None:
    pytest.importorskip("torch")
    program = f"""{PREAMBLE}
import torch
V = large()
fill(V)
class Masks(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, at): return torch.from_numpy(fill(V, count=2))
loader = torch.utils.data.DataLoader(
    Masks(), num_workers=2, timeout=30, multiprocessing_context="fork"
)
assert sum(1 for _ in loader) == 4
"""
    run_python(program, timeout=120, env=THREADS).check()


@needs_fork
def test_a_matcher_that_another_thread_used_at_the_fork_is_refused_in_the_child() -> None:
    program = f"""{PREAMBLE}
import time
V = Vocabulary.from_tokens([b"a", b"b", None], [2])
matcher = Constraint(Regex("[ab]*"), V).matcher()
spare = matcher.fork()
thread = threading.Thread(target=lambda: matcher.advance_bytes(b"ab" * 200_000_000), daemon=True)
thread.start()
time.sleep(0.2)
def work():
    try:
        matcher.bitmask()
    except ConcurrencyError:
        pass
    else:
        raise AssertionError("not refused")
    spare.advance_bytes(b"ab")
child(work)
os._exit(0)
"""
    run_python(program, timeout=60).check()


# Languages of every kind, each with a vocabulary, a beginning of long texts and what they repeat,
# and what children read: a beginning and what comes next.
KINDS = r"""
class Words(Parser):
    def __init__(self, text=""): self.text = text
    def copy(self): return Words(self.text)
    def append(self, text):
        if not text.isalpha(): raise ParseFailure
        self.text += text
    @property
    def is_accepting(self): return True

V = Vocabulary.from_tokens(
    [bytes([byte]) for byte in range(256)] + [b'","', b'":"', b'"}', b"ab", b"the ", None], [261]
)
BPE = Vocabulary.from_pretrained(WEIGHTS)
NAMES = JsonSchema({"type": "object", "additionalProperties": {"type": "string"}})
DISTINCT = JsonSchema({"type": "array", "uniqueItems": True, "items": {"type": "string"}})
HOSTS = JsonSchema({"type": "array", "items": {"type": "string", "format": "idn-hostname"}})
GRAMMAR = Grammar('start: "[" start* "]" | WORD\n%import common.WORD')
EMBEDDED = Grammar('start: "<" %json {"type": "object"} ">"')
ROW = StringLiteral("x=") + NAMES + Choice([";", "."])
KINDS = {
    "names": (NAMES, V, b'{"', b"n", b'{"a":"b","', b'c":'),
    "distinct": (DISTINCT, V, b'["', b"n", b'["a","b","', b'c'),
    "hosts": (HOSTS, V, b'[', b'"b\xc3\xbccher.example",', b'["b\xc3\xbc', b'c'),
    "grammar": (GRAMMAR, V, b"[", b"[]", b"[[a", b"b][",),
    "embedded": (EMBEDDED, V, b'<{"', b"n", b'<{"a":1,"', b'b"'),
    "regular": (Regex("(a|b)*a(a|b){8}"), V, b"", b"abaab", b"ab", b"ba"),
    "row": (ROW, V, b'x={"', b"n", b'x={"a":"', b'b"'),
    "filtered": (NAMES & Regex("[ -~]*"), V, b'{"', b"n", b'{"a":"', b'b"'),
    "parser": (Words(), V, b"", b"ab", b"ab", b"ba"),
    "canonical": (Regex("[a-z ]+"), BPE, b"the ", b"cat ", b"the", b" cat"),
}

# The kinds of which each byte takes long.
SLOW = ("parser", "filtered")

class Kind:
    def __init__(self, name):
        self.name = name
        self.language, vocabulary, self.start, self.unit, self.first, self.rest = KINDS[name]
        tokenization = "canonical" if name == "canonical" else "all"
        self.constraint = Constraint(self.language, vocabulary, tokenization=tokenization)
        self.begun = self.read(self.constraint.matcher(), self.first)
        self.answers, self.stopped = self.ask(self.begun.fork()), False

    def read(self, matcher, text):
        is_canonical = self.constraint.tokenization == "canonical"
        tokens = self.constraint.vocabulary.encode(text.decode()) if is_canonical else text
        for token in tokens:
            matcher.advance(token)
        return matcher

    def ask(self, begun):
        answers = []
        for matcher in (begun, self.read(self.constraint.matcher(), self.first)):
            masks = [matcher.bitmask().tobytes()]
            self.read(matcher, self.rest)
            answers.append((matcher.text, masks + [matcher.bitmask().tobytes()]))
        assert answers[0] == answers[1]
        text = self.first + self.rest
        return answers[0], self.language.is_viable(text), self.language.matches(text)

    def check(self):
        assert self.ask(self.begun) == self.answers, self.name
        assert self.constraint.stats().total_bytes > 0
        # The child of a child has what its parent had.
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            self.read(self.constraint.matcher(), self.first).bitmask()
            self.begun.bitmask()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0

    def work(self):
        while not self.stopped:
            matcher = self.constraint.matcher()
            if self.name == "canonical":
                self.read(matcher, self.start + self.unit * 20)
                matcher.bitmask()
                continue
            matcher.advance_bytes(self.start)
            matcher.advance_bytes(self.unit * (200 if self.name in SLOW else 20_000))
            matcher.bitmask()
            self.language.is_viable(self.start + self.unit * 200)

def fork_under_load(count):
    for name in KINDS:
        kind = Kind(name)
        threads = [threading.Thread(target=kind.work) for _ in range(3)]
        for thread in threads: thread.start()
        for _ in range(count):
            time.sleep(0.003)
            child(kind.check)
        kind.stopped = True
        for thread in threads: thread.join()
        kind.check()
"""


@needs_fork
def test_a_constraint_that_cannot_be_compiled_again_in_a_child_raises_no_panic() -> None:
    program = f"""{PREAMBLE}{KINDS}
import time
from formalm import ConcurrencyError, ParserError
PARENT = os.getpid()
class Bound(Words):
    def copy(self):
        if os.getpid() != PARENT: raise OSError("bound to its process")
        return Bound(self.text)
language = Grammar('%declare words\\nstart: "<" words ">"', languages={{"words": Bound()}})
constraint = Constraint(language, V)
begun = constraint.matcher()
begun.advance_bytes(b"<ab")
stopped = False
def load():
    while not stopped:
        constraint.matcher().advance_bytes(b"<" + b"ab" * 100)
        language.is_viable(b"<" + b"ab" * 100)
threads = [threading.Thread(target=load) for _ in range(2)]
for thread in threads: thread.start()
def work():
    for ask in (
        constraint.matcher,
        begun.bitmask,
        lambda: begun.fork().advance_bytes(b"ab"),
        lambda: language.matches(b"<ab>"),
        lambda: language.is_viable(b"<ba"),
        lambda: Constraint(language, V),
    ):
        try:
            ask()
        except (ConcurrencyError, ParserError):
            pass
for _ in range(20):
    time.sleep(0.003)
    child(work)
stopped = True
for thread in threads: thread.join()
"""
    run_python(program, timeout=120).check()


@needs_fork
@pytest.mark.parametrize("count", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_children_forked_during_work_continue(count: int) -> None:
    """What another thread held at the fork is made anew: nothing waits, and answers are right."""
    program = f"{PREAMBLE}\nimport time\n{KINDS}\nfork_under_load({count})"
    run_python(program, timeout=60 + 5 * count, env=THREADS).check()


@needs_fork
@pytest.mark.parametrize("count", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_queries_of_a_language_work_in_children_forked_during_others(count: int) -> None:
    """Without a constraint: the language's own machine is made anew."""
    program = f"""{PREAMBLE}
import time
{KINDS}
def ask(language, text):
    answers = [language.matches(text), language.is_viable(text), language.is_viable(text + b"!")]
    try:
        answers.append(language.shortest())
    except LanguageError as error:
        answers.append(str(error))
    return answers

for name, (language, _, start, unit, first, rest) in KINDS.items():
    text = first + rest
    answers, stopped = ask(language, text), False
    def load():
        at = 0
        while not stopped:
            at += 1
            language.is_viable(start + b"%d" % at + unit * (50 if name in SLOW else 2_000))
            ask(language, text)
    def work():
        for _ in range(2):
            assert ask(language, text) == answers, name
    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads: thread.start()
    for _ in range({count}):
        time.sleep(0.003)
        child(work)
    stopped = True
    for thread in threads: thread.join()
"""
    run_python(program, timeout=60 + 5 * count).check()


@needs_fork
def test_a_journal_is_opened_anew_in_a_child(tmp_path: Path) -> None:
    program = f"""{PREAMBLE}
from pathlib import Path
from formalm.store.journal import Journal
journal = Journal(Path({str(tmp_path / "journal.sqlite")!r}))
journal.add("before", {{"at": 0}}, 0.0)
def work():
    for at in range(20):
        assert journal.add(f"{{os.getpid()}} {{at}}", {{"at": at}}, 0.0)
    assert journal.answer("before") == {{"at": 0}}
    journal.close()
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        work()
        os._exit(0)
    children.append(pid)
for at in range(20):
    journal.add(f"parent {{at}}", {{"at": at}}, 0.0)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
assert len(journal) == 81
"""
    run_python(program, timeout=60).check()


@needs_fork
@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="the tokenizers are not here")
@pytest.mark.parametrize("name", ["gpt2-50k", "llama3-128k", "cl100k"])
def test_real_tokenizers_work_in_a_child(name: str) -> None:
    program = f"""{PREAMBLE}
path = {str(SHARED / f"{name}.json.gz")!r}
V = Vocabulary.from_tokenizer_json(path)
def work():
    W = Vocabulary.from_tokenizer_json(path)
    assert W == V
    fill(W)
    Constraint(Regex("[a-z ]+"), W, tokenization="canonical").matcher().bitmask()
    pickle.loads(pickle.dumps(V)).encode("some text")
signal.alarm = lambda seconds: None
child(work)
"""
    run_python(program, timeout=240, env=THREADS).check()


@pytest.mark.parametrize("count", ["1", pytest.param("3", marks=pytest.mark.slow), None])
def test_masks_do_not_depend_on_the_number_of_threads(count: str | None) -> None:
    program = f"{PREAMBLE}\nimport hashlib\nprint(hashlib.sha256(fill(large())).hexdigest())"
    env = {} if count is None else {"FORMALM_THREADS": count}
    found = run_python(program, timeout=60, env=env).check().stdout
    assert found == run_python(program, timeout=60, env={"FORMALM_THREADS": "2"}).check().stdout
