/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup_find.c -- see cgroup_find.h.  Sources: /proc/self/mountinfo (the mounts) and /proc/self/cgroup
 * (this process's groups); cgroups(7). */
#include "cgroup_find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "cgroup_file.h"
#include "layers.h"

static const struct {
	const char *name;
	unsigned layer;
} controllers[] = {
	{"memory", OSD_LAYER_CGROUP_MEMORY},
	{"pids", OSD_LAYER_CGROUP_PIDS},
	{"cpu", OSD_LAYER_CGROUP_CPU},
};

static bool has_controller(const char *list, const char *name)
{
	return osd_has_word(list, ',', name, strlen(name));
}

/* One line of mountinfo: ... root mountpoint ... - type source options.  True when it is a
 * hierarchy of the controller (NULL: cgroup v2). */
static bool parse_mount(const char *line, const char *controller, char root[PATH_MAX],
			char point[PATH_MAX])
{
	const char *dash = strstr(line, " - ");
	char type[32], options[1024];

	if (!dash || sscanf(dash, " - %31s %*s %1023s", type, options) != 2)
		return false;
	if (strcmp(type, controller ? "cgroup" : "cgroup2") != 0 ||
	    (controller && !has_controller(options, controller)))
		return false;
	return sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2;
}

/* Our group in that hierarchy: lines N:controllers:path, and 0::path for v2. */
static bool own_group(const char *controller, char path[PATH_MAX])
{
	OSD_CLEANUP(osd_fclosep) FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX + 128];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		char *list = strchr(line, ':'), *at = list ? strchr(list + 1, ':') : NULL;

		if (!at)
			continue;
		*at++ = '\0';
		at[strcspn(at, "\n")] = '\0';
		found = controller ? has_controller(list + 1, controller) : list[1] == '\0';
		if (found)
			snprintf(path, PATH_MAX, "%s", at);
	}
	return found;
}

/* The directory to make groups in: mount point + (parent, or our own group below the mounted
 * root). */
static bool place(const char *controller, const char *parent, char base[PATH_MAX])
{
	OSD_CLEANUP(osd_fclosep) FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[2 * PATH_MAX + 512], root[PATH_MAX], point[PATH_MAX], own[PATH_MAX];
	const char *inside = parent;
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = parse_mount(line, controller, root, point);
	if (!found)
		return false;
	if (!inside) {
		if (!own_group(controller, own))
			return false;
		inside = own;
		if (strcmp(root, "/") != 0 && strncmp(own, root, strlen(root)) == 0)
			inside += strlen(root);
	}
	if (snprintf(base, PATH_MAX, "%s/%s", point, inside + (inside[0] == '/')) >= PATH_MAX)
		return false;
	/* in a container that hides its group, the mounted root is this process's group */
	if (access(base, F_OK) < 0)
		snprintf(base, PATH_MAX, "%s", point);
	return true;
}

static int write_file(const char *path, const char *file, const char *text)
{
	char name[PATH_MAX];

	if (snprintf(name, sizeof(name), "%s/%s", path, file) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	return osd_cgroup_write(AT_FDCWD, name, text);
}

int osd_cgroup_delegate(const char *path, unsigned layers)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(controllers); i++) {
		char text[16];
		int error;

		if (!(layers & controllers[i].layer))
			continue;
		snprintf(text, sizeof(text), "+%s", controllers[i].name);
		error = write_file(path, "cgroup.subtree_control", text);
		if (error)
			return error;
	}
	return 0;
}

/* A v2 group with processes in it cannot delegate: this process first moves into a leaf of its own. */
static int delegate_own(const char *base, unsigned layers)
{
	char leaf[PATH_MAX];
	int error = osd_cgroup_delegate(base, layers);

	if (error != -EBUSY || snprintf(leaf, sizeof(leaf), "%s/daemon", base) >= (int)sizeof(leaf))
		return error;
	if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
		return -errno;
	error = write_file(leaf, "cgroup.procs", "0");
	return error ? error : osd_cgroup_delegate(base, layers);
}

/* Controllers a v2 group is offered, as layers. */
static unsigned offered(const char *base)
{
	char name[PATH_MAX], word[64];
	OSD_CLEANUP(osd_fclosep) FILE *file = NULL;
	unsigned layers = 0;

	if (snprintf(name, sizeof(name), "%s/cgroup.controllers", base) >= (int)sizeof(name))
		return 0;
	file = fopen(name, "re");
	while (file && fscanf(file, "%63s", word) == 1) {
		for (size_t i = 0; i < OSD_ARRAY_SIZE(controllers); i++)
			layers |= strcmp(word, controllers[i].name) == 0 ? controllers[i].layer : 0;
	}
	return layers;
}

/* Two v1 controllers may share a hierarchy: then they share its groups. */
static size_t add_place(struct osd_cgroup_place *places, size_t count, unsigned layer)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(places[i].base, places[count].base) == 0) {
			places[i].layers |= layer;
			return count;
		}
	}
	places[count].unified = false;
	places[count].layers = layer;
	return count + 1;
}

size_t osd_cgroup_find(const char *parent, struct osd_cgroup_place places[3])
{
	unsigned bound = 0;
	size_t count = 0;

	for (size_t i = 0; i < OSD_ARRAY_SIZE(controllers); i++) {
		if (!place(controllers[i].name, parent, places[count].base))
			continue;
		count = add_place(places, count, controllers[i].layer);
		bound |= controllers[i].layer;
	}
	if (bound != OSD_LAYERS_CGROUP && place(NULL, parent, places[count].base)) {
		unsigned layers = offered(places[count].base) & ~bound;

		if (layers && delegate_own(places[count].base, layers) == 0) {
			places[count].unified = true;
			places[count].layers = layers;
			count++;
		}
	}
	return count;
}
