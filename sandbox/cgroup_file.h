/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup_file.h -- opens a control group, and writes its files.  Results: 0 or -errno. */
#ifndef OSD_SANDBOX_CGROUP_FILE_H
#define OSD_SANDBOX_CGROUP_FILE_H

#include <stdint.h>

/* Opens the folder of a group. */
int osd_cgroup_open(const char *path);
int osd_cgroup_write(int directory, const char *file, const char *text);
int osd_cgroup_write_number(int directory, const char *file, uint64_t number);

#endif
