/* SPDX-License-Identifier: GPL-2.0-or-later */
/* crc32c.h -- CRC-32C (Castagnoli), the checksum of iSCSI digests, of blocks of data files, and of
 * objects as reported to clients.  Uses the processor's instructions if it has them, else tables.
 * Any thread. */
#ifndef OSD_BASE_CRC32C_H
#define OSD_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define OSD_CRC32C_BLOCK 4096u

/* The checksum of bytes that follow others with checksum crc; 0: none. */
uint32_t osd_crc32c(uint32_t crc, const void *bytes, size_t length);
/* The checksums of count consecutive blocks.  This is faster than one call per block: it uses wide
 * multiplication, or computes several blocks at a time.  A single block would wait for the result of
 * each instruction, which takes three times as long as an instruction slot. */
void osd_crc32c_blocks(const void *bytes, size_t count, uint32_t *ret_crcs);
/* The same without wide multiplication, and the same by tables, on every processor: the tests
 * compare the results. */
void osd_crc32c_blocks_narrow(const void *bytes, size_t count, uint32_t *ret_crcs);
uint32_t osd_crc32c_tables(uint32_t crc, const void *bytes, size_t length);

#endif
