#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# bench-peers.sh FOLDER -- unpack the programs that `make bench` measures against, from Debian's packages.
# Nothing is installed: no service starts, nothing outside of FOLDER changes, no rights are needed.
# Exit 1: they could not be had; the rows that need them say so.
set -eu

folder=$1
packages="nginx redis-server redis-tools libatomic1 libjemalloc2 liblzf1
	qemu-system-common qemu-block-extra libaio1 libfuse3-3 libglib2.0-0 libiscsi7 libibverbs1 libnl-3-200
	libnl-route-3-200 libnuma1 librdmacm1 liburing2 libzstd1"

[ ! -e "$folder/complete" ] || exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
	echo "bench-peers: this is not Debian: put nginx, redis-server and qemu-storage-daemon on PATH" >&2
	exit 1
}
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
# shellcheck disable=SC2086  # the list is meant to split
apt-get download -q $packages >/dev/null 2>&1 || {
	echo "bench-peers: cannot download: $packages (apt-get update?)" >&2
	exit 1
}
for package in *.deb; do
	dpkg-deb -x "$package" .
done
rm -f ./*.deb
touch complete
