/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_unit.c -- many requests from several threads over a store in memory, while the pool
 * grows and shrinks: each is answered once, writes and reads of one object do not mix, FORMAT
 * OSD waits for what runs and refuses what comes, close waits for everything, long commands leave a
 * worker to short ones, more workers take what waits.  Runs under the
 * thread sanitizer. */
#include "unit/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"
#include "unit/unit_impl.h"
#include "wire/cursor.h"

#define PID	  UINT64_C(0x10000)
#define CLIENTS	  4
#define ROUNDS	  200
#define BLOCK	  512u
#define NOT_READY 0x0404
#define HOLD	  "/tmp/iosd-test-hold-XXXXXX"

struct client {
	pthread_t thread;
	unsigned index;
	uint64_t oid;
};

struct call {
	struct osd_request request;
	uint8_t cdb[OSD_CDB_LENGTH];
	uint8_t in[BLOCK], out[BLOCK];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned done; /* under lock */
};

static struct osd_unit *unit;

static void on_done(struct osd_request *request)
{
	struct call *call = request->front_end;

	pthread_mutex_lock(&call->lock);
	call->done++;
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

static unsigned done_of(struct call *call)
{
	unsigned done;

	pthread_mutex_lock(&call->lock);
	done = call->done;
	pthread_mutex_unlock(&call->lock);
	return done;
}

static void submit(struct call *call, const struct osd_cdb *cdb)
{
	CHECK(osd_cdb_encode(cdb, call->cdb));
	call->request = (struct osd_request){
		.cdb = call->cdb,
		.cdb_length = sizeof(call->cdb),
		.data_out = call->out,
		.data_out_length = cdb->service_action == OSD_SA_WRITE ? cdb->length : 0,
		.data_in = call->in,
		.data_in_capacity = sizeof(call->in),
		.nexus = {1, "iqn.test", NULL, ""},
		.done = on_done,
		.front_end = call,
	};
	call->done = 0;
	osd_unit_submit(unit, NULL, &call->request);
}

static uint8_t wait_done(struct call *call)
{
	pthread_mutex_lock(&call->lock);
	while (!call->done)
		pthread_cond_wait(&call->changed, &call->lock);
	CHECK_EQ(call->done, 1);
	pthread_mutex_unlock(&call->lock);
	return call->request.sam_status;
}

static void call_init(struct call *call)
{
	memset(call, 0, sizeof(*call));
	pthread_mutex_init(&call->lock, NULL);
	pthread_cond_init(&call->changed, NULL);
}

static uint8_t run(struct call *call, uint16_t service_action, uint64_t oid, uint64_t length)
{
	struct osd_cdb cdb = {.service_action = service_action,
			      .partition_id = PID,
			      .object_id = oid,
			      .length = length,
			      .create_count = service_action == OSD_SA_CREATE ? 1 : 0,
			      .attributes.format = OSD_CDBFMT_LIST};

	if (service_action == OSD_SA_CREATE)
		cdb.length = 0;
	submit(call, &cdb);
	return wait_done(call);
}

/* Writes one letter, reads: the block is of one letter, from whichever client. */
static void *client_main(void *argument)
{
	struct client *client = argument;
	struct call call;

	call_init(&call);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t oid = i % 3 ? client->oid : PID; /* PID: the object all share */

		memset(call.out, 'a' + (int)client->index, sizeof(call.out));
		CHECK_EQ(run(&call, OSD_SA_WRITE, oid, BLOCK), OSD_SAM_GOOD);
		CHECK_EQ(run(&call, OSD_SA_READ, oid, BLOCK), OSD_SAM_GOOD);
		CHECK_EQ(call.request.data_in_length, BLOCK);
		for (unsigned k = 1; k < BLOCK; k++)
			CHECK_EQ(call.in[k], call.in[0]);
	}
	return NULL;
}

static void test_load(void)
{
	struct client clients[CLIENTS];
	struct call call;

	call_init(&call);
	CHECK_EQ(run(&call, OSD_SA_CREATE_PARTITION, 0, 0), OSD_SAM_GOOD);
	CHECK_EQ(run(&call, OSD_SA_CREATE, PID, 0), OSD_SAM_GOOD);
	for (unsigned i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client){.index = i, .oid = PID + 1 + i};
		CHECK_EQ(run(&call, OSD_SA_CREATE, clients[i].oid, 0), OSD_SAM_GOOD);
		CHECK(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]) == 0);
	}
	for (unsigned i = 0; i < 20; i++)
		CHECK(osd_unit_set_workers(unit, 1 + i % 5) >= 1);
	for (unsigned i = 0; i < CLIENTS; i++)
		pthread_join(clients[i].thread, NULL);
}

static void *reader_main(void *argument)
{
	struct call call;

	(void)argument;
	call_init(&call);
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (run(&call, OSD_SA_READ, PID, BLOCK) == OSD_SAM_GOOD)
			continue;
		/* Either too early or too late. */
		CHECK(osd_get_be(call.request.sense + 2, 2) == NOT_READY ||
		      osd_get_be(call.request.sense + 2, 2) == 0x2400);
	}
	return NULL;
}

static void test_format(void)
{
	pthread_t readers[2];
	struct call call;

	call_init(&call);
	for (unsigned i = 0; i < 2; i++)
		CHECK(pthread_create(&readers[i], NULL, reader_main, NULL) == 0);
	CHECK_EQ(run(&call, OSD_SA_FORMAT_OSD, 0, 0), OSD_SAM_GOOD);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	CHECK_EQ(run(&call, OSD_SA_READ, PID, BLOCK), OSD_SAM_CHECK_CONDITION);
}

/* Close with requests in the queue: all of them are answered. */
static void test_close(void)
{
	static struct call calls[32];
	struct osd_cdb cdb = {.service_action = OSD_SA_LIST,
			      .length = BLOCK,
			      .attributes.format = OSD_CDBFMT_LIST};

	for (unsigned i = 0; i < 32; i++) {
		call_init(&calls[i]);
		submit(&calls[i], &cdb);
	}
	osd_unit_close(unit);
	for (unsigned i = 0; i < 32; i++) {
		CHECK_EQ(calls[i].done, 1);
		CHECK_EQ(calls[i].request.sam_status, OSD_SAM_GOOD);
	}
}

static void open_unit(const char *options)
{
	struct osd_config config;
	char message[256];

	CHECK_EQ(osd_config_parse(options, NULL, message, &config), OSD_OK);
	if (osd_unit_open(&config, message, &unit) != OSD_OK) {
		fprintf(stderr, "%s\n", message);
		exit(1);
	}
	osd_config_release(&config);
}

/* Opens a unit with five objects, in which no PUNCH ends while the file exists; its name replaces HOLD. */
static void open_held(unsigned workers, char hold[sizeof(HOLD)])
{
	char options[128];
	struct call call;
	int fd = mkstemp(hold);

	CHECK(fd >= 0);
	close(fd);
	snprintf(options, sizeof(options), "memory=1;workers=%u;hold=%s", workers, hold);
	open_unit(options);
	call_init(&call);
	CHECK_EQ(run(&call, OSD_SA_CREATE_PARTITION, 0, 0), OSD_SAM_GOOD);
	for (unsigned i = 0; i < 5; i++) {
		CHECK_EQ(run(&call, OSD_SA_CREATE, PID + i, 0), OSD_SAM_GOOD);
		CHECK_EQ(run(&call, OSD_SA_WRITE, PID + i, BLOCK), OSD_SAM_GOOD);
	}
}

static void submit_punch(struct call *call, uint64_t oid)
{
	const struct osd_cdb cdb = {.service_action = OSD_SA_PUNCH,
				    .partition_id = PID,
				    .object_id = oid,
				    .starting_byte_address = 10,
				    .length = 20,
				    .attributes.format = OSD_CDBFMT_LIST};

	call_init(call);
	submit(call, &cdb);
}

/* More PUNCHes than workers; of some the object is the same. */
static void test_long_commands(unsigned workers)
{
	static struct call punches[8];
	char hold[] = HOLD;
	struct call call;

	open_held(workers, hold);
	call_init(&call);
	for (unsigned i = 0; i < 8; i++)
		submit_punch(&punches[i], PID + i % 4);
	for (unsigned i = 0; i < 10; i++) {
		CHECK_EQ(run(&call, OSD_SA_WRITE, PID + 4, BLOCK), OSD_SAM_GOOD);
		CHECK_EQ(run(&call, OSD_SA_READ, PID + 4, BLOCK), OSD_SAM_GOOD);
	}
	for (unsigned i = 0; i < 8; i++)
		CHECK_EQ(done_of(&punches[i]), 0);
	CHECK_EQ(unlink(hold), 0);
	for (unsigned i = 0; i < 8; i++)
		CHECK_EQ(wait_done(&punches[i]), OSD_SAM_GOOD);
	osd_unit_close(unit);
}

static void await_busy(unsigned workers)
{
	struct osd_unit_load load;

	osd_unit_load(unit, &load);
	while (load.busy != workers) {
		sched_yield();
		osd_unit_load(unit, &load);
	}
}

/* All threads are busy with long commands, and another waits.  More workers start it at once, although nothing else
 * comes. */
static void test_more_workers(void)
{
	static struct call punches[3];
	char hold[] = HOLD;
	bool idle = false;

	open_held(1, hold);
	while (!idle) {
		sched_yield();
		osd_lock(&unit->lock);
		idle = unit->idle_workers == 2;
		if (idle) {
			unit->wanted = 3; /* of which two run long commands */
			unit->most_of[OSD_SPAN_MOVES] = 3; /* on a host with few processors, too */
		}
		osd_unlock(&unit->lock);
	}
	for (unsigned i = 0; i < 3; i++) {
		submit_punch(&punches[i], PID + i);
		await_busy(i < 2 ? i + 1 : 2);
	}
	CHECK_EQ(osd_unit_set_workers(unit, 4), 4);
	await_busy(3);
	CHECK_EQ(unlink(hold), 0);
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ(wait_done(&punches[i]), OSD_SAM_GOOD);
	osd_unit_close(unit);
}

int main(void)
{
	open_unit("memory=1;workers=3");
	test_load();
	test_format();
	test_close();
	for (unsigned workers = 1; workers <= 3; workers++)
		test_long_commands(workers);
	test_more_workers();
	return 0;
}
