# setup: install what is missing   build: the tool   all: also the papers and the servers   run: the demonstration
# test, bench, soak, lint: as named
CARGO ?= cargo

.PHONY: setup setup-tests build all papers subjects run build-tests test test-engines bench soak lint lint-fast docs install uninstall deb

setup:
	scripts/setup.sh

# And what only the tests and the bench use.
setup-tests:
	scripts/setup.sh --tests

build: subjects
	$(CARGO) build --release

all: subjects
	$(CARGO) build --release --workspace

# target/release/nearmiss-papers list: what it computes.
papers: build
	$(CARGO) build --release -p nearmiss-papers

subjects:
	$(MAKE) --no-print-directory -C subjects

run: setup build
	scripts/run-demo.sh

build-tests: setup-tests subjects
	$(CARGO) test --profile checks --workspace --no-run

# Ends with the runner's summary, summed over all test binaries.
test: setup-tests subjects lint-fast
	CARGO='$(CARGO)' scripts/test.py

# Twenty recordings for each emulator and 1, 2 and 4 CPUs: none may fail. Some fifteen minutes.
test-engines: setup-tests build
	experiments/engines/stable.sh

bench: setup-tests all
	$(CARGO) bench --workspace --benches
	scripts/observe-cheap.sh
	experiments/accelerator/hits.py --turns 3 --seconds 2
	experiments/pace/sockets.py
	experiments/pace/auto.py
	experiments/pace/servers.py --seconds 0.5 --aims 5ms nginx haproxy-poll memcached-4 dnsmasq
	experiments/pace/predicted.py --seconds 2 --intervals 1ms,5ms nginx haproxy
	experiments/pace/judges.py --seconds 2

# Everything goes wrong at once before the accelerator, for ten minutes.
SOAK_SECONDS ?= 600
soak: setup-tests
	NEARMISS_SOAK_SECONDS=$(SOAK_SECONDS) $(CARGO) test --profile checks -p nearmiss-accelerator --test soak -- --nocapture

# What takes seconds. Edges between crates, file lengths and licences are tests (crates/cli/tests/offline).
lint-fast:
	$(CARGO) fmt --all --check

lint: lint-fast
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings
	$(MAKE) --no-print-directory -B -C subjects CFLAGS='-O2 -g -Werror'

# What the documents show is run again and written into them: the picture, the guide's sessions, the results. Some ten minutes.
docs: build
	scripts/picture.py
	scripts/guide.py
	scripts/results.py
	scripts/links.py

# PREFIX and DESTDIR as everywhere. Builds only what is not built yet, so that `sudo make install` builds nothing.
PREFIX ?= /usr/local
DESTDIR ?=
BINARY ?= target/release/nearmiss
PROGRAMS = $(BINARY) $(BINARY)-accelerator $(BINARY)-webload
export PREFIX DESTDIR

install: $(PROGRAMS)
	scripts/install.sh $(BINARY)

uninstall:
	scripts/install.sh $(BINARY) --remove

# Debian packages under target/debian: the programs, and their debug symbols.
deb: $(PROGRAMS)
	scripts/make-deb.sh $(BINARY)

target/release/nearmiss target/release/nearmiss-accelerator target/release/nearmiss-webload &:
	$(MAKE) --no-print-directory all
