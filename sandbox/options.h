/* SPDX-License-Identifier: GPL-2.0-or-later */
/* options.h -- the command line of iosd-sandboxd. */
#ifndef OSD_SANDBOX_OPTIONS_H
#define OSD_SANDBOX_OPTIONS_H

#include <limits.h>

#include "daemon.h"

/* Options that are not constants of the daemon. */
struct osd_options {
	const char *isolation;
	char package[PATH_MAX]; /* daemon->package */
	bool print_level;
	struct osd_pool_words pool; /* the pool that options are about */
	bool pools;                 /* there are options about pools */
};

/* Fill in both; false: the usage has been printed. */
bool osd_options_parse(struct osd_daemon *daemon, struct osd_options *options, int argc,
		       char **argv);

#endif
