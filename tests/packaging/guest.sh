#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# guest.sh -- what tests/packaging/vm.py has a Debian 12 do at its first start, as root; ends by switching it off.
# Tells the serial line: "ok WHAT" or "FAILED WHAT" with what it printed, and "done" last.
exec >/dev/ttyS0 2>&1 </dev/null
cd /root || exit 1
export DEBIAN_FRONTEND=noninteractive

check() { # WHAT COMMAND...
	local what=$1 said
	shift
	if said=$("$@" 2>&1); then echo "ok $what"; else printf 'FAILED %s\n%s\n' "$what" "$said"; fi
}

within() { # SECONDS COMMAND...
	local deadline=$((SECONDS + $1)) said
	shift
	until said=$("$@" 2>&1); do
		((SECONDS < deadline)) || { echo "$said"; return 1; }
		sleep 1
	done
}

ends_with() { # CODE COMMAND...
	local wanted=$1
	shift
	"$@"
	local code=$?
	[ $code = "$wanted" ] || { echo "exit code $code"; return 1; }
}

one_hierarchy() { [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; }
active() { systemctl is-active tgt iosd-sandboxd iosd-attach iosd-manager; }
groups=/sys/fs/cgroup/system.slice/iosd-sandboxd.service
limited() { ! grep -x max $groups/iosd-sandboxd-*/slot-*/{memory,pids}.max; }
idle() { [ "$(cat $groups/iosd-sandboxd-*/cpu.idle)" = 1 ]; }
full() { [ "$(journalctl -q -u iosd-sandboxd -o cat --grep '^ready')" = 'ready full' ]; }
no_warning() { local said; said=$(osd doctor) && ! grep -E '^(warn|fail)' <<<"$said"; }
job() { [ "$(osd exec sum.py --zone 0x31000 --target "$1" --wait --quiet)" = 499999500000 ]; }

serve() { # LOG COMMAND...: in the background, until its target answers
	local log=$1
	shift
	"$@" >"$log" 2>&1 &
	served=$!
	within 120 grep -q '"event": "ready"' "$log" || { cat "$log"; return 1; }
}

by_hand() { # in the group of a shell that has other processes
	local url='iscsi://127.0.0.1:3999/iqn.2026-11.iosd:target/1'
	serve serve.log osd target serve --data /srv/by-hand --portal 127.0.0.1:3999 --ready-fd 1 || return 1
	grep -q '"isolation": "full"' serve.log || { cat serve.log; return 1; }
	osd part create 0x31000 --target $url && job $url || return 1
	kill $served && wait $served || { cat serve.log; return 1; }
	! find /sys/fs/cgroup -name 'iosd-sandboxd-*' | grep .
}

echo 'import osd; print(sum(range(1000000)))' >sum.py
printf 'kept = []\nwhile True:\n    kept.append(b"1" * (8 << 20))\n' >eat.py
target=iscsi://127.0.0.1:3260/iqn.2026-11.iosd:target/1
export IOSD_TARGET=$target

check 'cgroup v2 alone' one_hierarchy
check 'packages installed' apt-get install -y -qq --no-install-recommends /debs/*.deb
check 'services run' within 240 active
check 'sandboxes with all layers' full
check 'nothing to mend for osd doctor' no_warning
check 'a partition' osd part create 0x31000
check 'a job' job $target
check 'memory and processes are limited' limited
check 'sandboxes are an idle group' idle
check 'a script that eats memory' ends_with 13 osd exec eat.py --zone 0x31000 --wait --quiet
check 'sandboxes killed' systemctl kill -s KILL iosd-sandboxd
check 'a job after it' within 60 job $target
check 'tgtd killed' systemctl kill -s KILL tgt
check 'the target after it' within 120 osd target ping --quiet
check 'a job after it' within 60 job $target
check 'services stopped' systemctl stop iosd.target tgt
check 'a target served by hand' by_hand
check 'packages purged' apt-get purge -y -qq iosd-target iosd-sandbox iosd-manager
journalctl -q --no-pager -p warning -b -u 'iosd-*' -u tgt
echo 'done'
sync
systemctl poweroff -f
