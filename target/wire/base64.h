/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base64.h -- Base64 (RFC 4648, section 4), as keys and signatures of OpenSSH are written. */
#ifndef OSD_WIRE_BASE64_H
#define OSD_WIRE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the longest text that encodes length bytes, with its zero byte. */
#define OSD_BASE64_SIZE(length) (((length) + 2) / 3 * 4 + 1)

/* Decodes text with its padding.  False: a character is not of the alphabet, the padding is wrong, bits that nobody
 * reads are set, or capacity is too small.  bytes may be what text points to. */
bool osd_base64_decode(const uint8_t *text, size_t length, uint8_t *bytes, size_t capacity,
		       size_t *ret_length);
/* Writes the text without padding, and a zero byte. */
void osd_base64_encode(const uint8_t *bytes, size_t length, char *text);

#endif
