/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exec_limits.c -- the table of limits as data. */
#include "wire/exec_limits.h"

/* Names are lower case because people and the root page read them. */
const struct osd_exec_limit_info osd_exec_limits[OSD_LIMIT_COUNT] = {
#define X(symbol, name, unit, standard, maximum, meaning)                                          \
	[OSD_LIMIT_##symbol] = {name, unit, standard, maximum, meaning},
	OSD_EXEC_LIMITS(X)
#undef X
};
