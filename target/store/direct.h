/* SPDX-License-Identifier: GPL-2.0-or-later */
/* direct.h -- reads and writes past the page cache.  The kernel wants whole blocks, at offsets and in
 * memory that are multiples of them: reads are widened, in memory of our own where the caller's does
 * not suit.  The blocks of which a write has only a part go through the page cache, which
 * puts them together with what is there under the kernel's lock of the file, and are on the device
 * before the write ends; so a write never reaches behind its last byte.
 *
 * Any thread; as with the files themselves the object layer orders what overlaps. */
#ifndef OSD_STORE_DIRECT_H
#define OSD_STORE_DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the file system of the directory can, tried on a file without a name. */
bool osd_direct_works(int directory_fd);
/* Whether the kernel takes it as it is. */
bool osd_direct_fits(uint64_t offset, const void *bytes, size_t length);
/* direct_fd: of the same file as fd, opened with O_DIRECT.  Both return an errno; read: fewer bytes
 * than asked only at the end of the file. */
int osd_direct_read(int direct_fd, uint64_t offset, void *buffer, size_t length, size_t *ret_read);
int osd_direct_write(int direct_fd, int fd, uint64_t offset, const void *bytes, size_t length);

#endif
