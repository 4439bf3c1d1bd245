/* SPDX-License-Identifier: GPL-2.0-or-later */
/* direct.h -- reads and writes that bypass the page cache.  The kernel requires whole blocks, at
 * aligned offsets and in aligned memory.  So reads are widened, through a buffer of our own if the
 * caller's memory is not aligned.  Partial blocks of a write go through the page cache, which
 * merges them with the present contents under the kernel's lock of the file.  They are on the
 * device before the write ends, and a write never extends beyond its last byte.  Any thread; as for
 * the files themselves, the object layer orders overlapping calls. */
#ifndef OSD_STORE_DIRECT_H
#define OSD_STORE_DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the directory's file system supports it, as tried on a file without a name. */
bool osd_direct_works(int directory_fd);
/* Whether the kernel accepts the range and memory as they are. */
bool osd_direct_fits(uint64_t offset, const void *bytes, size_t length);
/* direct_fd: opened with O_DIRECT on the same file as fd.  Both return an errno.  A read returns
 * fewer bytes than requested only at the end of the file. */
int osd_direct_read(int direct_fd, uint64_t offset, void *buffer, size_t length, size_t *ret_read);
int osd_direct_write(int direct_fd, int fd, uint64_t offset, const void *bytes, size_t length);
/* Writes all of it by pwrite(2).  Returns an errno. */
int osd_pwrite_all(int fd, uint64_t offset, const uint8_t *bytes, size_t length);

#endif
