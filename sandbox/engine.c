/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine.c -- see engine.h. */
#include "engine.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const struct osd_engine *const engines[] = {
#define X(name) &osd_engine_##name,
	OSD_ENGINES(X)
#undef X
};

const struct osd_engine *osd_engine_find(const char *name)
{
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		if (strcmp(engines[i]->name, name) == 0)
			return engines[i];
	}
	return NULL;
}

pid_t osd_engine_fork(const struct osd_engine *engine)
{
	pid_t pid = engine->fork ? engine->fork() : fork();

	return pid < 0 && !engine->fork ? -errno : pid;
}
