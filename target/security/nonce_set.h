/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nonce_set.h -- a bounded set of nonces.  When it forgets nonces it returns spans that cover their
 * times.  Used by one thread at a time. */
#ifndef OSD_SECURITY_NONCE_SET_H
#define OSD_SECURITY_NONCE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "security/spans.h"

#define OSD_NONCE_SET_MAX (3u << 15) /* capacity; then the oldest quarter goes */

struct osd_nonce_entry {
	uint64_t time_plus_one; /* 0: empty */
	uint64_t random;
};

/* All zeros: empty. */
struct osd_nonce_set {
	struct osd_nonce_entry *slots; /* owned */
	size_t capacity, count;
	uint64_t salt;
};

void osd_nonce_set_release(struct osd_nonce_set *set);
bool osd_nonce_set_has(const struct osd_nonce_set *set, uint64_t time, uint64_t random);
/* The nonce must not be in the set.  forgotten gets spans that cover, for each forgotten nonce, its
 * time and window_ms before it. */
enum osd_status osd_nonce_set_add(struct osd_nonce_set *set, uint64_t time, uint64_t random,
				  uint64_t window_ms, struct osd_nonce_spans *forgotten);
/* Forgets all nonces of times up to this one. */
enum osd_status osd_nonce_set_forget(struct osd_nonce_set *set, uint64_t time, uint64_t window_ms,
				     struct osd_nonce_spans *forgotten);

#endif
