#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# build-tgtd.sh [asan] -- the distribution's tgtd with the patches of target/tgt-patches, as build/tgtd/tgtd;
# asan: under AddressSanitizer, as build/tgtd-asan/tgtd.  Without RDMA, Ceph and Gluster.  Does nothing where
# it is there already.  Exit 3: the distribution's source package cannot be had, or is one that the patches
# are not for.
set -eu

cd "$(dirname "$0")/.."
patches=target/tgt-patches
variant=${1:-}
out=build/tgtd${variant:+-$variant}
release=1.0.85   # the upstream version that the patches are for
name=$release+iosd1

tools/fetch-tgt-source.sh build/tgt-source
found=$(sed -n 's/^VERSION ?= //p' build/tgt-source/Makefile 2>/dev/null || true)
if [ "$found" != "$release" ]; then
	echo "no hardened tgtd: the patches are for tgt $release, the source at hand is ${found:-absent}" >&2
	exit 3
fi

state=$(cat "$0" "$patches"/series "$patches"/*.patch build/tgt-source/debian/changelog | sha256sum)
if [ -x "$out/tgtd" ] && [ "$(cat "$out/state" 2>/dev/null)" = "$state" ]; then
	exit 0
fi

mkdir -p build
work=$(mktemp -d "$PWD/build/tgtd.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp -r build/tgt-source "$work/source"
while read -r patch; do
	patch -d "$work/source" -p1 -s -F0 --no-backup-if-mismatch <"$patches/$patch" || {
		echo "$patch does not apply to tgt $release" >&2
		exit 1
	}
done <"$patches/series"

case $variant in
asan)
	flags="-fsanitize=address -fno-omit-frame-pointer -static-libasan"
	export CFLAGS="-O1 $flags" LDFLAGS="$flags"
	# The module is preloaded, and the environment of the daemon is not ours to fill.
	echo 'const char *__asan_default_options(void); const char *__asan_default_options(void)
		{ return "detect_leaks=0:abort_on_error=1:verify_asan_link_order=0"; }' >>"$work/source/usr/tgtd.c"
	;;
'')
	export DEB_BUILD_MAINT_OPTIONS=hardening=+all
	for flags in CPPFLAGS CFLAGS LDFLAGS; do
		eval "export $flags=\"$(cd "$work" && dpkg-buildflags --get $flags)\""
	done
	;;
*)
	echo "build-tgtd.sh: asan, or nothing" >&2
	exit 2
	;;
esac
compiler=cc
! command -v ccache >/dev/null || compiler="ccache cc"
make -C "$work/source/usr" -j"${JOBS:-2}" CC="$compiler" PREFIX=/usr EXTRAVERSION=+iosd1 VERSION="$release" \
	SD_NOTIFY=1 tgtd >"$work/log" 2>&1 || {
	tail -n 40 "$work/log" >&2
	exit 1
}
mkdir -p "$out/usr"
cp "$work/source/usr"/*.h "$out/usr"   # tests/unit/test_tgt_abi.py
mv "$work/source/usr/tgtd" "$out/tgtd"
echo "$state" >"$out/state"
echo "built $out/tgtd, version $name"
