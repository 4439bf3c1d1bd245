/* SPDX-License-Identifier: GPL-2.0-or-later */
/* shm_wait.h -- a sync word in memory shared by two processes: post, wait, kick.
 *
 * One side posts, one side waits, per line.  The waiter remembers the last sequence number it
 * has dealt with and waits until the line shows another.  A system call is made only to sleep
 * and to wake a sleeper.  Before it sleeps the waiter spins, usually for at most OSD_SHM_SPIN_NSEC.  It
 * does so only if the poster last ran on another CPU.  Spinning on the poster's own CPU only keeps the
 * poster from running.  Nobody ever yields (measured: a yield costs up to a scheduler slice on a
 * busy machine).
 *
 * Why no wake-up is lost: the waiter sets `waiting`, then loads seq.  The poster adds to seq,
 * then loads `waiting`.  All four are sequentially consistent, so at least one of the two sees
 * the other.  A poster that sees a stale `waiting` makes one needless system call, nothing
 * worse.
 *
 * Trust: the other side can write every field, and can move a sleeping waiter to another word
 * (FUTEX_REQUEUE), so that no wake-up reaches it any more.  Therefore no sleep is longer than
 * OSD_SHM_SLEEP_NSEC: after it the waiter inspects the line and *dead, and sleeps again.  The worst
 * the other side can do is to delay a waiter by that, or to wake it for nothing: what a post means
 * is never taken from the line.
 *
 * Header only, no state, any thread.  Used by target/exec and by the sandbox. */
#ifndef OSD_BASE_SHM_WAIT_H
#define OSD_BASE_SHM_WAIT_H

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define OSD_SHM_SPIN_NSEC 20000
#define OSD_SHM_ROUSED_NSEC 60000 /* more than from osd_shm_rouse to the post, also of code that no cache has */
#define OSD_SHM_AWAKE_NSEC  40000 /* until a waiter is awake after a post, most likely, if a processor is idle */
#define OSD_SHM_FOREVER   UINT64_MAX /* time-out: none; only a post or *dead ends the wait */
/* The longest sleep inside any wait.  An idle waiter costs ten wake-ups a second at most. */
#define OSD_SHM_SLEEP_NSEC 100000000

/* One direction's sync word, on a cache line of its own. */
struct osd_shm_line {
	_Alignas(64) _Atomic uint32_t seq;
	_Atomic uint32_t waiting;
	_Atomic uint32_t cpu; /* CPU the poster last posted from, + 1; 0: has not posted yet */
};

enum osd_shm_outcome {
	OSD_SHM_POSTED,  /* *seen is now the line's sequence number */
	OSD_SHM_TIMEOUT, /* nothing came in time */
	OSD_SHM_DEAD,    /* *dead was set (see osd_shm_kick) */
};

static inline void osd_shm_relax_(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield" ::: "memory"); /* a hint to the CPU core, not sched_yield */
#endif
}

static inline uint32_t osd_shm_cpu_(void)
{
	return (uint32_t)(sched_getcpu() + 1);
}

/* Publish what was written before the call, and wake the waiter if it sleeps. */
static inline void osd_shm_post(struct osd_shm_line *line)
{
	atomic_store_explicit(&line->cpu, osd_shm_cpu_(), memory_order_relaxed);
	atomic_fetch_add(&line->seq, 1);
	if (atomic_load(&line->waiting))
		syscall(SYS_futex, &line->seq, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* A post follows soon, most likely: a waiter in osd_shm_rest wakes up for it now.  One that does not sleep is not
 * disturbed. */
static inline void osd_shm_rouse(struct osd_shm_line *line)
{
	if (atomic_load(&line->waiting))
		syscall(SYS_futex, &line->seq, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* End the other thread's wait on this line: set its *dead flag first, then kick. */
static inline void osd_shm_kick(struct osd_shm_line *line)
{
	atomic_fetch_add(&line->seq, 1);
	syscall(SYS_futex, &line->seq, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static inline bool osd_shm_changed_(struct osd_shm_line *line, uint32_t *seen)
{
	uint32_t now = atomic_load(&line->seq);

	if (now == *seen)
		return false;
	*seen = now;
	return true;
}

static inline bool osd_shm_spin_anyway_(struct osd_shm_line *line, uint32_t *seen, uint64_t nsec)
{
	uint64_t end = osd_monotonic_nsec() + nsec;

	do {
		for (int i = 0; i < 32; i++) {
			if (osd_shm_changed_(line, seen))
				return true;
			osd_shm_relax_();
		}
	} while (osd_monotonic_nsec() < end);
	return false;
}

/* True when a post came within the spin; false at once when spinning cannot help. */
static inline bool osd_shm_spin_(struct osd_shm_line *line, uint32_t *seen, uint64_t nsec)
{
	uint32_t peer = atomic_load_explicit(&line->cpu, memory_order_relaxed);

	return peer != 0 && peer != osd_shm_cpu_() && osd_shm_spin_anyway_(line, seen, nsec);
}

/* Sleep until a post, the time-out or *dead; no spinning.  For waits expected to be long. */
static inline enum osd_shm_outcome osd_shm_sleep(struct osd_shm_line *line, uint32_t *seen,
						 uint64_t timeout_usec, const _Atomic bool *dead)
{
	bool forever = timeout_usec >= UINT64_MAX / 2000;
	uint64_t deadline = forever ? 0 : osd_monotonic_nsec() + timeout_usec * 1000;
	enum osd_shm_outcome outcome;

	atomic_store(&line->waiting, 1);
	for (;;) {
		struct timespec wait = {.tv_nsec = OSD_SHM_SLEEP_NSEC};

		if (dead && atomic_load(dead)) {
			outcome = OSD_SHM_DEAD;
			break;
		}
		if (osd_shm_changed_(line, seen)) {
			outcome = OSD_SHM_POSTED;
			break;
		}
		if (!forever) {
			uint64_t now = osd_monotonic_nsec();

			if (now >= deadline) {
				outcome = OSD_SHM_TIMEOUT;
				break;
			}
			if (deadline - now < OSD_SHM_SLEEP_NSEC)
				wait.tv_nsec = (long)(deadline - now);
		}
		syscall(SYS_futex, &line->seq, FUTEX_WAIT, *seen, &wait, NULL, 0);
	}
	atomic_store_explicit(&line->waiting, 0, memory_order_relaxed);
	return outcome;
}

/* Waits for the answer to what was just posted on `other`.  If the other side is still not awake after a while, it waits
 * for a processor, and most likely for this one if it last ran here: the caller sleeps from then on.  True: the answer
 * came. */
static inline bool osd_shm_watch(struct osd_shm_line *line, uint32_t *seen, uint64_t nsec,
				 const struct osd_shm_line *other, const _Atomic bool *dead)
{
	bool awake = false, here = atomic_load_explicit(&line->cpu, memory_order_relaxed) == osd_shm_cpu_();
	uint64_t begin = osd_monotonic_nsec(), now = begin;
	uint64_t spin = here ? OSD_SHM_AWAKE_NSEC / 8 : OSD_SHM_AWAKE_NSEC;

	while (now < begin + (awake ? nsec : spin)) {
		for (int i = 0; i < 32; i++) {
			if (osd_shm_changed_(line, seen))
				return !atomic_load(dead);
			osd_shm_relax_();
		}
		awake = awake || !atomic_load_explicit(&other->waiting, memory_order_relaxed);
		now = osd_monotonic_nsec();
	}
	return now < begin + nsec &&
	       osd_shm_sleep(line, seen, (begin + nsec - now) / 1000, dead) == OSD_SHM_POSTED;
}

/* Wait until line->seq is not *seen. dead (may be NULL) is checked first; a thread that sets it calls
 * osd_shm_kick afterwards. timeout_usec: OSD_SHM_FOREVER for none.  spin_nsec: OSD_SHM_SPIN_NSEC, or more if
 * nothing else needs the CPU and the post will come soon. */
static inline enum osd_shm_outcome osd_shm_wait_for(struct osd_shm_line *line, uint32_t *seen,
						    uint64_t spin_nsec, uint64_t timeout_usec,
						    const _Atomic bool *dead)
{
	if (dead && atomic_load(dead))
		return OSD_SHM_DEAD;
	if (osd_shm_changed_(line, seen) || osd_shm_spin_(line, seen, spin_nsec))
		return dead && atomic_load(dead) ? OSD_SHM_DEAD : OSD_SHM_POSTED;
	return osd_shm_sleep(line, seen, timeout_usec, dead);
}

static inline enum osd_shm_outcome osd_shm_wait(struct osd_shm_line *line, uint32_t *seen,
						uint64_t timeout_usec, const _Atomic bool *dead)
{
	return osd_shm_wait_for(line, seen, OSD_SHM_SPIN_NSEC, timeout_usec, dead);
}

/* Wait for a post that will come, but later than most: spins for this many nanoseconds. */
static inline void osd_shm_await(struct osd_shm_line *line, uint32_t *seen, uint64_t spin_nsec)
{
	if (!osd_shm_changed_(line, seen) && !osd_shm_spin_(line, seen, spin_nsec))
		osd_shm_sleep(line, seen, OSD_SHM_FOREVER, NULL);
}

/* The same, for a waiter that trusts its poster and may wait for long: no wake-up but the post's, and that of
 * osd_shm_rouse, after which it spins.  To end the waiter, kill its process. */
static inline void osd_shm_rest(struct osd_shm_line *line, uint32_t *seen, uint64_t spin_nsec)
{
	if (osd_shm_changed_(line, seen) || osd_shm_spin_(line, seen, spin_nsec))
		return;
	atomic_store(&line->waiting, 1);
	while (!osd_shm_changed_(line, seen)) {
		if (syscall(SYS_futex, &line->seq, FUTEX_WAIT, *seen, NULL, NULL, 0) != 0)
			continue; /* a signal, or a post */
		atomic_store_explicit(&line->waiting, 0, memory_order_relaxed);
		if (osd_shm_spin_anyway_(line, seen, OSD_SHM_ROUSED_NSEC))
			return;
		atomic_store(&line->waiting, 1);
	}
	atomic_store_explicit(&line->waiting, 0, memory_order_relaxed);
}

#endif
