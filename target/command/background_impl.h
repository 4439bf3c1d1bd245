/* SPDX-License-Identifier: GPL-2.0-or-later */
/* background_impl.h -- background commands from inside: for background.c, which runs them,
 * background_recover.c, which finds those of the last run in the store, and tracked_run.c, which makes them. */
#ifndef OSD_COMMAND_BACKGROUND_IMPL_H
#define OSD_COMMAND_BACKGROUND_IMPL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/helper.h"
#include "base/lock.h"
#include "base/places.h"
#include "base/timer.h"
#include "command/background.h"
#include "command/turns.h"

struct osd_background {
	struct osd_turn turn; /* under lock */
	struct osd_backgrounds *all;
	struct osd_place_holder *holder; /* the owner of its place; NULL: the target itself */
	struct osd_request request;
	struct osd_command_context ctx;
	struct osd_tracked *tracked; /* owned */
	size_t data_out_length;
	uint8_t bytes[]; /* CDB, Data-Out: as kept in the store */
};

struct osd_backgrounds {
	struct osd_objects *objects;
	struct osd_background_ops ops; /* constant */
	void *dispatcher;
	struct osd_helper helper; /* does the steps */
	struct osd_timer retry;	  /* calls it */
	struct osd_lock lock;	  /* never held over a step */
	pthread_cond_t changed;
	struct osd_turns turns;		/* under lock; commands that wait for their next step */
	struct osd_background *running; /* under lock */
	struct osd_places places;	/* under lock */
	bool recovered, stopping;	/* under lock */
};

/* Makes a background command of the target itself, from the bytes of a CDB and its Data-Out.  It takes a place even if
 * none is free. */
enum osd_status osd_background_make_own(struct osd_backgrounds *all, const uint8_t *cdb,
					const uint8_t *data_out, size_t length,
					struct osd_background **ret_background);
/* Starts the thread, or makes it look for turns once more. */
void osd_backgrounds_call(struct osd_backgrounds *all);

#endif
