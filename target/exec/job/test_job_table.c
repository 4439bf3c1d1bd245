/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_job_table.c -- every event in every state, against a table typed by hand; lookup; limits;
 * reasons. */
#include <string.h>

#include "base/test.h"
#include "base/util.h"
#include "exec/job/job.h"

static const uint8_t states[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x10,
				 0x11, 0x12, 0x13, 0x14, 0x15, 0x16};

/* Rows: state; columns: HOLD RELEASE TAKE HAND_OVER COLLECT AGAIN COMPLETE FAIL CANCEL TIME_OUT
 * RUN_OUT EXCEED LOSE; 0: refused. */
static const uint8_t expected[][OSD_JOB_EVENT_COUNT] = {
	{0x02, 0, 0x03, 0, 0, 0, 0, 0x11, 0x12, 0, 0, 0, 0},		 /* QUEUED */
	{0, 0x01, 0, 0, 0, 0, 0, 0x11, 0x12, 0, 0, 0, 0},		 /* HELD */
	{0, 0, 0, 0x04, 0x05, 0x01, 0, 0, 0x12, 0, 0, 0, 0x16},		 /* STARTING */
	{0, 0, 0, 0, 0x05, 0x01, 0, 0, 0x12, 0, 0, 0, 0x16},		 /* RUNNING */
	{0, 0, 0, 0, 0, 0x01, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16}, /* COMPLETING */
};

static void test_transitions(void)
{
	for (size_t s = 0; s < OSD_ARRAY_SIZE(states); s++) {
		for (unsigned event = 0; event < OSD_JOB_EVENT_COUNT; event++) {
			uint8_t want = s < OSD_ARRAY_SIZE(expected) ? expected[s][event] : 0;
			enum osd_job_state to = 0;
			bool allowed = osd_job_transition(states[s], event, &to);

			CHECK(allowed == (want != 0));
			CHECK(to == want);
		}
	}
	CHECK(osd_job_event_to(OSD_STATE_TIMEOUT) == OSD_JOB_EVENT_TIME_OUT);
	CHECK(osd_job_event_to(OSD_STATE_COMPLETED) == OSD_JOB_EVENT_COMPLETE);
}

/* The states reachable in one step, as bits of their place in states[]. */
static unsigned reached_from(size_t from)
{
	unsigned found = 1u << from, before = 0;

	while (found != before) {
		before = found;
		for (size_t s = 0; s < OSD_ARRAY_SIZE(states); s++)
			for (unsigned event = 0; event < OSD_JOB_EVENT_COUNT; event++) {
				enum osd_job_state to = 0;

				if (!(found >> s & 1) || !osd_job_transition(states[s], event, &to))
					continue;
				for (size_t t = 0; t < OSD_ARRAY_SIZE(states); t++)
					found |= (states[t] == to) << t;
			}
	}
	return found;
}

/* Every state can be reached, and every state but a terminal one has a way out.  Each terminal
 * state has one event that leads to it, and this event leads to no other state. */
static void test_reachability(void)
{
	const unsigned all = (1u << OSD_ARRAY_SIZE(states)) - 1;

	CHECK(reached_from(0) == all);
	for (size_t s = 0; s < OSD_ARRAY_SIZE(states); s++) {
		bool terminal = osd_job_state_terminal(states[s]);

		CHECK(terminal ? reached_from(s) == 1u << s : reached_from(s) == all);
		for (size_t from = 0; terminal && from < OSD_ARRAY_SIZE(states); from++) {
			enum osd_job_state to = states[s];

			osd_job_transition(states[from], osd_job_event_to(states[s]), &to);
			CHECK(to == states[s]);
		}
	}
}

static void test_lookup(void)
{
	enum { COUNT = 3000 };
	static struct osd_job_node nodes[COUNT];
	struct osd_job_node *node = NULL;
	struct osd_job_table table;
	size_t seen = 0;

	CHECK(osd_job_table_init(&table) == OSD_OK);
	for (size_t i = 0; i < COUNT; i++) {
		nodes[i].id = (struct osd_object_id){0x10000 + i % 3, 0x10000 + i};
		osd_job_table_insert(&table, &nodes[i]);
	}
	for (size_t i = 0; i < COUNT; i++)
		CHECK(osd_job_table_find(&table, nodes[i].id) == &nodes[i]);
	for (size_t i = 0; i < COUNT; i += 2)
		osd_job_table_remove(&table, &nodes[i]);
	for (size_t i = 0; i < COUNT; i++)
		CHECK(osd_job_table_find(&table, nodes[i].id) == (i % 2 ? &nodes[i] : NULL));
	while ((node = osd_job_table_next(&table, node)))
		seen += node == &nodes[node->id.object_id - 0x10000];
	CHECK(seen == COUNT / 2 && table.count == COUNT / 2);
	osd_job_table_release(&table);
}

static void test_reasons(void)
{
	CHECK(osd_job_reason_info(304)->terminal_state == OSD_STATE_LIMIT_EXCEEDED);
	CHECK(osd_job_reason_info(12345)->number == OSD_REASON_INTERNAL);
	CHECK(osd_job_reason_status(0) == OSD_OK);
	CHECK(osd_job_reason_status(107) == OSD_E_JOB_QUEUE);
	CHECK(osd_job_reason_status(201) == OSD_E_JOB_SCRIPT);
	CHECK(osd_job_reason_status(301) == OSD_E_JOB_LIMIT);
	CHECK(osd_job_reason_status(605) == OSD_E_JOB_SECURITY);
	CHECK(osd_job_reason_status(901) == OSD_E_JOB_INTERNAL);
	CHECK(strcmp(osd_job_state_name(0x16), "SANDBOX_LOST") == 0);
#define X(value, symbol, state, label, hint)                                                       \
	CHECK(strlen(hint) <= 512 && strlen(label) <= 64);                                         \
	CHECK(osd_job_reason_info(value)->number == (value));
	OSD_JOB_REASONS(X)
#undef X
}

int main(void)
{
	test_transitions();
	test_reachability();
	test_lookup();
	test_reasons();
	return 0;
}
