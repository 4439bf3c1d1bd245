#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# install-packages.sh [PART...] -- install the missing Debian packages of these parts of packages.txt
# (default: all parts).  Does nothing, and needs no rights, where all of them are installed.
set -eu

list=$(dirname "$0")/../packages.txt

if ! command -v dpkg-query >/dev/null; then
	echo "this is not Debian: install what packages.txt names by hand" >&2
	exit 0
fi

missing=
[ $# != 0 ] || set -- build run install test
for part in "$@"; do
	grep -qx "\[$part\]" "$list" || { echo "packages.txt has no part '$part'" >&2 && exit 2; }
done
for package in $(awk -v parts=" $* " '
	/^#/ { next }
	/^\[/ { wanted = index(parts, " " substr($0, 2, length($0) - 2) " "); next }
	wanted' "$list"); do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "missing Debian packages:$missing" >&2
	echo "install them as root: apt-get install$missing" >&2
	exit 1
fi

echo "installing:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
# A machine whose lists are fresh needs no update; a new one has none.
# shellcheck disable=SC2086  # the list is meant to split
apt-get install -y --no-install-recommends $missing </dev/null >&2 || {
	apt-get update </dev/null >&2
	apt-get install -y --no-install-recommends $missing </dev/null >&2
}
