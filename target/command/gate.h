/* SPDX-License-Identifier: GPL-2.0-or-later */
/* gate.h -- admits any number of commands, or one that must be alone (FORMAT OSD).  That one closes
 * the gate and waits until no command is inside.  Commands that arrive meanwhile are refused, not
 * delayed (02/04/04).  Parked commands are outside: they leave when they park, and return later. */
#ifndef OSD_COMMAND_GATE_H
#define OSD_COMMAND_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"
#include "base/status.h"

/* active and closed are atomic.  One side enters and then checks closed; the other side closes and
 * then checks active.  All four accesses are sequentially consistent, so at least one side sees the
 * other.  The lock is for waiting only. */
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
/* OSD_OK: no other command can enter; OSD_E_NOT_READY: another thread has closed it. */
enum osd_status osd_gate_close(struct osd_gate *gate);
/* After osd_gate_close: until nobody is inside. */
void osd_gate_drain(struct osd_gate *gate);
void osd_gate_open(struct osd_gate *gate);

#endif
