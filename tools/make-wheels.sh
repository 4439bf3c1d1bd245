#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# make-wheels.sh FOLDER [PROJECT...] -- build source distributions and wheels of iosd, iosd-host and
# iosd-secmgr into FOLDER, without the network.  Each wheel is built from its source distribution, so a
# file that is missing there is noticed.  PYTHON (default: .venv/bin/python) needs setuptools and wheel.
set -eu

cd "$(dirname "$0")/.."
python=$(realpath -s "${PYTHON:-.venv/bin/python}")
mkdir -p "$1" build
out=$(realpath "$1")
shift
[ $# != 0 ] || set -- iosd iosd-host iosd-secmgr
work=$(mktemp -d "$PWD/build/wheels.XXXXXX")
trap 'rm -rf "$work"' EXIT

# A copy: setuptools writes into the folder of a project, and adds what an older list of files names.
# sandbox/java/api is a link into the examples.
copied="LICENSE MANIFEST.in README.md VERSION examples/functions iosd_host iosd_secmgr packaging/pip \
	pyosd pyproject.toml sandbox setup.py target"
# shellcheck disable=SC2086 # words
tar --exclude='*.egg-info' --exclude='*.so' --exclude=__pycache__ --exclude='pip/*/build' -c $copied | tar -x -C "$work"
for project in "$@"; do
	folder=$work/packaging/pip/$project
	[ "$project" != iosd ] || folder=$work
	(cd "$folder" && "$python" setup.py -q sdist -d "$work/sdist" >"$work/log" 2>&1) &&
		"$python" -m pip wheel -q --no-deps --no-build-isolation --no-index -w "$work/wheels" \
			"$work/sdist/$(echo "$project" | tr - _)-"*.tar.gz >>"$work/log" 2>&1 || {
		sed -n '/FAILED:/,/ninja: build stopped/p' "$work/log" >&2 # of a compiler: far above the end
		tail -n 30 "$work/log" >&2
		exit 1
	}
done
mv "$work"/sdist/* "$work"/wheels/* "$out"
(cd "$out" && ls ./*.tar.gz ./*.whl)
