#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# fetch-tgt-source.sh DIRECTORY -- unpack the distribution's source package of tgt there, for the test that
# compares target/shim/tgt_abi.h with tgt's own headers.  Reads the machine's package sources, changes none of
# its settings.  Exit 0 also where it cannot be had: the test says then that it was skipped.
set -eu

directory=$(realpath -m "$1")
[ ! -e "$directory/usr/tgtd.h" ] || exit 0
command -v dpkg-source >/dev/null || exit 0

work=$(mktemp -d "${TMPDIR:-/tmp}/iosd-tgt.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/parts" "$work/lists/partial" "$work/source"

for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
	[ -f "$file" ] && sed -n 's/^deb /deb-src /p' "$file" >>"$work/parts/all.list"
done
for file in /etc/apt/sources.list.d/*.sources; do
	[ -f "$file" ] && sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/parts/${file##*/}"
done

options="-qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=$work/parts
	-o Dir::State::Lists=$work/lists -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
	-o APT::Sandbox::User=root"
cd "$work/source"
# shellcheck disable=SC2086  # the options are meant to split
if apt-get $options update && apt-get $options source --download-only tgt &&
	dpkg-source --no-check -x ./tgt_*.dsc "$work/unpacked"; then
	mkdir -p "${directory%/*}"
	rm -rf "$directory"
	mv "$work/unpacked" "$directory"
fi >"$work/log" 2>&1 || { echo "tgt's source package cannot be had: $(tail -n 1 "$work/log")" >&2; }
