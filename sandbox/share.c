/* SPDX-License-Identifier: GPL-2.0-or-later */
/* share.c -- processor time of all sandboxes together.  Ordinary commands come first, so sandboxes are an
 * idle group: another thread that wakes up preempts them at once.  But an idle group gets next to nothing
 * while other programs of the host compute.  So while sandboxes or zygotes get less than their least
 * share (--cpu-share), the group has a weight instead.
 *
 * The target reports the part of the needed time that running scripts get (SHARE, a few times a second,
 * only when it is small; 0 while the end of a sandbox is late).  This file watches what zygotes are
 * asked, and zygotes that start. */
#include "base/clock.h"
#include "base/util.h"
#include "daemon.h"

#define HOLD_USEC   UINT64_C(3000000) /* time that the weight stays after the last reason for it */
#define RAISE_USEC  UINT64_C(200000)  /* time between two raises, in which the last one shows its effect */
/* a late answer of a zygote: it takes a hundredth of this unless the zygote starves */
#define LATE_USEC   UINT64_C(100000)
#define RAISES_MOST 6u

static void hold(struct osd_daemon *daemon, uint64_t now)
{
	daemon->share_until_usec = now + HOLD_USEC;
	if (daemon->share_raises)
		return;
	daemon->share_raises = 1;
	daemon->share_raised_usec = now;
	osd_cgroups_weigh(&daemon->cgroups, daemon->cpu_share, 1);
}

void osd_share_init(struct osd_daemon *daemon)
{
	if (daemon->cpu_share)
		hold(daemon, osd_monotonic_usec()); /* the first zygote is about to start */
}

void osd_share_heed(struct osd_daemon *daemon, uint64_t per_mille)
{
	uint64_t now = osd_monotonic_usec();
	bool starved = per_mille < 10 * (uint64_t)daemon->cpu_share;

	if (!daemon->cpu_share || (!starved && !daemon->share_raises))
		return;
	if (!starved || !daemon->share_raises || daemon->share_raises == RAISES_MOST ||
	    now < daemon->share_raised_usec + RAISE_USEC) {
		hold(daemon, now);
		return;
	}
	/* Doubles the weight: more than four competitors compute. */
	daemon->share_until_usec = now + HOLD_USEC;
	daemon->share_raised_usec = now;
	osd_cgroups_weigh(&daemon->cgroups, daemon->cpu_share, 1u << daemon->share_raises++);
}

/* Whether a zygote is starting, or late with a sandbox or its scratch folder.  *ret_next: the time at which
 * one will be late. */
static bool is_late(const struct osd_daemon *daemon, uint64_t now, uint64_t *ret_next)
{
	for (unsigned i = 0; i < OSD_POOLS_MAX * OSD_ZYGOTES; i++) {
		const struct osd_zygote *zygote =
			&daemon->pools[i / OSD_ZYGOTES].zygotes[i % OSD_ZYGOTES];

		if (zygote->pid && !zygote->ready)
			return true;
	}
	for (unsigned i = 0; i < daemon->max; i++) {
		const struct osd_slot *sandbox = &daemon->sandboxes[i];

		if (sandbox->state != OSD_SLOT_STARTING && !sandbox->resizing)
			continue;
		if (now >= sandbox->asked_usec + LATE_USEC)
			return true;
		*ret_next = OSD_MIN(*ret_next, sandbox->asked_usec + LATE_USEC);
	}
	return false;
}

int osd_share_wait(struct osd_daemon *daemon)
{
	uint64_t now = osd_monotonic_usec(), next = OSD_NEVER;

	if (!daemon->cpu_share)
		return -1;
	if (is_late(daemon, now, &next))
		hold(daemon, now);
	if (daemon->share_raises && now >= daemon->share_until_usec) {
		daemon->share_raises = 0;
		osd_cgroups_weigh(&daemon->cgroups, 0, 1);
	}
	if (daemon->share_raises)
		next = OSD_MIN(next, daemon->share_until_usec);
	return osd_msec_until(next);
}
