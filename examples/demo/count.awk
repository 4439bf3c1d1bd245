# SPDX-License-Identifier: GPL-2.0-or-later
# count.awk -- the same counts as log.py, by another program in another way: fields, no patterns.
# A file name may hold blanks, so the user is looked for from the end of the line.
$5 == "C3" {
	for (i = NF; i > 8 && $i != "egid"; i--)
		;
	if ($i != "egid" || $(i - 2) != "euid")
		next
	users[$(i - 1)]++
	operations[$8]++
}

END {
	for (user in users)
		print "user", user, users[user]
	for (operation in operations)
		print "operation", operation, operations[operation]
}
