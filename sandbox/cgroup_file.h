/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup_file.h -- writes the files of a control group, which has been opened.  Results: 0 or -errno. */
#ifndef OSD_SANDBOX_CGROUP_FILE_H
#define OSD_SANDBOX_CGROUP_FILE_H

#include <stdint.h>

int osd_cgroup_write(int directory, const char *file, const char *text);
int osd_cgroup_write_number(int directory, const char *file, uint64_t number);

#endif
