/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ration.c -- see ration.h. */
#include "base/ration.h"

bool osd_ration_take(struct osd_ration *ration, uint64_t now_usec, unsigned *ret_withheld)
{
	uint64_t period = now_usec / ration->period_usec;
	bool granted;

	*ret_withheld = 0;
	osd_lock(&ration->lock);
	if (ration->period != period) {
		ration->period = period;
		ration->used = 0;
	}
	granted = ration->used < ration->most;
	if (granted) {
		ration->used++;
		*ret_withheld = ration->withheld;
		ration->withheld = 0;
	} else {
		ration->withheld++;
	}
	osd_unlock(&ration->lock);
	return granted;
}
