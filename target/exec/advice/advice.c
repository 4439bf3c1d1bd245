/* SPDX-License-Identifier: GPL-2.0-or-later */
/* advice.c -- estimates and the decision, see advice.h. */
#include "exec/advice/advice.h"

#include <string.h>

#include "base/util.h"

#define KEPT	     0.8  /* of the weight of earlier runs, with each new one */
#define APART	     0.05 /* sizes whose variance is below this part of the square have no slope */
#define FACTOR_LEAST (-0.75)
#define FACTOR_MOST  15.0
#define PROCESSORS_LEAST 0.01
#define FACTOR_USEC  60e6 /* after which A is 1 again */
#define USEC_MOST    8.64e10 /* a day: longer times count as this */

static uint64_t to_usec(double usec)
{
	return (uint64_t)OSD_MIN(OSD_MAX(usec, 0.0), USEC_MOST);
}

static bool is_of(const struct osd_advice_code *code, const struct osd_advice_work *work)
{
	return code->used && memcmp(code->sha256, work->sha256, sizeof(code->sha256)) == 0 &&
	       strcmp(code->set, work->set) == 0;
}

static struct osd_advice_code *find(struct osd_advice *advice, const struct osd_advice_work *work)
{
	for (size_t i = 0; i < OSD_ADVICE_CODES; i++)
		if (is_of(&advice->codes[i], work))
			return &advice->codes[i];
	return NULL;
}

static struct osd_advice_code *find_or_make(struct osd_advice *advice,
					    const struct osd_advice_work *work)
{
	struct osd_advice_code *code = find(advice, work), *oldest = &advice->codes[0];

	if (code)
		return code;
	for (size_t i = 1; i < OSD_ADVICE_CODES; i++)
		if (advice->codes[i].used < oldest->used)
			oldest = &advice->codes[i];
	*oldest = (struct osd_advice_code){0};
	memcpy(oldest->sha256, work->sha256, sizeof(oldest->sha256));
	memcpy(oldest->set, work->set, OSD_MIN(strlen(work->set), (size_t)OSD_ADVICE_SET_MAX));
	return oldest;
}

/* The line through the runs, which rises and begins at 0 or above.  If all runs read about the same, it goes through
 * the origin. */
static double predict(const struct osd_advice_code *code, uint64_t bytes)
{
	double mean_bytes = code->bytes / code->count, mean_usec = code->usec / code->count;
	double variance = code->bytes_bytes / code->count - mean_bytes * mean_bytes;
	double slope = mean_bytes > 0 ? mean_usec / mean_bytes : 0, start = 0;

	if (bytes == 0 || mean_bytes <= 0)
		return mean_usec;
	if (variance > APART * mean_bytes * mean_bytes) {
		double own = (code->bytes_usec / code->count - mean_bytes * mean_usec) / variance;

		own = OSD_MIN(OSD_MAX(own, 0.0), slope);
		start = mean_usec - own * mean_bytes;
		slope = own;
	}
	return start + slope * (double)bytes;
}

double osd_advice_slowdown(unsigned running, double processors)
{
	return OSD_MAX(1.0, (running + 1.0) / OSD_MAX(processors, PROCESSORS_LEAST));
}

/* The time of work whose part `computing` is stretched. */
static double stretched(double usec, double computing, double slowdown)
{
	return usec * (computing * slowdown + 1 - computing);
}

double osd_advice_factor(const struct osd_advice *advice, uint64_t now_usec)
{
	double age = (double)(now_usec - OSD_MIN(now_usec, advice->factor_usec));

	return 1 + advice->factor * OSD_MAX(0.0, 1 - age / FACTOR_USEC);
}

uint64_t osd_advice_alone(struct osd_advice *advice, const struct osd_advice_work *work)
{
	struct osd_advice_code *code = find(advice, work);

	if (!code)
		return 0;
	code->used = ++advice->uses;
	return OSD_MAX(to_usec(predict(code, work->bytes)), UINT64_C(1));
}

/* The entry of the principal, or NULL. */
static struct osd_advice_client *find_client(struct osd_advice *advice, const char *principal)
{
	for (size_t i = 0; i < OSD_ADVICE_CLIENTS; i++)
		if (advice->clients[i].until_usec &&
		    strcmp(advice->clients[i].principal, principal) == 0)
			return &advice->clients[i];
	return NULL;
}

static struct osd_advice_client *find_or_make_client(struct osd_advice *advice,
						     const char *principal)
{
	struct osd_advice_client *client = find_client(advice, principal), *first;

	if (client)
		return client;
	first = &advice->clients[0];
	for (size_t i = 1; i < OSD_ADVICE_CLIENTS; i++)
		if (advice->clients[i].until_usec < first->until_usec)
			first = &advice->clients[i];
	*first = (struct osd_advice_client){.until_usec = 0};
	memcpy(first->principal, principal,
	       OSD_MIN(strlen(principal), (size_t)OSD_ADVICE_PRINCIPAL_MAX));
	return first;
}

static uint64_t backlog(const struct osd_advice_client *client, uint64_t now_usec)
{
	return client ? client->until_usec - OSD_MIN(client->until_usec, now_usec) : 0;
}

bool osd_advice_is_for_client(struct osd_advice *advice, const struct osd_advice_work *work,
			      uint64_t home_usec, const struct osd_advice_load *load,
			      struct osd_advice_numbers *ret_numbers)
{
	const struct osd_advice_client *client = find_client(advice, load->principal);
	const struct osd_advice_code *code = find(advice, work);
	double computing = code && code->usec > 0 ? code->cpu_usec / code->usec : 1;
	double near = stretched((double)osd_advice_alone(advice, work), computing,
				osd_advice_slowdown(load->running, load->processors)) *
		      osd_advice_factor(advice, load->now_usec);

	*ret_numbers = (struct osd_advice_numbers){
		.near_usec = to_usec(near),
		.wait_usec = load->wait_usec,
		.home_usec = home_usec ? home_usec + backlog(client, load->now_usec) : 0,
	};
	return home_usec && ret_numbers->near_usec &&
	       (double)ret_numbers->home_usec < near + (double)load->wait_usec;
}

void osd_advice_pushed(struct osd_advice *advice, const char *principal, uint64_t home_usec,
		       uint64_t now_usec, const struct osd_advice_push *push)
{
	struct osd_advice_client *client = find_or_make_client(advice, principal);
	uint64_t work = backlog(client, now_usec) + OSD_MIN(home_usec, OSD_ADVICE_BACKLOG_USEC);

	client->until_usec = now_usec + OSD_MIN(work, OSD_ADVICE_BACKLOG_USEC);
	advice->pushed[push->stage] += push->reason == OSD_ADVICE_SOONER;
	advice->recent[advice->pushes++ % OSD_ADVICE_RECENT] = *push;
}

static double computed_in(const struct osd_advice_run *run)
{
	return (double)OSD_MIN(run->cpu_usec, run->run_usec);
}

/* The run's time without other jobs.  Time that it neither computed nor starved is a wait for data; or starving that no
 * sample saw, if not all of that is known: other jobs then stretch it. */
static double alone_of(const struct osd_advice_run *run)
{
	uint64_t known = OSD_MIN(run->cpu_usec + run->starved_usec, run->run_usec);
	double rest = (double)(run->run_usec - known);

	return computed_in(run) + (run->starving_known ? rest : rest / run->slowdown);
}

static void learn_factor(struct osd_advice *advice, const struct osd_advice_run *run, double alone)
{
	double present = osd_advice_factor(advice, run->now_usec) - 1;
	double computing = run->starving_known ? OSD_MIN(computed_in(run) / alone, 1.0) : 1;
	double seen = (double)run->run_usec / stretched(alone, computing, run->slowdown) - 1;

	seen = OSD_MIN(OSD_MAX(seen, FACTOR_LEAST), FACTOR_MOST);
	advice->factor = KEPT * present + (1 - KEPT) * seen;
	advice->factor_usec = run->now_usec;
}

void osd_advice_ran(struct osd_advice *advice, const struct osd_advice_work *work,
		    const struct osd_advice_run *run)
{
	struct osd_advice_code *code = find_or_make(advice, work);
	double alone = OSD_MAX(alone_of(run), 1.0), bytes = (double)work->bytes;

	learn_factor(advice, run, alone);
	if (code->count > 0) {
		double error = alone / OSD_MAX(predict(code, work->bytes), 1.0) - 1;

		code->spread = KEPT * code->spread + (1 - KEPT) * OSD_MAX(error, -error);
	}
	code->count = KEPT * code->count + 1;
	code->bytes = KEPT * code->bytes + bytes;
	code->usec = KEPT * code->usec + alone;
	code->cpu_usec = KEPT * code->cpu_usec +
			 (run->starving_known ? OSD_MIN(computed_in(run), alone) : alone);
	code->bytes_bytes = KEPT * code->bytes_bytes + bytes * bytes;
	code->bytes_usec = KEPT * code->bytes_usec + bytes * alone;
	code->output = KEPT * code->output + (double)run->output_bytes;
	code->used = ++advice->uses;
}
