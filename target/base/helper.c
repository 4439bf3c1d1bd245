/* SPDX-License-Identifier: GPL-2.0-or-later */
/* helper.c -- see helper.h. */
#include "base/helper.h"

#include "base/thread.h"

void osd_helper_init(struct osd_helper *helper, const char *name, void (*work)(void *arg),
		     void *arg)
{
	*helper = (struct osd_helper){.name = name, .work = work, .arg = arg};
	osd_lock_init(&helper->lock, OSD_RANK_HELPER);
}

static void *run(void *arg)
{
	struct osd_helper *helper = arg;

	osd_lock(&helper->lock);
	while (helper->called && !helper->stopped) {
		helper->called = false;
		osd_unlock(&helper->lock);
		helper->work(helper->arg);
		osd_lock(&helper->lock);
	}
	helper->at_work = false;
	osd_unlock(&helper->lock);
	return NULL;
}

/* Called under lock while no work is done: joins the thread that has ended. */
static void join(struct osd_helper *helper)
{
	if (helper->to_join)
		pthread_join(helper->thread, NULL);
	helper->to_join = false;
}

bool osd_helper_call(struct osd_helper *helper)
{
	bool good = true;

	osd_lock(&helper->lock);
	helper->called = true;
	if (!helper->at_work && !helper->stopped) {
		join(helper);
		good = osd_thread_start(&helper->thread, helper->name, run, helper);
		helper->at_work = helper->to_join = good;
	}
	osd_unlock(&helper->lock);
	return good;
}

void osd_helper_stop(struct osd_helper *helper)
{
	bool to_join;

	osd_lock(&helper->lock);
	helper->stopped = true;
	to_join = helper->to_join;
	helper->to_join = false;
	osd_unlock(&helper->lock);
	if (to_join)
		pthread_join(helper->thread, NULL);
}

void osd_helper_release(struct osd_helper *helper)
{
	osd_lock_destroy(&helper->lock);
}
