/* SPDX-License-Identifier: GPL-2.0-or-later */
/* principals.c -- accounts and shares of principals (pool.h, exec/admin.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/pool/pool.h"

#define TRIES 8 /* to find an account that is not needed */

struct osd_account {
	struct osd_principal_usage usage; /* without the figures that are computed on request */
	uint64_t used_usec;		  /* monotonic */
	char name[];
};

static const struct osd_principal_share plain = {.weight = 1};

bool osd_pool_admits(const struct osd_pool_config *config, const char *principal)
{
	size_t length = strlen(principal);

	for (const char *at = config->users; *at; at += strcspn(at, ",")) {
		at += *at == ',';
		if (strcspn(at, ",") == length && memcmp(at, principal, length) == 0)
			return true;
	}
	return !config->users[0];
}

static bool is_plain(const struct osd_principal_share *share)
{
	return share->weight == 1 && !share->queue_max && !share->at_once;
}

/* The first entry whose name is not less than this one. */
static size_t lower_bound(const struct osd_principals *principals, const char *name)
{
	size_t from = 0, to = principals->count;

	while (from < to) {
		size_t middle = (from + to) / 2;

		if (strcmp(principals->accounts[middle]->name, name) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct osd_account *find(const struct osd_principals *principals, const char *name)
{
	size_t at = lower_bound(principals, name);

	if (at < principals->count && strcmp(principals->accounts[at]->name, name) == 0)
		return principals->accounts[at];
	return NULL;
}

/* ---- room ------------------------------------------------------------------------------------ */

static void count_now(const struct osd_exec *exec, const char *name,
		      struct osd_principal_usage *usage)
{
	for (const struct osd_pool *pool = exec->pools->first; pool; pool = pool->next) {
		size_t places, running;

		osd_fair_queue_count(&pool->queue, name, &places, &running);
		usage->queued += places;
		usage->running += running;
	}
}

static bool is_needed(const struct osd_exec *exec, const struct osd_account *account)
{
	struct osd_principal_usage now = {.queued = 0};

	count_now(exec, account->name, &now);
	return now.queued || now.running || !is_plain(&account->usage.share);
}

static void add_up(struct osd_principal_usage *to, const struct osd_principal_usage *from)
{
	to->name = OSD_PRINCIPALS_OTHERS;
	to->share = plain;
	to->accepted += from->accepted;
	to->finished += from->finished;
	to->refused += from->refused;
	to->queue_usec += from->queue_usec;
	to->run_usec += from->run_usec;
	to->cpu_usec += from->cpu_usec;
	to->bytes_read += from->bytes_read;
	to->bytes_written += from->bytes_written;
	to->calls += from->calls;
}

static void forget(struct osd_principals *principals, size_t at)
{
	add_up(&principals->others, &principals->accounts[at]->usage);
	free(principals->accounts[at]);
	principals->count--;
	memmove(principals->accounts + at, principals->accounts + at + 1,
		(principals->count - at) * sizeof(*principals->accounts));
}

/* Removes the account that has had no job for the longest time, if it is not needed. */
static bool make_room(struct osd_exec *exec)
{
	struct osd_principals *principals = &exec->pools->principals;
	size_t oldest = 0;

	for (int i = 0; i < TRIES; i++) {
		for (size_t at = oldest = 0; at < principals->count; at++)
			if (principals->accounts[at]->used_usec <
			    principals->accounts[oldest]->used_usec)
				oldest = at;
		if (!is_needed(exec, principals->accounts[oldest])) {
			forget(principals, oldest);
			return true;
		}
		principals->accounts[oldest]->used_usec = osd_monotonic_usec();
	}
	return false;
}

static struct osd_account *create(struct osd_exec *exec, const char *name)
{
	struct osd_principals *principals = &exec->pools->principals;
	size_t at, size = strlen(name) + 1;
	struct osd_account *account;

	if (!principals->accounts)
		principals->accounts = calloc(OSD_PRINCIPALS_MAX, sizeof(struct osd_account *));
	if (!principals->accounts || (principals->count == OSD_PRINCIPALS_MAX && !make_room(exec)))
		return NULL;
	account = calloc(1, sizeof(*account) + size);
	if (!account)
		return NULL;
	memcpy(account->name, name, size);
	account->usage.name = account->name;
	account->usage.share = plain;
	at = lower_bound(principals, name);
	memmove(principals->accounts + at + 1, principals->accounts + at,
		(principals->count - at) * sizeof(*principals->accounts));
	principals->accounts[at] = account;
	principals->count++;
	return account;
}

/* The account of this principal, or the common one. */
static struct osd_principal_usage *usage_of(struct osd_exec *exec, const char *name)
{
	struct osd_account *account = find(&exec->pools->principals, name);

	if (!account)
		account = create(exec, name);
	if (account) {
		account->used_usec = osd_monotonic_usec();
		return &account->usage;
	}
	exec->pools->principals.others.name = OSD_PRINCIPALS_OTHERS;
	exec->pools->principals.others.share = plain;
	return &exec->pools->principals.others;
}

void osd_principals_release(struct osd_principals *principals)
{
	for (size_t i = 0; i < principals->count; i++)
		free(principals->accounts[i]);
	free(principals->accounts);
	*principals = (struct osd_principals){.count = 0};
}

/* ---- counting -------------------------------------------------------------------------------- */

void osd_principal_accepted(struct osd_exec *exec, const char *name, uint64_t jobs)
{
	usage_of(exec, name)->accepted += jobs;
}

void osd_principal_refused(struct osd_exec *exec, const char *name)
{
	usage_of(exec, name)->refused++;
}

void osd_principal_ended(struct osd_exec *exec, const struct osd_job_record *record)
{
	struct osd_principal_usage *usage = usage_of(exec, record->principal);

	usage->finished++;
	usage->queue_usec += record->queue_usec;
	usage->run_usec += record->run_usec;
	usage->cpu_usec += record->cpu_user_usec + record->cpu_system_usec;
	usage->bytes_read += record->bytes_read;
	usage->bytes_written += record->bytes_written;
	usage->calls += record->calls;
}

void osd_exec_each_usage(struct osd_exec *exec, const char *after,
			 bool (*fn)(void *arg, const struct osd_principal_usage *usage), void *arg)
{
	const struct osd_principals *principals = &exec->pools->principals;
	bool more = true;
	size_t at;

	osd_lock(&exec->lock);
	/* '(' sorts before all names of principals. */
	if (principals->others.name && (!after || strcmp(after, OSD_PRINCIPALS_OTHERS) < 0))
		more = fn(arg, &principals->others);
	at = after ? lower_bound(principals, after) : 0;
	if (after && at < principals->count && strcmp(principals->accounts[at]->name, after) == 0)
		at++;
	for (; more && at < principals->count; at++) {
		struct osd_principal_usage usage = principals->accounts[at]->usage;

		count_now(exec, usage.name, &usage);
		more = fn(arg, &usage);
	}
	osd_unlock(&exec->lock);
}

/* ---- shares ---------------------------------------------------------------------------------- */

static bool enter(struct osd_pool *pool, const char *name, const struct osd_principal_share *share)
{
	const struct osd_fair_share fair = {share->weight, share->queue_max, share->at_once};

	return osd_fair_queue_set_share(&pool->queue, name, fair) == OSD_OK;
}

bool osd_principals_enter(struct osd_exec *exec, struct osd_pool *pool)
{
	const struct osd_principals *principals = &exec->pools->principals;
	bool entered = true;

	for (size_t i = 0; i < principals->count && entered; i++)
		if (!is_plain(&principals->accounts[i]->usage.share))
			entered = enter(pool, principals->accounts[i]->name,
					&principals->accounts[i]->usage.share);
	return entered;
}

static const char *check_share(const char *name, const struct osd_principal_share *share)
{
	if (!name[0] || strlen(name) > OSD_JOB_PRINCIPAL_MAX)
		return "a principal is named like chap:NAME or addr:ADDRESS, up to 511 bytes";
	if (share->weight < 1 || share->weight > 1000)
		return "weight must be 1 to 1000";
	if (share->queue_max > osd_exec_limits[OSD_LIMIT_QUEUE].maximum)
		return "queue must be 0 to 10000";
	if (share->at_once > OSD_EXEC_SLOTS_MAX)
		return "at_once must be 0 to 64";
	return NULL;
}

/* exec->lock held.  Changes all pools, or none. */
static enum osd_status set_share(struct osd_exec *exec, const char *name,
				 const struct osd_principal_share *share,
				 char message[OSD_ADMIN_MESSAGE_MAX])
{
	struct osd_principals *principals = &exec->pools->principals;
	struct osd_account *account = find(principals, name);
	struct osd_pool *pool = exec->pools->first;
	bool was_plain = !account || is_plain(&account->usage.share);

	osd_assert_held(&exec->lock);
	if (was_plain && !is_plain(share) && principals->shared == OSD_PRINCIPALS_SHARED_MAX) {
		snprintf(message, OSD_ADMIN_MESSAGE_MAX, "%d principals have a share already",
			 OSD_PRINCIPALS_SHARED_MAX);
		return OSD_E_PARAM_FIELD;
	}
	if (!account)
		account = create(exec, name);
	while (account && pool && enter(pool, name, share))
		pool = pool->next;
	if (!account || pool) {
		for (struct osd_pool *p = exec->pools->first; account && p != pool; p = p->next)
			enter(p, name, &account->usage.share); /* the principal is there: this needs
							        * no memory */
		return OSD_E_NO_MEMORY;
	}
	principals->shared += (size_t)was_plain - (size_t)is_plain(share);
	account->usage.share = *share;
	exec->pools->work(exec); /* more of its jobs may start now */
	return OSD_OK;
}

void osd_exec_principal_share(struct osd_exec *exec, const char *name,
			      struct osd_principal_share *ret_share)
{
	const struct osd_account *account;

	osd_lock(&exec->lock);
	account = find(&exec->pools->principals, name);
	*ret_share = account ? account->usage.share : plain;
	osd_unlock(&exec->lock);
}

enum osd_status osd_exec_principal_set(struct osd_exec *exec, const char *name,
				       const struct osd_principal_share *share,
				       char message[OSD_ADMIN_MESSAGE_MAX])
{
	const char *wrong = check_share(name, share);
	enum osd_status status = OSD_E_PARAM_FIELD;

	snprintf(message, OSD_ADMIN_MESSAGE_MAX, "%s", wrong ? wrong : "");
	if (wrong)
		return status;
	osd_lock(&exec->lock);
	status = set_share(exec, name, share, message);
	osd_unlock(&exec->lock);
	if (status == OSD_E_NO_MEMORY)
		snprintf(message, OSD_ADMIN_MESSAGE_MAX, "%s", osd_status_info(status)->meaning);
	return status;
}
