/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stock.c -- how many sandboxes there are of each supply: asked for ahead of need, ended when they are not
 * needed (sandbox.h). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/sandbox/sandbox.h"

#define NAME_MAX_BYTES 64	/* of a supply */
#define FORKS_AT_ONCE  2	/* more only disturb each other (measured) */
#define WARM_USEC      10000000 /* a sandbox is READY in this time, or is killed */
#define ANSWER_USEC    5000000	/* iosd-sandboxd answers a SPAWN in this time, or is stuck */

void osd_supply_changed(struct osd_sandboxes *sandboxes)
{
	sandboxes->alive_max = 0;
	for (const struct osd_supply *each = sandboxes->supplies; each; each = each->next)
		sandboxes->alive_max += each->alive_max;
}

void osd_supply_add(struct osd_sandboxes *sandboxes, struct osd_supply *supply)
{
	struct osd_supply **end = &sandboxes->supplies;

	while (*end)
		end = &(*end)->next;
	*end = supply;
}

/* ---- asking for sandboxes -------------------------------------------------------------------- */

static bool spawn(struct osd_sandboxes *sandboxes, struct osd_supply *supply)
{
	struct osd_sandbox *sandbox = calloc(1, sizeof(*sandbox));
	uint8_t body[OSD_SANDBOX_LIMITS_BYTES + NAME_MAX_BYTES];
	size_t length = osd_sandbox_limits_encode(&supply->usual, body, sizeof(body));
	size_t name = strlen(supply->name);

	if (!sandbox)
		return false;
	*sandbox = (struct osd_sandbox){
		.next = sandboxes->list,
		.supply = supply,
		.id = sandboxes->next_id++,
		.asked_usec = osd_monotonic_usec(),
		.state = OSD_SANDBOX_SPAWNING,
		.references = 1,
		.pidfd = -1,
		.job_fd = -1,
		.stdout_fd = -1,
		.stderr_fd = -1,
		.limits = supply->usual,
		.wall_usec = OSD_NEVER,
		.sampled_usec = osd_monotonic_usec(),
		.kill_usec = osd_monotonic_usec() + WARM_USEC,
	};
	sandboxes->list = sandbox;
	memcpy(body + length, supply->name, name);
	return osd_service_send(sandboxes, OSD_SANDBOXD_SPAWN, sandbox->id, body, length + name);
}

struct census {
	unsigned alive, useful, taken, warming, ready;
};

static struct census count(const struct osd_sandboxes *sandboxes, const struct osd_supply *supply)
{
	struct census census = {0};

	for (const struct osd_sandbox *s = sandboxes->list; s; s = s->next) {
		if (s->supply != supply)
			continue;
		census.alive++;
		if (s->kill_sent)
			continue;
		census.useful += s->state <= OSD_SANDBOX_TAKEN && !s->dead;
		census.taken += s->state == OSD_SANDBOX_TAKEN && !s->dead;
		census.warming += s->state <= OSD_SANDBOX_WARMING;
		census.ready += s->state == OSD_SANDBOX_READY && !s->dead;
	}
	return census;
}

unsigned osd_supply_ready(const struct osd_sandboxes *sandboxes, const struct osd_supply *supply)
{
	return count(sandboxes, supply).ready;
}

/* No job has used it for long. */
static bool is_idle(const struct osd_supply *supply, uint64_t now)
{
	return supply->busy == 0 && *supply->waiting == 0 &&
	       now >= supply->used_usec + supply->idle_usec;
}

/* As many as the work at hand asks for, min at least, and the spares. */
static unsigned wanted_of(const struct osd_supply *supply, const struct census *census,
			  uint64_t now)
{
	unsigned wanted = OSD_MAX(supply->min, census->taken);

	if (is_idle(supply, now))
		return wanted;
	wanted += OSD_MIN((unsigned)*supply->waiting, supply->active);
	return OSD_MIN(wanted, supply->active + supply->lent) + supply->spares;
}

/* *left: how many more all supplies may have.  False: no connection. */
static bool refill(struct osd_sandboxes *sandboxes, struct osd_supply *supply, uint64_t now,
		   unsigned *left)
{
	struct census census = count(sandboxes, supply);
	unsigned wanted = wanted_of(supply, &census, now);

	if (now < supply->linger_usec && census.ready >= OSD_MAX(supply->min, census.taken)) {
		osd_alarm_by(sandboxes->alarm, supply->linger_usec);
		return true;
	}
	for (; census.useful < wanted && census.warming < FORKS_AT_ONCE &&
	       census.alive<supply->alive_max && * left> 0;
	     census.useful++, census.warming++, census.alive++, --*left)
		if (!spawn(sandboxes, supply))
			return false;
	return true;
}

void osd_sandboxes_refill(struct osd_sandboxes *sandboxes)
{
	uint64_t now = osd_monotonic_usec();
	unsigned left = sandboxes->allowed;

	if (!sandboxes->welcomed || sandboxes->stopping)
		return;
	for (const struct osd_sandbox *s = sandboxes->list; s && left > 0; s = s->next)
		left--;
	for (struct osd_supply *supply = sandboxes->supplies; supply; supply = supply->next)
		if (supply->serving && now >= supply->calm_usec &&
		    !refill(sandboxes, supply, now, &left))
			return;
}

struct osd_sandbox *osd_supply_find_ready(const struct osd_sandboxes *sandboxes,
					  const struct osd_supply *supply)
{
	struct osd_sandbox *found = NULL;

	/* The oldest: the list has the youngest first. */
	for (struct osd_sandbox *sandbox = sandboxes->list; sandbox; sandbox = sandbox->next)
		if (sandbox->supply == supply && sandbox->state == OSD_SANDBOX_READY &&
		    !sandbox->dead)
			found = sandbox;
	return found;
}

void osd_supply_trim(struct osd_sandboxes *sandboxes, struct osd_supply *supply, uint64_t now)
{
	struct census census = count(sandboxes, supply);
	unsigned wanted = wanted_of(supply, &census, now);

	for (; census.ready > 0 && census.useful > wanted; census.ready--, census.useful--) {
		osd_sandbox_kill(sandboxes, osd_supply_find_ready(sandboxes, supply));
		if (sandboxes->fd < 0)
			return; /* the connection was lost, and all sandboxes with it */
	}
}

void osd_supply_replace(struct osd_sandboxes *sandboxes, const struct osd_supply *supply)
{
	struct osd_sandbox *next;

	for (struct osd_sandbox *sandbox = sandboxes->list; sandbox && sandboxes->fd >= 0;
	     sandbox = next) {
		next = sandbox->next;
		if (sandbox->supply != supply)
			continue;
		sandbox->stale = true;
		if (sandbox->state != OSD_SANDBOX_TAKEN && sandbox->state != OSD_SANDBOX_ENDING)
			osd_sandbox_kill(sandboxes, sandbox);
	}
}

/* To a SPAWN, or how it ended. */
static bool answer_is_due(const struct osd_sandbox *sandbox)
{
	return sandbox->state == OSD_SANDBOX_SPAWNING || (sandbox->dead && !sandbox->exit_known);
}

const char *osd_supply_lacks(const struct osd_sandboxes *sandboxes, const struct osd_supply *supply)
{
	uint64_t now = osd_monotonic_usec();

	if (supply->lacking[0])
		return supply->lacking;
	for (const struct osd_sandbox *s = sandboxes->list; s; s = s->next)
		if (s->supply == supply && answer_is_due(s) && now > s->asked_usec + ANSWER_USEC)
			return "iosd-sandboxd does not answer";
	return NULL;
}

bool osd_supply_has_unused(const struct osd_sandboxes *sandboxes, const struct osd_supply *supply)
{
	const struct osd_sandbox *sandbox = sandboxes->list;

	while (sandbox && (sandbox->supply != supply || sandbox->dead ||
			   (sandbox->state != OSD_SANDBOX_READY &&
			    sandbox->state != OSD_SANDBOX_KEPT)))
		sandbox = sandbox->next;
	return sandbox != NULL;
}

bool osd_supply_has_any(const struct osd_sandboxes *sandboxes, const struct osd_supply *supply)
{
	if (!sandboxes->welcomed)
		return osd_service_is_due(sandboxes);
	return !osd_supply_lacks(sandboxes, supply) || osd_supply_find_ready(sandboxes, supply);
}
