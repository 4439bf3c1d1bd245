#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# make-deb.sh FOLDER -- build the Debian packages into FOLDER, from a copy of this tree below build/.
# Installs what building them needs (Build-Depends of packaging/debian/control) where it is missing.
set -eu

cd "$(dirname "$0")/.."
version=$(cat VERSION)
mkdir -p "$1" build
out=$(realpath "$1")
work=$(mktemp -d "$PWD/build/deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/iosd-$version

mkdir "$tree"
tools/fetch-tgt-source.sh build/tgt-source
mkdir -p "$tree/build"
if grep -qs '^VERSION ?= 1\.0\.85$' build/tgt-source/Makefile; then
	cp -r build/tgt-source "$tree/build"
else
	echo "make-deb: without iosd-tgtd: its patches are for tgt 1.0.85, whose source is not at hand" >&2
	export DEB_BUILD_PROFILES=pkg.iosd.stock
fi
tar --exclude=./build --exclude=./dist --exclude='./.*' --exclude='*.egg-info' --exclude='*.so' \
	--exclude='pip/*/build' --exclude=__pycache__ -c . | tar -x -C "$tree"
cp -r packaging/debian "$tree/debian"
date=$(git log -1 --format=%cD 2>/dev/null || date -R -r VERSION)
sed "s/@VERSION@/$version/; s/@DATE@/$date/" "$tree/debian/changelog.in" >"$tree/debian/changelog"
rm "$tree/debian/changelog.in"
cd "$tree"
if ! dpkg-checkbuilddeps 2>/dev/null; then
	[ "$(id -u)" = 0 ] || { dpkg-checkbuilddeps || exit 1; }
	echo "make-deb: installing the packages that the build needs; they stay installed" >&2
	export DEBIAN_FRONTEND=noninteractive
	needs="apt-get build-dep -y --no-install-recommends $tree"
	$needs </dev/null >&2 || { apt-get update </dev/null >&2 && $needs </dev/null >&2; }
fi
DEB_BUILD_OPTIONS="noautodbgsym parallel=${JOBS:-2}" dpkg-buildpackage -b -us -uc >"$work/log" 2>&1 || {
	tail -n 60 "$work/log" >&2
	exit 1
}
rm -f "$out"/*.deb
mv "$work"/*.deb "$work"/*.changes "$out"
ls "$out"/*.deb
