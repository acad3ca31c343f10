.DEFAULT_GOAL := help
PYTHON_VENV := .venv/bin/python
CPP_FILES = $(shell git ls-files --cached --others --exclude-standard '*.h' '*.cpp' '*.hip')

.PHONY: help setup demo test test-long lint format docs kernels sim accuracy support-matrix benchmark training-proof record-performance benchmark-simulator seeds clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## install what the machine lacks, make .venv, build the package into it
	@scripts/setup.sh

demo: setup  ## a language model and a sentence encoder, their attention on the simulated card
	$(PYTHON_VENV) scripts/demo.py

test: setup  ## all tests but the long ones
	$(PYTHON_VENV) -m pytest -n auto --maxprocesses 4 -m "not long"

test-long: setup  ## the long tests
	$(PYTHON_VENV) -m pytest -n auto --maxprocesses 4 -m long

lint: setup  ## formatting, lint and types, without changing a file
	$(PYTHON_VENV) -m ruff format --check .
	$(PYTHON_VENV) -m ruff check .
	.venv/bin/clang-format --dry-run -Werror $(CPP_FILES)
	$(PYTHON_VENV) -m mypy

format: setup  ## apply the formatters
	$(PYTHON_VENV) -m ruff format .
	$(PYTHON_VENV) -m ruff check --fix .
	.venv/bin/clang-format -i $(CPP_FILES)

docs: setup  ## build the documentation and the API reference into build/docs
	$(PYTHON_VENV) scripts/build_docs.py

kernels: setup  ## build the code objects and print registers, LDS and occupancy of each kernel
	$(PYTHON_VENV) scripts/build_kernels.py

sim: setup  ## build the simulator and its command-line tool
	$(PYTHON_VENV) scripts/build_simulator.py

accuracy: setup  ## the table of errors against float64
	$(PYTHON_VENV) scripts/accuracy.py

support-matrix: setup  ## run every feature at every head dim and dtype, and write docs/support-matrix.md
	$(PYTHON_VENV) -m flashattn_rocm verify --matrix docs/support-matrix.md

benchmark: setup  ## speed beside rivals, a few rows; scripts/benchmark.py --help has more
	$(PYTHON_VENV) scripts/benchmark.py --quick

training-proof: setup  ## a small GPT and a LoRA step, trained on the kernels and on torch's math
	$(PYTHON_VENV) scripts/train_gpt.py
	$(PYTHON_VENV) scripts/lora_step.py

record-performance: setup  ## write the figures that CI holds kernels to (tests/perf/record.json)
	$(PYTHON_VENV) scripts/record_performance.py

benchmark-simulator: setup  ## how many wave instructions a second the simulator executes
	$(PYTHON_VENV) scripts/benchmark_simulator.py

N = 20
seeds: setup  ## TEST="tests/… -k …" N=20: the same tests under N orders of the simulated waves
	$(PYTHON_VENV) scripts/run_seeds.py -n $(N) $(TEST)

clean:  ## remove all that was built, but not .venv
	rm -rf build dist *.egg-info flashattn_rocm/lib flashattn_rocm/_C*.so .mypy_cache .pytest_cache .ruff_cache
