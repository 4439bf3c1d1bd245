/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lock.h -- mutexes and read/write locks that know their place in the order of locks.
 *
 * A thread takes a lock only while all locks it holds stand before that one in OSD_LOCKS.  Builds with
 * assertions (without NDEBUG) check this: unit tests, sanitized and fuzzed programs.  There, a thread that
 * breaks the order ends the program with the names of both locks.  osd_assert_held() checks its lock.
 * Without assertions nothing is left but the calls of pthread.
 *
 * Any thread. */
#ifndef OSD_BASE_LOCK_H
#define OSD_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* The order, outermost first: rank, name in messages. target/README.md lists what each lock guards. */
#define OSD_LOCKS(LOCK)                                                                            \
	LOCK(OUTPUT, "output->lock")                                                               \
	LOCK(NONCES, "nonces->lock")                                                               \
	LOCK(WINDOW_WRITING, "window->writing")                                                    \
	LOCK(KEYS_LOADING, "keyring->loading")                                                     \
	LOCK(INDEX, "objects->index_lock")                                                         \
	LOCK(MEM_STORE, "mem store->lock")                                                         \
	LOCK(TIER_REPLACED, "file->replaced")                                                      \
	LOCK(SUMS_FILE, "sums file->lock")                                                         \
	LOCK(TIER_FILE, "tier file->lock")                                                         \
	LOCK(PARTITIONS, "objects->partitions_lock")                                               \
	LOCK(CACHE, "objects->cache_lock")                                                         \
	LOCK(OBJECT, "object->mutex")                                                              \
	LOCK(TALLY, "partition->tally_lock")                                                       \
	LOCK(EXEC, "exec->lock")                                                                   \
	LOCK(STORED, "stored->lock")                                                               \
	LOCK(OUTPUT_ERRORS, "output->errors_lock")                                                 \
	LOCK(FUNCTIONS, "functions->lock")                                                         \
	LOCK(KEPT, "kept->lock")                                                                   \
	LOCK(NOTES, "stack notes->lock")                                                           \
	LOCK(CALL_GATE, "call gate->lock")                                                         \
	LOCK(SHARES, "session->shares_lock")                                                       \
	LOCK(KEYRING, "keyring->lock")                                                             \
	LOCK(WINDOW, "window->lock")                                                               \
	LOCK(POLICIES, "policies->lock")                                                           \
	LOCK(EXCHANGES, "exchanges->lock")                                                         \
	LOCK(MAC, "mac lock")                                                                      \
	LOCK(OBJECTS_WORK, "objects->work_lock")                                                   \
	LOCK(DAMAGED, "sums->lock")                                                                \
	LOCK(FREEZE, "freeze->lock")                                                               \
	LOCK(BOTH, "both->lock")                                                                   \
	LOCK(MEDIA, "media->lock")                                                                 \
	LOCK(MODEL_STORE, "model store->lock")                                                     \
	LOCK(MEM_DATA, "mem data->lock")                                                           \
	LOCK(MEM_FILE, "mem file->lock")                                                           \
	LOCK(GATE, "gate->lock")                                                                   \
	LOCK(BACKGROUNDS, "backgrounds->lock")                                                     \
	LOCK(COPIES, "copies->lock")                                                               \
	LOCK(FLIGHTS, "flights->lock")                                                             \
	LOCK(STACK_ROOM, "stack room lock")                                                        \
	LOCK(UNIT, "unit->lock")                                                                   \
	LOCK(COMPLETIONS, "completions->lock")                                                     \
	LOCK(HARNESS_OUTPUT, "output_lock")                                                        \
	LOCK(TURNS, "script turns->lock")                                                          \
	LOCK(FOLLOW, "follow->lock")                                                               \
	LOCK(TIMERS, "timers->lock")                                                               \
	LOCK(HELPER, "helper->lock")                                                               \
	LOCK(RATION, "ration->lock")

enum osd_rank {
#define OSD_RANK_OF(rank, name) OSD_RANK_##rank,
	OSD_LOCKS(OSD_RANK_OF)
#undef OSD_RANK_OF
		OSD_RANK_COUNT
};

#ifdef NDEBUG
#define OSD_LOCK_CHECK(action) ((void)0)
#define OSD_LOCK_INITIALIZER(rank)                                                                 \
	{                                                                                          \
		PTHREAD_MUTEX_INITIALIZER                                                          \
	}
#else
#define OSD_LOCK_CHECK(action) (action)
#define OSD_LOCK_INITIALIZER(rank)                                                                 \
	{                                                                                          \
		PTHREAD_MUTEX_INITIALIZER, rank                                                    \
	}

/* Record that the calling thread is about to take a lock, for which it may wait, or has taken it
 * without waiting. */
void osd_lock_takes(const void *lock, enum osd_rank rank);
void osd_lock_has(const void *lock, enum osd_rank rank);
void osd_lock_drops(const void *lock, enum osd_rank rank);
void osd_lock_must_be_held(const void *lock, enum osd_rank rank);
#endif

struct osd_lock {
	pthread_mutex_t mutex;
#ifndef NDEBUG
	enum osd_rank rank;
#endif
};

struct osd_rwlock {
	pthread_rwlock_t rwlock;
#ifndef NDEBUG
	enum osd_rank rank;
#endif
};

static inline void osd_lock_init(struct osd_lock *lock, enum osd_rank rank)
{
	pthread_mutex_init(&lock->mutex, NULL);
	(void)rank;
	OSD_LOCK_CHECK(lock->rank = rank);
}

static inline void osd_lock_destroy(struct osd_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

static inline void osd_lock(struct osd_lock *lock)
{
	OSD_LOCK_CHECK(osd_lock_takes(lock, lock->rank));
	pthread_mutex_lock(&lock->mutex);
}

/* Takes the lock without waiting, in any order.  False: it was not free. */
static inline bool osd_trylock(struct osd_lock *lock)
{
	if (pthread_mutex_trylock(&lock->mutex) != 0)
		return false;
	OSD_LOCK_CHECK(osd_lock_has(lock, lock->rank));
	return true;
}

static inline void osd_unlock(struct osd_lock *lock)
{
	OSD_LOCK_CHECK(osd_lock_drops(lock, lock->rank));
	pthread_mutex_unlock(&lock->mutex);
}

/* Asserts that the calling thread holds it. */
static inline void osd_assert_held(const struct osd_lock *lock)
{
	(void)lock;
	OSD_LOCK_CHECK(osd_lock_must_be_held(lock, lock->rank));
}

/* With deadlines of the monotonic clock. */
static inline void osd_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static inline void osd_cond_wait(pthread_cond_t *cond, struct osd_lock *lock)
{
	OSD_LOCK_CHECK(osd_lock_drops(lock, lock->rank));
	pthread_cond_wait(cond, &lock->mutex);
	OSD_LOCK_CHECK(osd_lock_takes(lock, lock->rank));
}

/* Of one that osd_cond_init has made.  0, or ETIMEDOUT. */
static inline int osd_cond_timedwait(pthread_cond_t *cond, struct osd_lock *lock,
				     const struct timespec *until)
{
	int error;

	OSD_LOCK_CHECK(osd_lock_drops(lock, lock->rank));
	error = pthread_cond_timedwait(cond, &lock->mutex, until);
	OSD_LOCK_CHECK(osd_lock_takes(lock, lock->rank));
	return error;
}

static inline void osd_rwlock_init(struct osd_rwlock *lock, enum osd_rank rank)
{
	pthread_rwlock_init(&lock->rwlock, NULL);
	(void)rank;
	OSD_LOCK_CHECK(lock->rank = rank);
}

static inline void osd_rwlock_destroy(struct osd_rwlock *lock)
{
	pthread_rwlock_destroy(&lock->rwlock);
}

static inline void osd_read_lock(struct osd_rwlock *lock)
{
	OSD_LOCK_CHECK(osd_lock_takes(lock, lock->rank));
	pthread_rwlock_rdlock(&lock->rwlock);
}

static inline void osd_write_lock(struct osd_rwlock *lock)
{
	OSD_LOCK_CHECK(osd_lock_takes(lock, lock->rank));
	pthread_rwlock_wrlock(&lock->rwlock);
}

static inline bool osd_try_read_lock(struct osd_rwlock *lock)
{
	if (pthread_rwlock_tryrdlock(&lock->rwlock) != 0)
		return false;
	OSD_LOCK_CHECK(osd_lock_has(lock, lock->rank));
	return true;
}

static inline void osd_rw_unlock(struct osd_rwlock *lock)
{
	OSD_LOCK_CHECK(osd_lock_drops(lock, lock->rank));
	pthread_rwlock_unlock(&lock->rwlock);
}

/* Asserts that the calling thread holds it, for reading or writing. */
static inline void osd_assert_rw_held(const struct osd_rwlock *lock)
{
	(void)lock;
	OSD_LOCK_CHECK(osd_lock_must_be_held(lock, lock->rank));
}

#endif
