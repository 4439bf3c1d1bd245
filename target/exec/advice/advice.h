/* SPDX-License-Identifier: GPL-2.0-or-later */
/* advice.h -- whether a job is done sooner near the data or by its client (docs/where-scripts-run.md).  This room
 * knows no other.  Pure: no locks, no clock, no job; the caller serialises.  Nothing is stored: a target that starts
 * learns anew.
 *
 * The client says how long the job would take at home, and how many bytes it reads.  The target knows how long the
 * same code took by byte (osd_advice_ran).  The job is for the client if
 *
 *	w * home  <  A * near + wait
 *
 * near: what it computes alone, times the jobs that would share a processor, and what it waits for data, which they do
 * not lengthen: calls of scripts are served before scripts run.  A: by how much jobs have taken longer than that
 * lately; it returns to 1 within a minute without jobs.  wait: until it would start.  w * home: also counts the work
 * that clients of the same principal are still doing, since that uses the same link.
 *
 * Estimates use bytes and times that the target has measured.  The numbers of a client decide about its own job.  They
 * reach other jobs in one way only: work that clients do counts at most OSD_ADVICE_BACKLOG_USEC, and only for jobs of
 * the same principal, so that nobody keeps the jobs of others near the data. */
#ifndef OSD_EXEC_ADVICE_ADVICE_H
#define OSD_EXEC_ADVICE_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

#define OSD_ADVICE_CODES	256 /* of which something is known; the least recently used is forgotten */
#define OSD_ADVICE_SET_MAX	64  /* bytes of a package set's id */
#define OSD_ADVICE_RECENT	16  /* push-backs that are shown */
#define OSD_ADVICE_NAME_MAX	63
#define OSD_ADVICE_BACKLOG_USEC UINT64_C(60000000)
#define OSD_ADVICE_CLIENTS	64 /* principals whose work is known; the one that is done first is forgotten */
#define OSD_ADVICE_PRINCIPAL_MAX 511

/* Code that runs with a package set over so many bytes; 0: as many as its earlier runs. */
struct osd_advice_work {
	const uint8_t *sha256; /* 32 bytes */
	const char *set;
	uint64_t bytes;
};

/* Sums over the runs of a code; a run counts for less with each that follows. */
struct osd_advice_code {
	uint8_t sha256[32];
	char set[OSD_ADVICE_SET_MAX + 1];
	uint64_t used; /* order of use; 0: free */
	double count, bytes, usec, bytes_bytes, bytes_usec, output;
	double cpu_usec; /* of usec: that it computed */
	double spread; /* mean relative error of the time by byte */
};

enum osd_advice_stage { OSD_ADVICE_ADMISSION, OSD_ADVICE_DISPATCH, OSD_ADVICE_STAGES };

/* Why a job was given back: its client is expected to be done sooner; or its pool would be too late, by the
 * pool's own deadline. */
enum osd_advice_reason { OSD_ADVICE_SOONER, OSD_ADVICE_LATE, OSD_ADVICE_REASONS };

/* The three numbers of a decision, in microseconds. */
struct osd_advice_numbers {
	uint64_t near_usec; /* A * near; 0: not known */
	uint64_t wait_usec;
	uint64_t home_usec; /* w * home */
};

struct osd_advice_push {
	uint64_t at_msec; /* since 1970; 0: none */
	enum osd_advice_stage stage;
	enum osd_advice_reason reason;
	struct osd_advice_numbers numbers;
	char name[OSD_ADVICE_NAME_MAX + 1];	 /* of the job */
	char pool[OSD_ADVICE_NAME_MAX + 1];	 /* the same */
	char principal[OSD_ADVICE_NAME_MAX + 1]; /* cut if longer */
};

/* Work that was pushed back to clients of a principal and that they have not finished yet. */
struct osd_advice_client {
	char principal[OSD_ADVICE_PRINCIPAL_MAX + 1];
	uint64_t until_usec; /* monotonic; 0: free */
};

/* Zeroed is empty. */
struct osd_advice {
	struct osd_advice_code codes[OSD_ADVICE_CODES];
	uint64_t uses;
	double factor; /* A, less 1 */
	uint64_t factor_usec;
	struct osd_advice_client clients[OSD_ADVICE_CLIENTS];
	uint64_t pushed[OSD_ADVICE_STAGES], stayed, unknown; /* decisions; pushed: SOONER alone */
	struct osd_advice_push recent[OSD_ADVICE_RECENT];    /* a ring; the next is at pushes % size */
	uint64_t pushes;
};

/* The state that a job would find now. */
struct osd_advice_load {
	const char *principal; /* of the job */
	uint64_t now_usec;     /* monotonic */
	unsigned running;
	double processors; /* fewer than one: a share of one */
	uint64_t wait_usec;
};

/* How many times longer a job computes that shares the processors with so many others. */
double osd_advice_slowdown(unsigned running, double processors);
/* The present A. */
double osd_advice_factor(const struct osd_advice *advice, uint64_t now_usec);
/* Microseconds of the work near the data without other jobs; 0: the code has not run yet. */
uint64_t osd_advice_alone(struct osd_advice *advice, const struct osd_advice_work *work);

/* Decides, and counts nothing.  home_usec: as the client says.  True: the work is for the client. */
bool osd_advice_is_for_client(struct osd_advice *advice, const struct osd_advice_work *work,
			      uint64_t home_usec, const struct osd_advice_load *load,
			      struct osd_advice_numbers *ret_numbers);
/* A client of the principal has the work back; home_usec: as it said, 0: it said nothing.  push: for the list,
 * copied. */
void osd_advice_pushed(struct osd_advice *advice, const char *principal, uint64_t home_usec,
		       uint64_t now_usec, const struct osd_advice_push *push);

/* A run that completed, as the target has measured it. */
struct osd_advice_run {
	uint64_t now_usec;
	uint64_t run_usec;     /* from its start to its end */
	uint64_t cpu_usec;     /* of that it computed */
	uint64_t starved_usec; /* of that it was ready, and had no processor */
	bool starving_known;   /* all of that; else only what samples saw */
	uint64_t output_bytes;
	double slowdown; /* at its start */
};
/* work->bytes: those that it has read. */
void osd_advice_ran(struct osd_advice *advice, const struct osd_advice_work *work,
		    const struct osd_advice_run *run);

#endif
