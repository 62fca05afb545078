# make demo         install, then evaluate the embedded model on the embedded questions
# make check        install, lint, type-check, run the tests that are not slow: under two minutes on two cores
# make test         install, lint, type-check, run all tests but those below
# make test-docs    the documentation's site, notebooks and commands are run, the wheel is, and pages are opened in a browser
# make test-engines the embedded model through vLLM, llama.cpp and `transformers serve`, set up in .engines
# make test-cluster Ray on two simulated nodes, one of which is killed; the answer store on moto's server, which plays S3
# make docs         the documentation site, with its notebooks run: build/site/html/index.html
# make test-pythons each Python that the metadata names: resolves, and where it is installed, imports and scores a file
# make mutants      60 small faults put into the code, one at a time: which of them the tests of `make check` see (an hour)
# make demo-models  train the embedded models again (about 15 minutes on two cores)

PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)
PIP = pip install --quiet --constraint constraints.txt

.PHONY: demo check test test-docs test-engines test-cluster test-pythons lint tested docs mutants demo-models clean

demo: .venv/.installed
	hedge run --model hedge_tiny --tasks hedge_demo --output_path results --log_samples

# A file's tests stay together: they share what is expensive. One thread each, or the processes would be in each other's way;
# one process more than there are processors, as some wait for a server or a disk. Byte code is kept whatever is set outside:
# each process would compile all tests again.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 pytest
SPREAD = -n $(shell expr $$(nproc --all) + 1) --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# As often as one likes: byte code and mypy's cache are there from the last time, and these tests do not wait.
check: lint
	$(PYTEST) $(SPREAD) -n auto -m 'not slow and not docs and not pages' --durations 5 --durations-min 0.5

# Side by side: mypy leaves a processor idle, and so does the process that the workers of the tests are forks of.
test: .venv/.installed-dev
	$(MAKE) --no-print-directory --jobs 2 lint tested

tested: .venv/.installed-dev
	$(PYTEST) $(SPREAD) -m 'not docs and not pages'

test-docs: .venv/.installed-dev
	$(PYTEST) $(SPREAD) -m 'docs or pages'

# One engine at a time, and none is skipped: where one cannot be had, this fails and says why.
test-engines: .venv/.installed-dev
	python tests/engines/environments.py .engines
	$(PYTEST) tests/engines

test-cluster: .venv/.installed-dev
	$(PIP) --editable '.[ray,s3]' 'moto[server]>=5'
	$(PYTEST) tests/cluster

test-pythons: .venv/.installed-dev
	python tests/pythons.py .pythons

lint: .venv/.installed-dev
	ruff check .
	ruff format --check .
	mypy

docs: .venv/.installed-dev
	python docs/site/build.py build/site
	@echo build/site/html/index.html

mutants: .venv/.installed-dev
	OMP_NUM_THREADS=1 python benchmarks/mutants.py

demo-models: .venv/.installed
	PYTHONPATH=benchmarks python -m training.vlm --out models/tiny/vlm
	PYTHONPATH=benchmarks python -m training.nli --out models/tiny/nli
	PYTHONPATH=benchmarks python -m training.reports_vlm --out models/tiny/reports/vlm.safetensors
	PYTHONPATH=benchmarks python -m training.reports_nli --out models/tiny/reports/nli

OLDEST = 3, 11
.venv/.installed: pyproject.toml setup.cfg constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < ($(OLDEST)))' 2>/dev/null || { echo "hedge-tasks needs Python 3.11 or\
 later, and $(PYTHON) is $$($(PYTHON) --version 2>&1 | tail -n 1): name one, as in  make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	$(PIP) --editable '.[offline]'
	@touch $@

# hedge-bench is the reference implementation; its own dependencies (vLLM among them) are not needed for comparing.
.venv/.installed-dev: .venv/.installed
	$(PIP) --editable '.[dev]'
	$(PIP) --no-deps hedge-bench==0.1.2
	@touch $@

clean:
	rm -rf .venv .engines .pythons build dist *.egg-info
