/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dh.h -- Diffie-Hellman in groups 14 and 15 of RFC 3526, for SET MASTER KEY.  Values are big-endian, as long
 * as the group's prime. */
#ifndef OSD_SECURITY_DH_H
#define OSD_SECURITY_DH_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define OSD_DH_MAX	384 /* bytes of the longest value */
#define OSD_DH_EXPONENT 64  /* bytes of our exponents, which may be used once */

/* Bytes of the group's values; 0: no such group. */
size_t osd_dh_length(unsigned group);
/* ours = 2^exponent mod p, shared = theirs^exponent mod p.  OSD_E_PARAM_FIELD: theirs is 0, 1, p - 1 or
 * more, which would give the shared secret away. */
enum osd_status osd_dh_answer(unsigned group, const uint8_t *exponent, size_t exponent_length,
			      const uint8_t *theirs, uint8_t *ours, uint8_t *shared);

#endif
