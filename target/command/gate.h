/* SPDX-License-Identifier: GPL-2.0-or-later */
/* gate.h -- lets any number of commands in, or one that must be alone (FORMAT OSD).
 *
 * Who wants to be alone closes the gate and waits until nobody is inside; who comes meanwhile is
 * refused, not kept waiting (02/04/04).  Parked commands are outside: they leave when they park,
 * and return later. */
#ifndef OSD_COMMAND_GATE_H
#define OSD_COMMAND_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"
#include "base/status.h"

/* active and closed are atomic.  "Enter, then look whether it is closed" against "close, then
 * look whether anyone is inside", both sequentially consistent, makes sure that not both sides
 * go on.  The lock is for waiting only. */
struct osd_gate {
	size_t active;
	bool closed;
	struct osd_lock lock;
	pthread_cond_t changed;
};

void osd_gate_init(struct osd_gate *gate);
void osd_gate_release(struct osd_gate *gate);
/* OSD_OK: inside until osd_gate_leave; OSD_E_NOT_READY: closed. */
enum osd_status osd_gate_enter(struct osd_gate *gate);
void osd_gate_leave(struct osd_gate *gate);
/* Like enter, but waits while the gate is closed. */
void osd_gate_return(struct osd_gate *gate);
/* OSD_OK: nobody else comes in; OSD_E_NOT_READY: somebody else has closed it. */
enum osd_status osd_gate_close(struct osd_gate *gate);
/* After osd_gate_close: until nobody is inside. */
void osd_gate_drain(struct osd_gate *gate);
void osd_gate_open(struct osd_gate *gate);

#endif
