# Two commands do everything on a Debian machine that has Rust and git:
#   make demo   how git pulls age ext4, XFS and Btrfs, on modelled disks, with a report
#   make test   every test, also those of senesce-fs, the program with the file systems of this project
# `make demo` without root runs in a guest kernel (user-mode Linux).
# `make docs` builds docs/ as a book in target/book that can be searched offline. `make deb` builds packages.
# `make demo-full` is the same on this machine's drive, with five repetitions; it needs a quiet machine.
# REPO=path-or-url makes both replay that repository instead of the synthetic history.

SENESCE := target/release/senesce
DEMO := target/demo/senesce
GUEST := $(if $(filter 0,$(shell id -u)),,--guest uml)
PACKAGES_RUN := git build-essential xfsprogs btrfs-progs e2fsprogs util-linux fonts-dejavu-core $(if $(GUEST),user-mode-linux)
PACKAGES_TEST := $(PACKAGES_RUN) chromium user-mode-linux f2fs-tools nilfs-tools jfsutils reiserfsprogs kmod \
	slurm-wlm munge parallel
DEMO_DIR ?= demo

MDBOOK_VERSION := 0.5.4
MDBOOK := target/tools/bin/mdbook

CARGO_DEB_VERSION := 3.8.0
CARGO_DEB := target/tools/bin/cargo-deb

.PHONY: demo demo-full test build build-demo build-fs build-dist bench docs deb rpm tarball test-deb test-tarball setup-run setup-test setup-deb clean

demo: RUN := $(DEMO) demo $(GUEST)
demo: build-demo
demo-full: RUN := $(SENESCE) run plans/quick-start.toml
demo-full: build
demo demo-full: setup-run
	@# An earlier demo goes, with whatever it left mounted; anything else in its place stays.
	@if [ -f "$(DEMO_DIR)/plan.toml" ] && [ -f "$(DEMO_DIR)/journal.ndjson" ]; then \
		$(firstword $(RUN)) clean "$(DEMO_DIR)" >/dev/null && ! grep -q " $(abspath $(DEMO_DIR))/" /proc/self/mounts && \
		rm -rf --one-file-system "$(DEMO_DIR)"; fi
	$(RUN) --out "$(DEMO_DIR)" $(if $(REPO),--repo "$(REPO)")

# The laboratory. It compiles none of the file systems in filesystems/.
build:
	cargo build --release --locked --package senesce

# Builds senesce in less than half of the time of `build`. The program is slower. Modelled figures do not depend on this.
build-demo:
	cargo build --profile demo --locked --package senesce --no-default-features

# Also the program that `senesce fs` and `senesce garden` call: it is found beside senesce, or in PATH.
build-fs:
	cargo build --release --locked --package senesce --package senesce-fs

# Tests wait for disks more than they compute, so two for each processor run at a time.
test: setup-test
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$((2 * $$(nproc)))} cargo test --workspace --locked --no-fail-fast

bench: build-fs
	cargo bench --workspace --locked

# The book also contains the plans and the pages of the root directory, because pages of docs link to them.
docs: $(MDBOOK)
	rm -rf target/book target/book-pages && mkdir -p target/book-pages/filesystems
	cp -r docs plans contrib *.md CITATION.cff LICENSE target/book-pages
	cp filesystems/ARCHITECTURE.md target/book-pages/filesystems
	{ printf '# Summary\n\n[senesce](README.md)\n'; sed '1d; s|](\([^)]*\.md\))|](docs/\1)|' docs/SUMMARY.md; \
		printf '\n# The project\n\n- [Architecture](ARCHITECTURE.md)\n'; \
		printf -- '- [Architecture of garden and evergreen](filesystems/ARCHITECTURE.md)\n'; \
		printf -- '- [Contributing](CONTRIBUTING.md)\n- [Change log](CHANGELOG.md)\n'; } > target/book-pages/SUMMARY.md
	$(MDBOOK) build
	@echo "open target/book/index.html"

# Only this target needs it; tests do not.
$(MDBOOK): Makefile
	cargo install --locked --quiet --version $(MDBOOK_VERSION) --no-default-features --features search \
		--root target/tools mdbook
	@touch $@

# Builds the programs of packages. They are smaller, but the build takes several times as long.
build-dist:
	cargo build --profile dist --locked --package senesce --package senesce-fs

# Packages in target/debian: senesce, senesce-fs, and the debug symbols of each.
# --quiet hides warnings of cargo-deb about generated files. A test compares these files with the lists.
deb: setup-deb $(CARGO_DEB) build-dist
	./.ci/package-files target/dist/senesce target/generated
	rm -rf target/debian
	version="$$(./.ci/package-version)" && for package in senesce senesce-fs; do \
		$(CARGO_DEB) --package $$package --profile dist --deb-version "$$version" --no-build --locked --quiet --dbgsym --compress-system || exit; done

# The same files as RPM packages, in target/rpm.
rpm: deb
	./.ci/rpm

# Makes an archive of the same files with static programs, for distributions with another package format or C library.
tarball: deb
	./.ci/tarball

# Installs the packages of `make deb` into a clean Debian. It needs root.
test-deb: deb
	./.ci/packages

# Runs the programs of `make tarball` in a directory that has no other program and no library. It needs root.
test-tarball: tarball
	./.ci/tarball --test

# Only `deb` needs cargo-deb. It compresses with xz(1), and names the files of debug symbols by build ID.
$(CARGO_DEB): Makefile
	cargo install --locked --quiet --version $(CARGO_DEB_VERSION) --no-default-features --features debug-id \
		--root target/tools cargo-deb
	@touch $@

setup-run:
	@./.ci/install $(PACKAGES_RUN)

setup-test:
	@./.ci/install $(PACKAGES_TEST)

setup-deb:
	@./.ci/install binutils dpkg-dev xz-utils

clean:
	cargo clean
