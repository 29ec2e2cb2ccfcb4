# Short names for common tasks; CMake does the work (see CMakePresets.json).
.DEFAULT_GOAL := build
MAKEFLAGS += --no-print-directory
PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# The Python package, and copies of the tree that some tests build, compile the same sources again. A compiler cache avoids
# most of this work: ccache compares paths relative to the build folder, which in every tree is one level below the sources.
ifneq ($(shell command -v ccache 2>/dev/null),)
export CMAKE_C_COMPILER_LAUNCHER ?= ccache
export CCACHE_NOHASHDIR ?= 1
export CCACHE_BASEDIR ?= $(CURDIR)
endif
BUILD_TREE = cmake --build $(1) --parallel $(JOBS)

# A build tree is configured once and then updates itself. Continuous integration configures even an existing tree, so that
# warnings become errors.
ifdef CI
CONFIGURE_FLAGS += -DMERCER_WERROR=ON -DMERCER_CUDA_ARCHITECTURES=90
# Without a GPU, device code is compiled only to check it, so the quick compilation is used, which produces slow kernels.
CONFIGURE_FLAGS += -DMERCER_CUDA_QUICK=$(if $(wildcard /dev/nvidiactl),OFF,ON)
.PHONY: build/CMakeCache.txt build-asan-ubsan/CMakeCache.txt build-tsan/CMakeCache.txt
# These objects are compiled only once, so a compiler cache would only cost time.
build-asan-ubsan/CMakeCache.txt build-tsan/CMakeCache.txt: export CMAKE_C_COMPILER_LAUNCHER =
endif

.PHONY: build paper paper-full paper-gpu bench-results test test-sanitize test-threads demo bench bench-compare check format install wheel deb docs release cross-aarch64 setup clean help

build: build/CMakeCache.txt ## build the library, tests, examples and benchmarks in build/
	@$(call BUILD_TREE,build)

build/CMakeCache.txt: CMakePresets.json
	@command -v cmake >/dev/null || { echo "cmake is missing: run tools/setup" >&2; exit 1; }
	@cmake --preset release $(CONFIGURE_FLAGS)

build-asan-ubsan/CMakeCache.txt: CMakePresets.json
	@cmake --preset asan-ubsan $(CONFIGURE_FLAGS)

build-tsan/CMakeCache.txt: CMakePresets.json
	@cmake --preset tsan $(CONFIGURE_FLAGS)

test: setup ## build and run all tests
	@$(MAKE) build
	@tools/run-tests build

test-sanitize: setup ## run the tests under the address and undefined-behavior sanitizers; report their line coverage
	@$(MAKE) build-asan-ubsan/CMakeCache.txt
	@$(call BUILD_TREE,build-asan-ubsan)
	@find build-asan-ubsan -name '*.gcda' -delete
	@tools/run-tests build-asan-ubsan
	@tools/coverage build-asan-ubsan

# Tests that use several threads: the thread pool, background work, streams, training on several threads, ranks as threads.
THREAD_TESTS = parallel background stream_threads comm_local train_invariance trainer iteration
empty :=
space := $(empty) $(empty)

test-threads: setup ## run the tests of threads, local ranks and training under the thread sanitizer
	@$(MAKE) build-tsan/CMakeCache.txt
	@$(call BUILD_TREE,build-tsan) --target mercer_program $(addprefix unit_,$(THREAD_TESTS))
	@tools/run-tests build-tsan -R '^(ranks_local|unit_($(subst $(space),|,$(THREAD_TESTS))))$$'

# The demonstration needs only the program. The tree build-demo has no tests, benchmarks or device code, so it is built in a
# minute.
build-demo/CMakeCache.txt: CMakePresets.json
	@cmake --preset demo

demo: setup ## build the program, then train on synthetic digits; print a table and write build-demo/report.html
	@mkdir -p build-demo && { $(MAKE) build-demo/CMakeCache.txt && $(call BUILD_TREE,build-demo) --target mercer_program; } \
	  >build-demo/make.log 2>&1 || { cat build-demo/make.log; exit 1; }
	@build-demo/mercer demo -o build-demo/report.html

# Python with NumPy, scikit-learn and PyTorch: the environment made by `tools/setup compare` if it exists, otherwise python3.
COMPARE_PYTHON = $(firstword $(wildcard build/compare-venv/bin/python) python3)

COMPARISONS = composed eigenpro sklearn_models tables

# Results of finished cells are saved in the output folder; an interrupted run continues where it stopped.
paper: setup ## make the paper's figures and tables that MERCER_DATA allows: build/paper/paper.html, CSV files; about 15 minutes
	@mkdir -p build && $(MAKE) build >build/make.log 2>&1 || { cat build/make.log; exit 1; }
	@bench/paper/figure

paper-full: setup ## like paper, with the paper's epochs and sizes; many hours without a GPU
	@$(MAKE) build
	@bench/paper/figure --full

paper-gpu: setup ## run the parts that need a GPU: the full preset, 120 million samples, the largest numbers of centers
	@$(MAKE) build
	@MERCER_DEVICE=cuda MERCER_ARITHMETIC=fast bench/paper/figure --full --out build/paper-gpu table stream million

bench: setup ## run every benchmark, and comparisons with NumPy, scikit-learn and PyTorch if they are installed
	@$(MAKE) build
	@set -e; for program in build/bench/bench_*; do \
	  if [ -f "$$program" ] && [ -x "$$program" ]; then "$$program"; fi; done
	@set -e; for name in $(COMPARISONS); do $(COMPARE_PYTHON) bench/compare/$$name.py; done

bench-compare: setup ## run every benchmark and compare its times with the committed results of the same cases, on the same machine
	@$(MAKE) build
	@mkdir -p build/bench-results
	@set -e; for program in build/bench/bench_*; do \
	  if [ -f "$$program" ] && [ -x "$$program" ]; then \
	    "$$program" --json >"build/bench-results/$${program#build/bench/bench_}.jsonl"; fi; done
	@bench/report.py --compare build/bench-results

bench-results: setup ## like bench, but write JSON lines to bench/results/ and update the tables of docs/performance.md
	@$(MAKE) build
	@set -e; for program in build/bench/bench_*; do \
	  if [ -f "$$program" ] && [ -x "$$program" ]; then \
	    "$$program" --json >"bench/results/$${program#build/bench/bench_}.jsonl"; fi; done
	@set -e; for name in $(COMPARISONS); do \
	  $(COMPARE_PYTHON) bench/compare/$$name.py --json >build/compare.jsonl; \
	  if [ -s build/compare.jsonl ]; then mv build/compare.jsonl "bench/results/$$name.jsonl"; fi; done
	@bench/profile.py --json >build/profile.jsonl; \
	  if [ -s build/profile.jsonl ]; then mv build/profile.jsonl bench/results/; fi
	@bench/report.py --write docs/performance.md

check: ## check the format, run static analysis and check the project's own rules
	@tools/setup check
	@$(MAKE) build
	@tools/check build

format: ## rewrite the sources in the project's format
	@tools/check --format

install: build ## install under PREFIX (default /usr/local); DESTDIR is honored
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

wheel: ## build the Python package as a wheel that needs no compiler, in dist/; CUDA=1: the wheel for GPUs
	@tools/make-wheel $(if $(CUDA),--cuda)

deb: ## build the Debian packages in dist/
	@tools/make-deb

docs: ## build the documentation site in build-docs/site
	@tools/make-docs

release: ## build source archive, wheel, Debian packages, SBOM and checksums in dist/; CUDA=1: both wheels
	@tools/make-release $(if $(CUDA),--cuda)

cross-aarch64: ## build for 64-bit ARM and run the tests of arithmetic, file reading and training in an emulator
	@tools/cross-aarch64

setup: ## install the packages that a build needs (Debian and derivatives), or list them
	@tools/setup

clean: ## remove every build tree and dist/
	@rm -rf build build-* dist

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-22s %s\n", $$1, $$2 }'
