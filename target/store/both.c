/* SPDX-License-Identifier: GPL-2.0-or-later */
/* both.c -- see both.h.  A ring is used by one call at a time.  Idle rings are in slots; one atomic
 * exchange takes a ring, and one puts it back. */
#include "store/both.h"

#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/thread.h"
#include "store/freeze.h"

#define RINGS	     16u /* kept; further concurrent calls make their own */
#define RING_ENTRIES 2u
#define RING_BYTES   (1u << 30) /* the largest operation of a ring */
#define HELPERS	     16u

/* On the stack of the thread that waits for the call. */
struct call {
	struct osd_data_op *op;
	struct call *next;	 /* in the queue */
	bool taken, done;	 /* under lock */
	pthread_cond_t finished; /* done, under lock */
};

struct osd_both {
	_Atomic(struct io_uring *) rings[RINGS]; /* owned; NULL: empty, or in use */
	_Atomic bool no_rings;
	_Atomic uint64_t by_rings, by_helpers;
	struct osd_lock lock;
	pthread_cond_t work;
	struct call *first, **last; /* waiting for a helper; under lock */
	unsigned waiting, idle;	    /* calls, helpers; under lock */
	unsigned helper_count;	    /* under lock */
	bool stop;		    /* under lock */
	pthread_t helpers[HELPERS];
};

/* Does the rest of the operation in the calling thread. */
static void perform(struct osd_data_op *op)
{
	if (!op->file)
		return;
	switch (op->act) {
	case OSD_DATA_READ:
		op->done = 0;
		op->status = osd_data_read(op->file, op->offset, op->buffer, op->length, op->flags,
					   &op->done);
		break;
	case OSD_DATA_WRITE:
		op->status = osd_data_write(op->file, op->offset, op->bytes, op->length);
		break;
	case OSD_DATA_SYNC:
		op->status = osd_data_sync(op->file);
		break;
	}
}

/* ---- rings ------------------------------------------------------------------------------- */

static void ring_free(struct io_uring *ring)
{
	if (!ring)
		return;
	io_uring_queue_exit(ring);
	free(ring);
}

static bool ring_can(struct io_uring *ring)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool can = probe && io_uring_opcode_supported(probe, IORING_OP_READ) &&
		   io_uring_opcode_supported(probe, IORING_OP_WRITE) &&
		   io_uring_opcode_supported(probe, IORING_OP_FSYNC);

	io_uring_free_probe(probe);
	return can;
}

/* NULL: failed now, or this kernel has no io_uring, which is remembered. */
static struct io_uring *ring_new(struct osd_both *both)
{
	struct io_uring *ring = malloc(sizeof(*ring));
	int error = ring ? -io_uring_queue_init(RING_ENTRIES, ring, 0) : ENOMEM;

	if (!error && ring_can(ring))
		return ring;
	if (!error)
		io_uring_queue_exit(ring);
	free(ring);
	if (error != ENOMEM && error != EAGAIN && error != EMFILE && error != ENFILE)
		atomic_store(&both->no_rings, true);
	return NULL;
}

static struct io_uring *ring_take(struct osd_both *both)
{
	for (size_t i = 0; i < RINGS; i++) {
		struct io_uring *ring = atomic_exchange(&both->rings[i], NULL);

		if (ring)
			return ring;
	}
	return ring_new(both);
}

static void ring_put(struct osd_both *both, struct io_uring *ring)
{
	for (size_t i = 0; i < RINGS; i++) {
		struct io_uring *empty = NULL;

		if (atomic_compare_exchange_strong(&both->rings[i], &empty, ring))
			return;
	}
	ring_free(ring);
}

/* The descriptor for the kernel, or -1: the file's own store must do the operation. */
static int plain_fd(const struct osd_data_op *op)
{
	const struct osd_data_ops *ops = op->file->data->ops;

	if (!ops->plain_fd || op->length > RING_BYTES || osd_freeze_holds(op->file->data->freeze))
		return -1;
	if (op->act == OSD_DATA_SYNC)
		return ops->plain_fd(op->file, 0, NULL, 0);
	return ops->plain_fd(op->file, op->offset,
			     op->act == OSD_DATA_READ ? op->buffer : op->bytes, op->length);
}

static bool ring_start(struct io_uring *ring, const struct osd_data_op *op, int fd)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	switch (op->act) {
	case OSD_DATA_READ:
		io_uring_prep_read(sqe, fd, op->buffer, (unsigned)op->length, op->offset);
		break;
	case OSD_DATA_WRITE:
		io_uring_prep_write(sqe, fd, op->bytes, (unsigned)op->length, op->offset);
		break;
	case OSD_DATA_SYNC:
		io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
		break;
	}
	return io_uring_submit(ring) == 1;
}

/* Waits until the entry arrives, whatever happens: until then the kernel uses the memory. */
static int ring_wait(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int result;

	while (io_uring_wait_cqe(ring, &cqe) < 0)
		;
	result = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return result;
}

/* The kernel did all of the operation, a part of it, or nothing.  The store does the rest, and
 * counts it. */
static void ring_ended(struct osd_data_op *op, int result)
{
	struct osd_data_op rest = *op;
	bool whole =
		op->act == OSD_DATA_SYNC ? result == 0 : result > 0 && (size_t)result == op->length;
	size_t moved = op->act == OSD_DATA_SYNC || result < 0 ? 0 : (size_t)result;

	if (whole || (result < 0 && result != -EAGAIN && result != -EINTR)) {
		op->done = moved;
		op->status = osd_status_from_errno(result < 0 ? -result : 0);
		if (op->act != OSD_DATA_SYNC)
			osd_data_note(op->file->data, op->act == OSD_DATA_WRITE, op->status);
		return;
	}
	if (op->act == OSD_DATA_READ)
		rest.buffer = (uint8_t *)op->buffer + moved;
	else if (op->act == OSD_DATA_WRITE)
		rest.bytes = (const uint8_t *)op->bytes + moved;
	rest.offset += moved;
	rest.length -= moved;
	perform(&rest);
	op->status = rest.status;
	op->done = rest.status == OSD_OK ? moved + rest.done : 0;
}

static bool by_ring(struct osd_both *both, struct osd_data_op *here, struct osd_data_op *there)
{
	int fd = atomic_load(&both->no_rings) ? -1 : plain_fd(there);
	struct io_uring *ring = fd < 0 ? NULL : ring_take(both);

	if (!ring)
		return false;
	if (!ring_start(ring, there, fd)) {
		ring_free(ring); /* the kernel had not begun any of it */
		return false;
	}
	perform(here);
	ring_ended(there, ring_wait(ring));
	ring_put(both, ring);
	atomic_fetch_add_explicit(&both->by_rings, 1, memory_order_relaxed);
	return true;
}

/* ---- helpers ----------------------------------------------------------------------------- */

static void leave_queue(struct osd_both *both, struct call *call)
{
	struct call **at = &both->first;

	osd_assert_held(&both->lock);
	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	if (both->last == &call->next)
		both->last = at;
	both->waiting--;
}

static void *helper_main(void *arg)
{
	struct osd_both *both = arg;

	osd_lock(&both->lock);
	while (!both->stop) {
		struct call *call = both->first;

		if (!call) {
			both->idle++;
			osd_cond_wait(&both->work, &both->lock);
			both->idle--;
			continue;
		}
		leave_queue(both, call);
		call->taken = true;
		osd_unlock(&both->lock);
		perform(call->op);
		osd_lock(&both->lock);
		call->done = true;
		pthread_cond_signal(&call->finished);
	}
	osd_unlock(&both->lock);
	return NULL;
}

static void queue(struct osd_both *both, struct call *call)
{
	osd_lock(&both->lock);
	*both->last = call;
	both->last = &call->next;
	both->waiting++;
	if (both->waiting > both->idle && both->helper_count < HELPERS &&
	    osd_thread_start(&both->helpers[both->helper_count], "iosd-both", helper_main, both))
		both->helper_count++;
	pthread_cond_signal(&both->work);
	osd_unlock(&both->lock);
}

/* The caller itself does the operations that no helper has begun meanwhile. */
static void by_helper(struct osd_both *both, struct osd_data_op *here, struct osd_data_op *there)
{
	struct call call = {.op = there};

	pthread_cond_init(&call.finished, NULL);
	queue(both, &call);
	perform(here);
	osd_lock(&both->lock);
	if (!call.taken)
		leave_queue(both, &call);
	while (call.taken && !call.done)
		osd_cond_wait(&call.finished, &both->lock);
	osd_unlock(&both->lock);
	pthread_cond_destroy(&call.finished);
	if (!call.taken)
		perform(there);
	atomic_fetch_add_explicit(&both->by_helpers, 1, memory_order_relaxed);
}

/* ---- both -------------------------------------------------------------------------------- */

enum osd_status osd_both_open(bool rings, struct osd_both **ret_both)
{
	struct osd_both *both = calloc(1, sizeof(*both));

	if (!both)
		return OSD_E_NO_MEMORY;
	atomic_store(&both->no_rings, !rings);
	both->last = &both->first;
	osd_lock_init(&both->lock, OSD_RANK_BOTH);
	pthread_cond_init(&both->work, NULL);
	*ret_both = both;
	return OSD_OK;
}

void osd_both_close(struct osd_both *both)
{
	if (!both)
		return;
	osd_lock(&both->lock);
	both->stop = true;
	pthread_cond_broadcast(&both->work);
	osd_unlock(&both->lock);
	for (unsigned i = 0; i < both->helper_count; i++)
		pthread_join(both->helpers[i], NULL);
	for (size_t i = 0; i < RINGS; i++)
		ring_free(atomic_load(&both->rings[i]));
	pthread_cond_destroy(&both->work);
	osd_lock_destroy(&both->lock);
	free(both);
}

/* Data in memory is read faster than a helper can be woken up. */
static bool is_read_from_memory(struct osd_data_op *op)
{
	if (op->act != OSD_DATA_READ)
		return false;
	op->done = 0;
	op->status = osd_data_read(op->file, op->offset, op->buffer, op->length,
				   OSD_DATA_READ_NOWAIT, &op->done);
	return op->status != OSD_E_WOULD_BLOCK;
}

void osd_data_both(struct osd_both *both, struct osd_data_op *here, struct osd_data_op *there)
{
	if (!both || !here->file || !there->file) {
		perform(here);
		perform(there);
	} else if (is_read_from_memory(there)) {
		perform(here);
	} else if (!by_ring(both, here, there)) {
		by_helper(both, here, there);
	}
}

void osd_both_counts(const struct osd_both *both, uint64_t *ret_rings, uint64_t *ret_helpers)
{
	*ret_rings = atomic_load_explicit(&both->by_rings, memory_order_relaxed);
	*ret_helpers = atomic_load_explicit(&both->by_helpers, memory_order_relaxed);
}
