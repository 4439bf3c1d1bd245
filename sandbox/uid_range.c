/* SPDX-License-Identifier: GPL-2.0-or-later */
/* uid_range.c -- see uid_range.h.  Formats: passwd(5), group(5), subuid(5), subgid(5). */
#include "uid_range.h"

#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define NAME_SHOWN 64 /* bytes of an owner's name */

struct search {
	const struct osd_uid_range *range;
	char *why;
	size_t size;
};

/* Whether these ids are outside the range; otherwise why names their owner. */
static bool is_apart(const struct search *search, const char *file, const char *owner,
		     uint64_t first, uint64_t count)
{
	const struct osd_uid_range *range = search->range;

	if (count == 0 || first > range->last || first + count - 1 < range->first)
		return true;
	snprintf(search->why, search->size, "%s gives %llu to %llu to '%.*s'", file,
		 (unsigned long long)first, (unsigned long long)(first + count - 1), NAME_SHOWN,
		 owner);
	return false;
}

/* A decimal number up to the separator, which must follow; moves *at behind it. */
static bool take_number(char **at, const char *separators, uint64_t *ret_number)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	*ret_number = strtoull(*at, &end, 10);
	if (!strchr(separators, *end) || *ret_number > UINT32_MAX)
		return false;
	*at = *end ? end + 1 : end;
	return true;
}

/* Reads a line owner:first:count.  A malformed line assigns no ids. */
static bool check_line(const struct search *search, const char *file, char *line)
{
	char *at = strchr(line, ':');
	uint64_t first, count;

	if (!at)
		return true;
	*at++ = '\0';
	if (!take_number(&at, ":", &first) || !take_number(&at, "\n", &count))
		return true;
	return is_apart(search, file, line, first, count);
}

static bool check_subordinate(const struct search *search, const char *path)
{
	OSD_CLEANUP(osd_fclosep) FILE *file = fopen(path, "re");
	OSD_CLEANUP_FREE char *line = NULL;
	size_t size = 0;
	bool apart = true;

	while (file && apart && getline(&line, &size, file) > 0)
		apart = check_line(search, path, line);
	return apart;
}

static bool check_users(const struct search *search, const char *path)
{
	OSD_CLEANUP(osd_fclosep) FILE *file = fopen(path, "re");
	const struct passwd *user;
	bool apart = true;

	while (file && apart && (user = fgetpwent(file)))
		apart = is_apart(search, path, user->pw_name, user->pw_uid, 1);
	return apart;
}

static bool check_groups(const struct search *search, const char *path)
{
	OSD_CLEANUP(osd_fclosep) FILE *file = fopen(path, "re");
	const struct group *group;
	bool apart = true;

	while (file && apart && (group = fgetgrent(file)))
		apart = is_apart(search, path, group->gr_name, group->gr_gid, 1);
	return apart;
}

bool osd_uid_range_is_free(const struct osd_uid_range *range, char *why, size_t size)
{
	const struct search search = {range, why, size};

	why[0] = '\0';
	return check_subordinate(&search, "/etc/subuid") &&
	       check_subordinate(&search, "/etc/subgid") && check_users(&search, "/etc/passwd") &&
	       check_groups(&search, "/etc/group");
}
