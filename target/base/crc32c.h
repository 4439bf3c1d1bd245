/* SPDX-License-Identifier: GPL-2.0-or-later */
/* crc32c.h -- CRC-32C (Castagnoli), the checksum of iSCSI digests, of the blocks of data files and of what a
 * client is told of an object.  The processor's instructions do it where it has them, else tables.  Any
 * thread. */
#ifndef OSD_BASE_CRC32C_H
#define OSD_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define OSD_CRC32C_BLOCK 4096u

/* Of bytes that follow others whose checksum is crc; 0: none. */
uint32_t osd_crc32c(uint32_t crc, const void *bytes, size_t length);
/* Of each of count blocks one after the other, which is faster than one call for each: by wide multiplication, or
 * several at a time, because one alone waits for each result three times as long as the next could begin. */
void osd_crc32c_blocks(const void *bytes, size_t count, uint32_t *ret_crcs);
/* Without wide multiplication, and by tables, on every processor: what the tests compare with. */
void osd_crc32c_blocks_narrow(const void *bytes, size_t count, uint32_t *ret_crcs);
uint32_t osd_crc32c_tables(uint32_t crc, const void *bytes, size_t length);

#endif
