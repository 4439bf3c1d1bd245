/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup_pool.c -- groups of pools, which bound the processor time of all their sandboxes together (cgroup.h).  A pool
 * gets a group with its first bound.  In a common hierarchy its zygotes are put there; in others, the groups of its
 * slots are made in it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "cgroup.h"
#include "cgroup_file.h"
#include "cgroup_find.h"

#define PERIOD_USEC UINT64_C(100000)
#define QUOTA_LEAST UINT64_C(1000) /* the kernel takes no less */

int osd_cgroup_place_of(const struct osd_hierarchy *h, unsigned pool, char path[PATH_MAX])
{
	int length = pool == OSD_CGROUP_COMMON
			     ? snprintf(path, PATH_MAX, "%s", h->path)
			     : snprintf(path, PATH_MAX, "%s/pool-%u", h->path, pool);

	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

unsigned osd_cgroups_pool(const struct osd_cgroups *groups, const struct osd_hierarchy *h,
			  unsigned pool)
{
	bool own = h->layers & OSD_LAYER_CGROUP_CPU && pool < OSD_CGROUP_POOLS &&
		   groups->pools & UINT32_C(1) << pool;

	return own ? pool : OSD_CGROUP_COMMON;
}

/* quota: microseconds of each period; 0: no bound. */
static int write_quota(int directory, bool unified, uint64_t quota)
{
	char text[48];
	int error;

	if (unified && quota == 0)
		return osd_cgroup_write(directory, "cpu.max", "max");
	snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, quota, PERIOD_USEC);
	if (unified)
		return osd_cgroup_write(directory, "cpu.max", text);
	if (quota == 0)
		return osd_cgroup_write(directory, "cpu.cfs_quota_us", "-1");
	error = osd_cgroup_write_number(directory, "cpu.cfs_period_us", PERIOD_USEC);
	return error ? error : osd_cgroup_write_number(directory, "cpu.cfs_quota_us", quota);
}

static int bound(const struct osd_hierarchy *h, unsigned pool, uint64_t quota)
{
	OSD_CLEANUP_CLOSE int directory = -1;
	char path[PATH_MAX];
	int error = osd_cgroup_place_of(h, pool, path);

	if (!error && mkdir(path, 0755) < 0 && errno != EEXIST)
		error = -errno;
	if (!error && h->unified)
		error = osd_cgroup_delegate(path, h->layers);
	if (error)
		return error;
	directory = osd_cgroup_open(path);
	return directory < 0 ? directory : write_quota(directory, h->unified, quota);
}

int osd_cgroups_bound(struct osd_cgroups *groups, unsigned pool, unsigned percent)
{
	uint64_t processors = (uint64_t)OSD_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	uint64_t quota =
		OSD_MAX(PERIOD_USEC * processors * percent / OSD_CPU_SHARE_WHOLE, QUOTA_LEAST);
	bool whole = percent >= OSD_CPU_SHARE_WHOLE;
	int error = -ENOENT;

	if (whole && !(groups->pools & UINT32_C(1) << pool))
		return 0;
	for (size_t i = 0; i < groups->count; i++)
		if (groups->hierarchies[i].layers & OSD_LAYER_CGROUP_CPU)
			error = bound(&groups->hierarchies[i], pool, whole ? 0 : quota);
	if (!error)
		groups->pools |= UINT32_C(1) << pool;
	return error;
}
