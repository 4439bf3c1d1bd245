/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_task_list.c -- which commands a task management function covers, and when its asker goes on. */
#include "unit/task_list.h"

#include "base/test.h"

#define TASKS 6

static struct osd_tasks tasks;
static struct osd_request requests[TASKS];

/* Nexus 1: tags 10, 11, 12; nexus 2: tags 10, 11, 12; in this order. */
static void begin(void)
{
	memset(&tasks, 0, sizeof(tasks));
	memset(requests, 0, sizeof(requests));
	for (unsigned i = 0; i < TASKS; i++) {
		requests[i].nexus.id = 1 + i / 3;
		requests[i].task_tag = 10 + i % 3;
		osd_tasks_add(&tasks, &requests[i]);
	}
}

static enum osd_status manage(struct osd_request *asker, uint8_t function, uint64_t tag,
			      enum osd_task_response *response)
{
	struct osd_request *resumed = NULL;
	enum osd_status status =
		osd_tasks_manage(&tasks, asker, function, tag, response, &resumed);

	CHECK(resumed == NULL);
	return status;
}

/* Which are aborted, as a mask. */
static unsigned aborted(void)
{
	unsigned mask = 0;

	for (unsigned i = 0; i < TASKS; i++)
		mask |= (unsigned)requests[i].aborted << i;
	return mask;
}

/* Ends one command; returns who goes on. */
static struct osd_request *end(struct osd_request *request)
{
	struct osd_request *resumed = NULL;

	osd_tasks_remove(&request->task);
	osd_tasks_resume_askers(&tasks, &resumed);
	return resumed;
}

static void test_abort_task(void)
{
	enum osd_task_response response;

	begin();
	CHECK_EQ(manage(&requests[5], OSD_TASK_ABORT, 11, &response), OSD_PENDING);
	CHECK_EQ(response, OSD_TASK_COMPLETE);
	CHECK_EQ(aborted(), 1u << 4);
	CHECK(end(&requests[3]) == NULL);
	CHECK(end(&requests[4]) == &requests[5]);
	CHECK_EQ(requests[5].fault.status, OSD_OK);
	CHECK_EQ(manage(&requests[5], OSD_TASK_ABORT, 99, &response), OSD_OK);
	CHECK_EQ(response, OSD_TASK_COMPLETE);
	CHECK_EQ(manage(&requests[5], OSD_TASK_ABORT, 12, &response), OSD_OK); /* itself */
	CHECK(!requests[5].aborted);
}

/* A command ends when it has been answered, not before. */
static void test_being_answered(void)
{
	enum osd_task_response response;
	struct osd_task stand_in;

	for (unsigned i = 0; i < TASKS - 1; i++) {
		struct osd_request *resumed = NULL;

		begin();
		osd_tasks_replace(&requests[i], &stand_in);
		memset(&requests[i], 0xff, sizeof(requests[i])); /* the front end's again */
		CHECK_EQ(manage(&requests[5], OSD_TASK_LU_RESET, 0, &response), OSD_PENDING);
		for (unsigned j = 0; j < TASKS - 1; j++)
			CHECK(j == i || end(&requests[j]) == NULL);
		osd_tasks_remove(&stand_in);
		osd_tasks_resume_askers(&tasks, &resumed);
		CHECK(resumed == &requests[5]);
	}
}

static void test_abort_set(void)
{
	enum osd_task_response response;

	begin();
	CHECK_EQ(manage(&requests[4], OSD_TASK_ABORT_SET, 0, &response), OSD_PENDING);
	CHECK_EQ(aborted(), 1u << 3); /* 5 came later */
	CHECK(end(&requests[5]) == NULL);
	CHECK(end(&requests[3]) == &requests[4]);
}

static void test_reset(void)
{
	enum osd_task_response response;

	begin();
	CHECK_EQ(manage(&requests[5], OSD_TASK_LU_RESET, 0, &response), OSD_PENDING);
	CHECK_EQ(aborted(), 0x1f);
	for (unsigned i = 0; i < 4; i++)
		CHECK(end(&requests[i]) == NULL);
	CHECK(end(&requests[4]) == &requests[5]);
}

/* An asker that is aborted itself does not wait any more. */
static void test_aborted_asker(void)
{
	struct osd_request *resumed = NULL;
	enum osd_task_response response;

	begin();
	CHECK_EQ(manage(&requests[1], OSD_TASK_ABORT, 10, &response), OSD_PENDING);
	CHECK_EQ(osd_tasks_manage(&tasks, &requests[5], OSD_TASK_LU_RESET, 0, &response, &resumed),
		 OSD_PENDING);
	CHECK(resumed == &requests[1] && resumed->next == NULL);
	CHECK_EQ(requests[1].fault.status, OSD_E_TASK_ABORTED);
	CHECK_EQ(tasks.asking, 1);
	requests[4].aborted = true;
	CHECK_EQ(manage(&requests[4], OSD_TASK_ABORT, 10, &response), OSD_E_TASK_ABORTED);
}

static void test_query(void)
{
	enum osd_task_response response;

	begin();
	CHECK_EQ(manage(&requests[5], OSD_TASK_QUERY, 10, &response), OSD_OK);
	CHECK_EQ(response, OSD_TASK_SUCCEEDED);
	CHECK_EQ(manage(&requests[5], OSD_TASK_QUERY, 12, &response), OSD_OK);
	CHECK_EQ(response, OSD_TASK_COMPLETE);
	CHECK_EQ(manage(&requests[5], OSD_TASK_QUERY_SET, 0, &response), OSD_OK);
	CHECK_EQ(response, OSD_TASK_SUCCEEDED);
	CHECK_EQ(manage(&requests[0], OSD_TASK_QUERY_SET, 0, &response), OSD_OK);
	CHECK_EQ(response, OSD_TASK_COMPLETE);
	CHECK_EQ(manage(&requests[0], OSD_TASK_NEXUS_RESET, 0, &response), OSD_OK);
	CHECK_EQ(response, OSD_TASK_REJECTED);
	CHECK_EQ(aborted(), 0);
}

int main(void)
{
	test_abort_task();
	test_being_answered();
	test_abort_set();
	test_reset();
	test_aborted_asker();
	test_query();
	return 0;
}
