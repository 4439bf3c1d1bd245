#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# install.sh -- install iosd into a prefix, or remove it.
#
#   install.sh install DESTDIR PREFIX PYTHON
#   install.sh uninstall DESTDIR PREFIX
#
# Everything lives in one folder, PREFIX/lib/iosd, beside links to it: the command, its completion and
# the manual pages.  Nothing else is touched, so nothing else can be left behind.
set -eu

action=$1
root=$2$3
lib=$root/lib/iosd
command=$root/bin/osd
completion=$root/share/bash-completion/completions/osd

case $action in
install)
	python=$4
	rm -rf "$lib"
	mkdir -p "$lib" "$root/bin" "$root/share/bash-completion/completions"
	.venv/bin/pip install -q --no-build-isolation --no-compile --target "$lib" .
	rm -rf "$lib/bin" build/lib* build/bdist*
	cat >"$lib/osd-command" <<-EOF
	#!$python
	import sys

	sys.dont_write_bytecode = True
	sys.path.insert(0, "$3/lib/iosd")
	from pyosd.cli import main

	main(prog_name="osd")
	EOF
	chmod +x "$lib/osd-command"
	.venv/bin/osd completion bash >"$lib/completion.bash"
	.venv/bin/python -m tools.manpages "$lib/man"
	for page in "$lib"/man/man*/*; do
		folder=share/man/$(basename "$(dirname "$page")")
		mkdir -p "$root/$folder"
		ln -sf "../../../${page#"$root/"}" "$root/$folder/"
	done
	ln -sf ../lib/iosd/osd-command "$command"
	ln -sf ../../../lib/iosd/completion.bash "$completion"
	echo "installed $command"
	;;
uninstall)
	for page in "$lib"/man/man*/*; do
		rm -f "$root/share/man/$(basename "$(dirname "$page")")/$(basename "$page")"
	done
	rm -rf "$lib"
	rm -f "$command" "$completion"
	# The folders install may have made, where nothing else has come to live in them.
	for folder in share/bash-completion/completions share/bash-completion share/man/man1 \
		share/man/man7 share/man share lib bin ''; do
		rmdir "$root/$folder" 2>/dev/null || true
	done
	;;
*)
	echo "install.sh: install or uninstall" >&2
	exit 2
	;;
esac
