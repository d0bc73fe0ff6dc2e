# Each target first sees to it that the set-up is there (scripts/setup): system packages, .venv/, the build.
.PHONY: demo test bench check docs

PRESET ?= release
TRIALS ?= 64

demo:
	@scripts/setup --preset $(PRESET)
	@.venv/bin/tilewright tune examples/01_matmul.py --trials $(TRIALS)

test:
	@scripts/setup --preset $(PRESET) --tests
	@rm -rf build/raised-codes && mkdir -p build/raised-codes
	@TILEWRIGHT_RAISED_CODES=$(CURDIR)/build/raised-codes ctest --test-dir build/$(PRESET) --output-on-failure -j 2
	@.venv/bin/python -m pytest -n 2 --dist worksteal
	@.venv/bin/python tools/check_codes.py --raised build/raised-codes

bench:
	@scripts/setup --preset $(PRESET) --bench
	@scripts/bench $(if $(FULL),--full)

check:
	@scripts/setup --preset $(PRESET) --check
	@scripts/check

docs:
	@scripts/setup --preset $(PRESET) --docs
	@.venv/bin/python tools/build_site.py
