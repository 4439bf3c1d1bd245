/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pool_file.h -- the file that lists the pools.  The supervisor writes it (iosd_host/config/pools.py).  The target
 * and iosd-sandboxd both read it, and each ignores the keys of the other.
 *
 *   budget=BYTES                                    at most one such line: OSD_POOL_BUDGET
 *   name=NAME;max=2;engine=python;packages=/FOLDER  a pool a line, keys in any order */
#ifndef OSD_WIRE_POOL_FILE_H
#define OSD_WIRE_POOL_FILE_H

#include <stdbool.h>

#define OSD_POOL_BUDGET "budget="

/* The file's text, which the caller frees; NULL: *ret_wrong says why. */
char *osd_pool_file_read(const char *path, const char **ret_wrong);

/* Whether this key is read by iosd-sandboxd alone. */
bool osd_pool_file_is_sandbox_key(const char *key);

/* Cut the next `key=value` from a line; false: there is none.  *ret_value is NULL if it has no '='. */
bool osd_pool_file_next(char **line, char **ret_key, char **ret_value);

#endif
