/* SPDX-License-Identifier: GPL-2.0-or-later */
/* gate.c -- see gate.h. */
#include "command/gate.h"

#include "base/lock.h"

void osd_gate_init(struct osd_gate *gate)
{
	gate->active = 0;
	gate->closed = false;
	osd_lock_init(&gate->lock, OSD_RANK_GATE);
	pthread_cond_init(&gate->changed, NULL);
}

void osd_gate_release(struct osd_gate *gate)
{
	pthread_cond_destroy(&gate->changed);
	osd_lock_destroy(&gate->lock);
}

static bool is_closed(struct osd_gate *gate)
{
	return __atomic_load_n(&gate->closed, __ATOMIC_SEQ_CST);
}

void osd_gate_leave(struct osd_gate *gate)
{
	__atomic_sub_fetch(&gate->active, 1, __ATOMIC_SEQ_CST);
	if (!is_closed(gate))
		return;
	osd_lock(&gate->lock);
	pthread_cond_broadcast(&gate->changed);
	osd_unlock(&gate->lock);
}

enum osd_status osd_gate_enter(struct osd_gate *gate)
{
	__atomic_add_fetch(&gate->active, 1, __ATOMIC_SEQ_CST);
	if (!is_closed(gate))
		return OSD_OK;
	osd_gate_leave(gate);
	return OSD_E_NOT_READY;
}

void osd_gate_return(struct osd_gate *gate)
{
	while (osd_gate_enter(gate) != OSD_OK) {
		osd_lock(&gate->lock);
		while (is_closed(gate))
			osd_cond_wait(&gate->changed, &gate->lock);
		osd_unlock(&gate->lock);
	}
}

enum osd_status osd_gate_close(struct osd_gate *gate)
{
	return __atomic_exchange_n(&gate->closed, true, __ATOMIC_SEQ_CST) ? OSD_E_NOT_READY
									  : OSD_OK;
}

void osd_gate_drain(struct osd_gate *gate)
{
	osd_lock(&gate->lock);
	while (__atomic_load_n(&gate->active, __ATOMIC_SEQ_CST) != 0)
		osd_cond_wait(&gate->changed, &gate->lock);
	osd_unlock(&gate->lock);
}

void osd_gate_open(struct osd_gate *gate)
{
	osd_lock(&gate->lock);
	__atomic_store_n(&gate->closed, false, __ATOMIC_SEQ_CST);
	pthread_cond_broadcast(&gate->changed);
	osd_unlock(&gate->lock);
}
