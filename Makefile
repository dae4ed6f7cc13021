# Everything runs in .venv, which the first target that needs it builds.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test coverage docs lint format test-engines test-gpu clean

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("sns-gate needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/python examples/demo.py

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.10 sns_gate/worker sns_gate/protocol sns_gate/discovery.py sns_gate/benchmarks.py sns_gate/adapters.py sns_gate/timers sns_gate/errors.py
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

test: lint
	$(BIN)/python -m pytest -m 'not gpu and not engines' -n 6

coverage: $(READY)
	$(BIN)/python -m pytest -m 'not gpu and not engines' -n 4 --cov --cov-report=term

# The pages of docs/reference, from the code.
docs: $(READY)
	$(BIN)/python -m docs.generate

# Pages of results in a real browser (SNS_CHROMIUM names one, else a known one on PATH), and cases
# measured over a real sshd and by real Slurm daemons.
test-engines: $(READY)
	$(BIN)/python -m pytest -m engines

test-gpu: $(READY)
	$(BIN)/python -m pytest -m gpu

# A study of 'studies/' on this machine, kept under its name: make study-same_code MACHINE=a100
MACHINE ?= here
study-%: $(READY)
	$(BIN)/python -m studies.$* docs/data/$*.$(MACHINE).json
	$(BIN)/python -m studies.evidence

clean:
	rm -rf $(VENV) demo-result
