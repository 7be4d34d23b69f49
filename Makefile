# The commands of the house. Each does the set-up it needs and says nothing when there is nothing to do.
# The build itself is CMake (CMakePresets.json); this file only strings the steps together.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 5
# A regular expression of benchmark names, as --benchmark_filter= takes it.
BENCH_FILTER ?= .

# The data folder, for the tests too, which run in other folders.
ifneq ($(SINEW_DATA),)
override export SINEW_DATA := $(abspath $(SINEW_DATA))
endif

# $(call build,PRESET[,TARGETS]): a terminal shows ninja's progress line, a log only what goes wrong.
ninja = cmake --build --preset $(1) -j $(JOBS) $(if $(2),--target $(2))
build = if test -t 1; then $(ninja); else $(ninja) -- --quiet | sed '/^ninja: no work to do/d; /^-- /d'; fi

# addr2line (binutils, always there) gives the reports their lines; llvm-symbolizer-19 would be one more package.
asan fuzz: export ASAN_SYMBOLIZER_PATH ?= $(shell command -v addr2line)
asan fuzz: export ASAN_OPTIONS ?= strict_string_checks=1
asan fuzz: export UBSAN_OPTIONS ?= print_stacktrace=1
tsan: export TSAN_OPTIONS ?= external_symbolizer_path=$(shell command -v addr2line)

.PHONY: help setup assets build test asan tsan fuzz lint format bench demo install clean

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

setup: ## install the Debian packages that are missing
	@bash tools/setup.sh

# Before a build a failure is told and the build goes on; who asks for the assets themselves gets an exit status.
assets: setup ## the hand networks and mesh, from npm into build/data (SINEW_DATA=FOLDER: there)
	@tools/assets.sh $(if $(filter assets,$(MAKECMDGOALS)),--required)

# Ninja re-runs CMake by itself when CMake files change; the presets are not among those it watches.
build/%/build.ninja: CMakePresets.json | setup
	@echo "configuring build/$*"
	@cmake --preset $* $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache) >/dev/null
	@touch $@

build: build/release/build.ninja assets ## the program, at build/release/sinew, and the shared library
	@$(call build,release,sinew sinew_shared)

test: build/release/build.ninja assets ## build everything and run every test
	@$(call build,release)
	@ctest --preset release -j $(JOBS)

asan: build/asan/build.ninja assets ## the unit tests with clang, AddressSanitizer and UBSan
	@$(call build,asan,unit_tests)
	@ctest --preset asan -L unit -j $(JOBS)

tsan: build/tsan/build.ninja ## threads that share something, with clang and ThreadSanitizer
	@$(call build,tsan,threads_test)
	@build/tsan/threads_test --gtest_brief=1 \
	  --gtest_filter='ThreadPool.*:TierLock.ThreadsTakeTurns:TierConcurrency.Threads*:*AtOnce*'

fuzz: build/fuzz/build.ninja ## each fuzz target for FUZZ_SECONDS (5) on its seeds
	@$(call build,fuzz,fuzz_targets)
	@tools/fuzz.sh $(FUZZ_SECONDS)

lint: build/asan/build.ninja ## clang-format and clang-tidy on all C++ files
	@$(call build,asan,sinew_schemas)
	@tools/lint.sh

format: setup ## let clang-format rewrite all C++ files
	@tools/lint.sh --fix-format

bench: build/release/build.ninja assets ## run the benchmarks (BENCH_FILTER=regex)
	@$(call build,release,benchmarks)
	@for source in bench/*.cc; do "build/release/$${source%.cc}" --benchmark_filter='$(BENCH_FILTER)'; done

demo: build ## a hand picture through the whole program
	@tools/demo.sh

install: build ## install into PREFIX (/usr/local); DESTDIR is honoured
	@cmake --install build/release --prefix '$(abspath $(PREFIX))'

clean: ## remove build/
	@rm -rf build
