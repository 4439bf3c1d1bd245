/* SPDX-License-Identifier: GPL-2.0-or-later */
/* secret.h -- memory for keys: left out of core files, not inherited by children, wiped when it is
 * freed.  It stays out of the swap space if the process may lock that much.  Any thread. */
#ifndef OSD_SECURITY_SECRET_H
#define OSD_SECURITY_SECRET_H

#include <stddef.h>

/* Zeros, whole pages.  NULL: no memory. */
void *osd_secret_alloc(size_t size);
/* NULL is fine. */
void osd_secret_free(void *secret, size_t size);

#endif
