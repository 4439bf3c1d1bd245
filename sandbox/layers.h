/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layers.h -- the layers of isolation, and the levels made of them.
 *
 * A level is exactly its list of layers.  There is one exception: a daemon that is root never runs a
 * script as root.  So `minimal`, asked for by name, runs the same layers as a host without namespaces,
 * and every host can test it. `best` is the first level of the table whose layers are all available. */
#ifndef OSD_SANDBOX_LAYERS_H
#define OSD_SANDBOX_LAYERS_H

#include <stdbool.h>
#include <stddef.h>

/* Columns: symbol, name, what it does. */
#define OSD_LAYERS(X)                                                                            \
	X(USERNS, "userns", "user namespace: root inside is nobody outside")                     \
	X(MOUNTNS, "mountns", "mount namespace with a read-only root of its own")                \
	X(PIDNS, "pidns", "process namespaces: one for the zygote, one for each sandbox")        \
	X(NETNS, "netns", "network namespace without any interface up")                          \
	X(IPCNS, "ipcns", "System V IPC and message queue namespace")                            \
	X(UTSNS, "utsns", "host name namespace")                                                 \
	X(UID, "uid", "a user id of its own for each slot")                                      \
	X(NO_NEW_PRIVS, "no_new_privs", "no privileges by exec")                                 \
	X(RLIMITS, "rlimits", "limits on memory, cpu, files, threads")                           \
	X(LANDLOCK, "landlock", "file access only below the interpreter's library")              \
	X(SECCOMP, "seccomp", "system-call allow-list")                                          \
	X(OOM_SCORE, "oom_score", "killed before the daemon when the host runs out of memory")   \
	X(CGROUP_MEMORY, "cgroup_memory", "memory control group for each slot")                  \
	X(CGROUP_PIDS, "cgroup_pids", "process-count control group for each slot")               \
	X(CGROUP_CPU, "cgroup_cpu", "processor weight below the target's")

enum osd_layer_index {
#define X(symbol, name, what) OSD_LAYER_INDEX_##symbol,
	OSD_LAYERS(X)
#undef X
	OSD_LAYER_COUNT
};

enum osd_layer {
#define X(symbol, name, what) OSD_LAYER_##symbol = 1u << OSD_LAYER_INDEX_##symbol,
	OSD_LAYERS(X)
#undef X
};

#define OSD_LAYERS_CGROUP (OSD_LAYER_CGROUP_MEMORY | OSD_LAYER_CGROUP_PIDS | OSD_LAYER_CGROUP_CPU)
#define OSD_LAYERS_ALL    ((1u << OSD_LAYER_COUNT) - 1)

/* Not a layer, but in the same word: the daemon may raise hard limits. */
#define OSD_LIMITS_RAISABLE (1u << 31)
_Static_assert(OSD_LAYER_COUNT < 31, "one word");

struct osd_level {
	const char *name;
	unsigned layers;
};

/* Ends with a NULL name; best first. */
extern const struct osd_level osd_levels[];

/* By index. */
extern const struct osd_layer_text {
	const char *name, *what;
} osd_layer_texts[];

/* The errno of the attempt to use a layer; 0: it is available. */
struct osd_layer_states {
	int error[OSD_LAYER_COUNT];
};

/* Try all layers in a child, except the control groups, which the caller fills in. */
void osd_layers_probe(unsigned uid_base, struct osd_layer_states *ret_states);

/* The named level, or the best one.  NULL: the level is unknown or not available. text: the missing
 * layers of that level (for `best`: of the first one in the table); "" if none is missing. */
const struct osd_level *osd_level_choose(const char *name, const struct osd_layer_states *states,
					 char *text, size_t size);

/* namespaces of the layers, as flags of clone(2) */
unsigned long osd_layers_clone_flags(unsigned layers);

#endif
