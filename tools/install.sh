#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# install.sh -- install iosd into a prefix, or remove it.
#
#   install.sh install DESTDIR PREFIX PYTHON
#   install.sh uninstall DESTDIR PREFIX
#
# Everything lives in one folder, PREFIX/lib/iosd.  Outside it are links to it, and copies where a link will
# not do (units).  The default configuration is in SYSCONFDIR (default /etc).  tgtd looks for modules in
# MODULEDIR (default /usr/lib/tgt/backing-store), so a link to the module is there.  The file `outside` lists
# all files outside the folder.  uninstall removes these, except a configuration that was changed.
set -eu

action=$1
dest=$2
prefix=$3
root=$dest$prefix
lib=$root/lib/iosd
outside=$lib/outside
: "${SYSCONFDIR:=/etc}" "${MODULEDIR:=/usr/lib/tgt/backing-store}"
config=$SYSCONFDIR/iosd/iosd.toml

# Folders that are not there yet are made, and noted, the outermost first.
missing() {
	[ -d "$dest$1" ] || { missing "$(dirname "$1")" && echo "$1"; }
}
folder() {
	made=$(missing "$1")
	mkdir -p "$dest$1"
	[ -z "$made" ] || echo "$made" >>"$lib/folders"
}

# put FILE PLACE: a copy.  place FILE PLACE: a link.  PLACE is without DESTDIR.
put() {
	folder "$(dirname "$2")"
	install -m 644 "$1" "$dest$2"
	echo "$2" >>"$outside"
}
place() {
	folder "$(dirname "$2")"
	ln -sfn "$1" "$dest$2"
	echo "$2" >>"$outside"
}

# A copy of the Python sources, because setuptools writes beside them: another build may run in this tree.
# VERSION is a link, by which packaging/pip/cmake_trees.py finds the C trees that are built here.
copy() {
	mkdir -p build
	work=$(mktemp -d "$PWD/build/install.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	tar --exclude='*.egg-info' --exclude='*.so' --exclude=__pycache__ --exclude='pip/*/build' -c LICENSE \
		README.md iosd_host iosd_secmgr packaging/pip pyosd pyproject.toml setup.py | tar -x -C "$work"
	ln -s "$PWD/VERSION" "$work/VERSION"
}

remove() {
	# Earlier releases kept no list of their files.
	if [ -d "$lib/man" ] && [ ! -e "$outside" ]; then
		(cd "$lib/man" && find . -type f) | sed "s|^\.|$prefix/share/man|" >"$outside"
		echo "$prefix/bin/osd" >>"$outside"
		echo "$prefix/share/bash-completion/completions/osd" >>"$outside"
	fi
	[ -e "$outside" ] || return 0
	while read -r path; do
		rm -f "$dest$path"
	done <"$outside"
	made=$(tac "$lib/folders" 2>/dev/null || true)
	rm -rf "$lib"
	# Folders that hold files of others stay.
	echo "$made" | while read -r path; do
		[ -z "$path" ] || rmdir "$dest$path" 2>/dev/null || true
	done
}

# command NAME MODULE FUNCTION: a program of the installation's own.
command() {
	cat >"$lib/$1-command" <<-END
	#!$python
	import sys

	sys.dont_write_bytecode = True
	sys.path.insert(0, "$prefix/lib/iosd")
	from $2 import $3

	sys.exit($3())
	END
	chmod +x "$lib/$1-command"
	place "$prefix/lib/iosd/$1-command" "$prefix/bin/$1"
}

units() {
	option=
	[ "$SYSCONFDIR" = /etc ] || option=" --config $config"
	(cd packaging/systemd && find . -type f | sort) | while read -r unit; do
		[ "${unit##*/}" != iosd-tgtd.conf ] || [ -x "$lib/tgtd" ] || continue
		sed -E -e "s|=/usr/bin/osd secmgr|=$prefix/bin/osd secmgr|" \
			-e "s|=/usr/lib/iosd/tgtd|=$prefix/lib/iosd/tgtd|" \
			-e "s|=(-?)/usr/bin/(osd [a-z ]*[a-z]\|[a-z-]+)|=\1$prefix/bin/\2$option|" \
			"packaging/systemd/$unit" >"$lib/unit"
		put "$lib/unit" "$prefix/lib/systemd/system/${unit#./}"
	done
	rm "$lib/unit"
	put packaging/sysusers/iosd.conf "$prefix/lib/sysusers.d/iosd.conf"
}

# Never over one that somebody changed.
configuration() {
	.venv/bin/python -m tools.configdoc >"$lib/iosd.toml"
	folder "$SYSCONFDIR/iosd"
	if [ -e "$dest$config" ] && ! cmp -s "$dest$config" "$lib/iosd.toml"; then
		echo "kept $dest$config, which was changed; the default is $lib/iosd.toml"
	else
		install -m 644 "$lib/iosd.toml" "$dest$config"
	fi
}

# The one that was installed, unless it was changed.
unconfigure() {
	if [ -e "$dest$config" ] && cmp -s "$dest$config" "$lib/iosd.toml"; then
		rm "$dest$config"
	fi
}

case $action in
install)
	python=$4
	unconfigure
	remove
	made=$(missing "$prefix/lib/iosd")
	mkdir -p "$lib"
	echo "$made" >"$lib/folders"
	copy
	.venv/bin/pip install -q --no-build-isolation --no-compile --no-deps --no-index --target "$lib" \
		"$work" "$work/packaging/pip/iosd-host" "$work/packaging/pip/iosd-secmgr"
	.venv/bin/python -m tools.copy_required "$lib"
	rm -rf "$lib/bin" "$work"
	# Commands write no bytecode here, so each would compile all that it imports.
	"$python" -m compileall -q "$lib"
	: >"$outside"
	sed -s -n '/^\[console_scripts\]/,/^\[/s/^\([a-z-]*\) *= *\([a-z_.]*\):\([a-z_]*\)$/\1 \2 \3/p' \
		"$lib"/iosd*.dist-info/entry_points.txt >"$lib/commands"
	while read -r name module function; do
		command "$name" "$module" "$function"
	done <"$lib/commands"
	for shell in bash zsh fish; do
		.venv/bin/osd completion $shell >"$lib/completion.$shell"
	done
	place "$prefix/lib/iosd/completion.bash" "$prefix/share/bash-completion/completions/osd"
	place "$prefix/lib/iosd/completion.zsh" "$prefix/share/zsh/site-functions/_osd"
	place "$prefix/lib/iosd/completion.fish" "$prefix/share/fish/vendor_completions.d/osd.fish"
	.venv/bin/python -m tools.manpages "$lib/man"
	(cd "$lib/man" && find . -type f | sed 's|^\./||') | while read -r page; do
		place "$prefix/lib/iosd/man/$page" "$prefix/share/man/$page"
	done
	[ ! -x build/tgtd/tgtd ] || install -m 755 build/tgtd/tgtd "$lib/tgtd"
	units
	put packaging/prometheus/iosd.rules.yml "$prefix/share/iosd/iosd.rules.yml"
	put packaging/grafana/iosd.json "$prefix/share/iosd/iosd.json"
	place "$prefix/lib/iosd/iosd_host/libexec/bs_iosd.so" "$MODULEDIR/bs_iosd.so"
	configuration
	echo "installed $root/bin/osd"
	;;
uninstall)
	unconfigure
	remove
	;;
*)
	echo "install.sh: install or uninstall" >&2
	exit 2
	;;
esac
