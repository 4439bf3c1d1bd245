/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_array.c -- what an array shows of its members. */
#include "base/test.h"
#include "exec/exec_impl.h"

static struct osd_exec exec;
static struct osd_pool pool;

static struct osd_job *make_array(uint8_t state, uint32_t members)
{
	struct osd_job_record record = {.id = {0x10000, 0x10000},
					.flags = OSD_JOB_ARRAY,
					.state = state,
					.array = {.object_id = 0x10000, .count = members}};
	struct osd_job *head = osd_job_create(&record, &pool);

	CHECK(head && osd_array_create(head) == OSD_OK);
	return head;
}

/* Returns: the array's state then. */
static uint8_t note(const struct osd_job *head, uint32_t index, uint8_t state)
{
	struct osd_job_record member = {.state = state, .array = {.index = index}};

	osd_array_note_ended(head->array, &member);
	return osd_array_state(head->array);
}

/* Its members were released one by one: it is not HELD again when the last of them has been cancelled,
 * until it ends itself. */
static void test_not_held_again(void)
{
	struct osd_job *head = make_array(OSD_STATE_HELD, 2);

	CHECK(osd_array_state(head->array) == OSD_STATE_HELD);
	CHECK(note(head, 0, OSD_STATE_HELD) == OSD_STATE_HELD);
	CHECK(note(head, 1, OSD_STATE_HELD) == OSD_STATE_HELD);
	CHECK(note(head, 1, OSD_STATE_QUEUED) == OSD_STATE_QUEUED);
	CHECK(note(head, 0, OSD_STATE_QUEUED) == OSD_STATE_QUEUED);
	CHECK(note(head, 1, OSD_STATE_CANCELLED) == OSD_STATE_QUEUED);
	CHECK(note(head, 0, OSD_STATE_CANCELLED) == OSD_STATE_QUEUED);
	osd_job_unref(head);
}

static void test_stays_held(void)
{
	struct osd_job *head = make_array(OSD_STATE_QUEUED, 1);

	CHECK(note(head, 0, OSD_STATE_QUEUED) == OSD_STATE_QUEUED);
	CHECK(note(head, 0, OSD_STATE_HELD) == OSD_STATE_HELD);
	CHECK(note(head, 0, OSD_STATE_CANCELLED) == OSD_STATE_HELD);
	osd_job_unref(head);
}

int main(void)
{
	pthread_cond_init(&exec.changed, NULL);
	pool.exec = &exec;
	test_not_held_again();
	test_stays_held();
	return 0;
}
