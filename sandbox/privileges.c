/* SPDX-License-Identifier: GPL-2.0-or-later */
/* privileges.c -- see privileges.h: capabilities.  System calls: daemon_filter.c. */
#include "privileges.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layers.h"

/* For id maps; for limits of sandboxes above the daemon's own hard limits; for the package osd or a
 * package set in a folder that only its owner can search. */
#define ALWAYS                                                                                     \
	(OSD_CAPABILITY(SETUID) | OSD_CAPABILITY(SETGID) | OSD_CAPABILITY(SYS_RESOURCE) |          \
	 OSD_CAPABILITY(DAC_READ_SEARCH))

static int set_capabilities(uint64_t wanted)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(wanted >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* This requires CAP_SETPCAP, which root in a container may lack.  The permitted set is reduced in any
 * case. */
static void bound(uint64_t wanted)
{
	for (int i = 0; i < 64 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++) {
		if (!(wanted & UINT64_C(1) << i))
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	}
}

int osd_privileges_keep(uint64_t capabilities, uint64_t bounding)
{
	bound(bounding);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return set_capabilities(capabilities);
}

/* Some hosts allow user namespaces only with CAP_SYS_ADMIN. */
static bool makes_namespaces(unsigned layers, uint64_t capabilities)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(osd_privileges_keep(capabilities, capabilities) < 0 ||
		      unshare((int)osd_layers_clone_flags(layers)) < 0);
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

uint64_t osd_daemon_capabilities(unsigned layers)
{
	uint64_t wanted = ALWAYS;

	/* The daemon owns the zygote's user namespace, and so has all capabilities over its processes. */
	if (!(layers & OSD_LAYER_USERNS))
		wanted |= OSD_CAPABILITY(KILL);
	if (osd_layers_clone_flags(layers) && !makes_namespaces(layers, wanted))
		wanted |= OSD_CAPABILITY(SYS_ADMIN);
	return wanted;
}

uint64_t osd_zygote_capabilities(unsigned layers)
{
	uint64_t wanted = 0;

	if (layers & OSD_LAYER_UID)
		wanted |= OSD_CAPABILITY(SETUID) | OSD_CAPABILITY(SETGID);
	if (layers & OSD_LAYER_PIDNS) /* to make one for each sandbox */
		wanted |= OSD_CAPABILITY(SYS_ADMIN);
	else /* to kill its sandboxes: there is no namespace that would */
		wanted |= OSD_CAPABILITY(KILL);
	return wanted;
}
