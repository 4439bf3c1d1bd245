/* SPDX-License-Identifier: GPL-2.0-or-later */
/* secret.c -- see secret.h. */
#include "security/secret.h"

#include <string.h>
#include <sys/mman.h>

void *osd_secret_alloc(size_t size)
{
	void *secret = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (secret == MAP_FAILED)
		return NULL;
	if (madvise(secret, size, MADV_DONTDUMP) != 0 ||
	    madvise(secret, size, MADV_WIPEONFORK) != 0) {
		munmap(secret, size);
		return NULL;
	}
	(void)mlock(secret, size);
	return secret;
}

void osd_secret_free(void *secret, size_t size)
{
	if (!secret)
		return;
	explicit_bzero(secret, size);
	munmap(secret, size);
}
