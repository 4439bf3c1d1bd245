/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layers.c -- see layers.h. */
#include "layers.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MINIMAL                                                                                    \
	(OSD_LAYER_NO_NEW_PRIVS | OSD_LAYER_RLIMITS | OSD_LAYER_LANDLOCK | OSD_LAYER_SECCOMP |     \
	 OSD_LAYER_OOM_SCORE)

const struct osd_level osd_levels[] = {
	{"full", OSD_LAYERS_ALL},
	{"no-cgroup", OSD_LAYERS_ALL & ~OSD_LAYERS_CGROUP},
	{"no-userns", OSD_LAYERS_ALL & ~(OSD_LAYERS_CGROUP | OSD_LAYER_USERNS)},
	{"minimal", MINIMAL},
	{NULL, 0},
};

const struct osd_layer_text osd_layer_texts[] = {
#define X(symbol, name, what) {name, what},
	OSD_LAYERS(X)
#undef X
};

unsigned long osd_layers_clone_flags(unsigned layers)
{
	static const struct {
		unsigned layer;
		unsigned long flag;
	} map[] = {
		{OSD_LAYER_USERNS, CLONE_NEWUSER}, {OSD_LAYER_MOUNTNS, CLONE_NEWNS},
		{OSD_LAYER_PIDNS, CLONE_NEWPID},   {OSD_LAYER_NETNS, CLONE_NEWNET},
		{OSD_LAYER_IPCNS, CLONE_NEWIPC},   {OSD_LAYER_UTSNS, CLONE_NEWUTS},
	};
	unsigned long flags = 0;

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++) {
		if (layers & map[i].layer)
			flags |= map[i].flag;
	}
	return flags;
}

/* ---- probes: each runs in a child of its own and answers 0 or an errno ----------------------- */

static int probe_unshare(unsigned layer)
{
	unsigned long flags = osd_layers_clone_flags(layer);

	if (geteuid() != 0)
		flags |= CLONE_NEWUSER; /* without privileges, the others are possible only inside one */
	return unshare((int)flags) < 0 ? errno : 0;
}

/* Mounts can be private only if the root is a mount, which a bare chroot is not. */
static int probe_mounts(void)
{
	int error = probe_unshare(OSD_LAYER_MOUNTNS);

	if (!error && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		error = errno;
	return error;
}

/* The id of the first slot (main.c); uid_base is for root of the zygote's user namespace. */
static int probe_uid(unsigned uid_base)
{
	if (setgroups(0, NULL) < 0 || setresgid(uid_base + 1, uid_base + 1, uid_base + 1) < 0 ||
	    setresuid(uid_base + 1, uid_base + 1, uid_base + 1) < 0)
		return errno;
	return 0;
}

static int probe_landlock(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? errno : 0;
}

static int probe_seccomp(void)
{
	unsigned action = SECCOMP_RET_ERRNO;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0 ? errno : 0;
}

static int probe_oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1000", 4) != 4)
		return errno;
	return 0;
}

static int probe(enum osd_layer_index layer, unsigned uid_base)
{
	switch (layer) {
	case OSD_LAYER_INDEX_MOUNTNS:
		return probe_mounts();
	case OSD_LAYER_INDEX_UID:
		return probe_uid(uid_base);
	case OSD_LAYER_INDEX_LANDLOCK:
		return probe_landlock();
	case OSD_LAYER_INDEX_SECCOMP:
		return probe_seccomp();
	case OSD_LAYER_INDEX_OOM_SCORE:
		return probe_oom_score();
	case OSD_LAYER_INDEX_NO_NEW_PRIVS:
		return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? errno : 0;
	case OSD_LAYER_INDEX_RLIMITS:
		return 0; /* every kernel has them */
	default:
		return probe_unshare(1u << layer);
	}
}

/* A probe changes the namespaces, ids or filters of its process for good.  An errno fits into the
 * 8 bits of an exit status. */
static int probe_in_child(enum osd_layer_index layer, unsigned uid_base)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return errno;
	if (child == 0)
		_exit(probe(layer, uid_base));
	if (waitpid(child, &status, 0) < 0)
		return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

void osd_layers_probe(unsigned uid_base, struct osd_layer_states *ret_states)
{
	for (enum osd_layer_index i = 0; i < OSD_LAYER_COUNT; i++) {
		if (!(OSD_LAYERS_CGROUP & 1u << i))
			ret_states->error[i] = probe_in_child(i, uid_base);
	}
}

static unsigned missing_layers(unsigned wanted, const struct osd_layer_states *states)
{
	unsigned missing = 0;

	for (enum osd_layer_index i = 0; i < OSD_LAYER_COUNT; i++) {
		if (wanted & 1u << i && states->error[i])
			missing |= 1u << i;
	}
	return missing;
}

static void describe(unsigned missing, const struct osd_layer_states *states, char *text,
		     size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (enum osd_layer_index i = 0; i < OSD_LAYER_COUNT && used < size; i++) {
		if (missing & 1u << i)
			used += (size_t)snprintf(text + used, size - used, "%s%s (%s)",
						 used ? ", " : "", osd_layer_texts[i].name,
						 strerror(states->error[i]));
	}
}

const struct osd_level *osd_level_choose(const char *name, const struct osd_layer_states *states,
					 char *text, size_t size)
{
	bool best = strcmp(name, "best") == 0;

	snprintf(text, size, "unknown isolation level");
	for (const struct osd_level *level = osd_levels; level->name; level++) {
		unsigned missing = missing_layers(level->layers, states);

		if (!best && strcmp(name, level->name) != 0)
			continue;
		if (!best || level == osd_levels)
			describe(missing, states, text, size);
		if (!missing)
			return level;
		if (!best)
			return NULL;
	}
	return NULL;
}
