/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_job_output.c -- what the target reads from a job's pipes, and when reading ends. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "exec/run/run.h"

static struct osd_objects *objects;
static struct osd_object_id surrogate;

static void make_surrogate(void)
{
	struct osd_objects_config config = {0};
	char message[256];
	struct osd_txn *txn;

	CHECK(osd_objects_open(&config, message, &objects) == OSD_OK);
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_partition_create(txn, 0, &surrogate.partition_id) == OSD_OK);
	CHECK(osd_user_object_create(txn, surrogate.partition_id, 0, 1, &surrogate.object_id) ==
	      OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static void make_pipe(int pipe_fds[2])
{
	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	CHECK(fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK) == 0);
}

static void put_text(int fd, const char *text)
{
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Finish keeps everything printed before the end, and nothing printed later. */
static void test_finish_reads_what_is_there(void)
{
	struct osd_output output;
	uint8_t errors[OSD_JOB_PAYLOAD_MAX];
	size_t length;
	uint64_t total;
	int out[2], err[2];

	make_pipe(out);
	make_pipe(err);
	osd_output_init(&output, objects, surrogate, 5);
	put_text(out[1], "hello, world");
	put_text(err[1], "oh");
	osd_output_finish(&output, out[0], err[0]);
	CHECK(output.stdout_length == 5 && output.over_limit); /* its limit */
	CHECK(osd_output_errors(&output, errors, &length, &total));
	CHECK(length == 2 && total == 2 && memcmp(errors, "oh", 2) == 0);
	put_text(err[1], "too late");
	CHECK(!osd_output_drain(&output, out[0], err[0]));
	CHECK(output.stderr_length == 2);
	osd_output_release(&output);
	for (int i = 0; i < 2; i++)
		close(out[i]), close(err[i]);
}

/* Reading stderr during the run returns all of it, or its head and tail, and the total length. */
static void test_errors_while_it_runs(void)
{
	static const size_t totals[] = {1,
					OSD_JOB_STDERR_HEAD,
					OSD_JOB_STDERR_HEAD + 1,
					OSD_JOB_PAYLOAD_MAX - 1,
					OSD_JOB_PAYLOAD_MAX,
					OSD_JOB_PAYLOAD_MAX + 1,
					2 * OSD_JOB_PAYLOAD_MAX,
					250007};
	struct osd_output output;
	uint8_t kept[OSD_JOB_PAYLOAD_MAX];
	size_t length, seen = 0;
	uint64_t total;
	int err[2];

	make_pipe(err);
	osd_output_init(&output, objects, surrogate, 5);
	CHECK(osd_output_errors(&output, kept, &length, &total) && length == 0 && total == 0);
	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		for (uint8_t byte; seen < totals[i]; seen++) {
			byte = (uint8_t)(seen % 251);
			CHECK(write(err[1], &byte, 1) == 1);
			if (seen % 1000 == 999 || seen + 1 == totals[i])
				osd_output_drain(&output, -1, err[0]);
		}
		CHECK(osd_output_errors(&output, kept, &length, &total) && total == seen);
		CHECK(length == (seen < sizeof(kept) ? seen : sizeof(kept)));
		for (size_t at = 0; at < length; at++)
			CHECK(kept[at] ==
			      (at < OSD_JOB_STDERR_HEAD ? at : seen - length + at) % 251);
	}
	osd_output_finish(&output, -1, err[0]);
	osd_output_release(&output);
	CHECK(!osd_output_errors(&output, kept, &length, &total) && length == 0);
	osd_output_destroy(&output);
	close(err[0]), close(err[1]);
}

static void *flood(void *arg)
{
	static const char bytes[4096];
	int fd = *(const int *)arg;

	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	return NULL;
}

/* A process that writes without end does not delay the end of the job. */
static void test_finish_under_a_flood(void)
{
	struct osd_output output;
	pthread_t thread;
	int err[2];

	make_pipe(err);
	osd_output_init(&output, objects, surrogate, 5);
	CHECK(pthread_create(&thread, NULL, flood, &err[1]) == 0);
	while (output.stderr_length == 0)
		osd_output_drain(&output, -1, err[0]);
	osd_output_finish(&output, -1, err[0]);
	osd_output_release(&output);
	close(err[0]); /* ends the flood */
	CHECK(pthread_join(thread, NULL) == 0);
	close(err[1]);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	make_surrogate();
	test_finish_reads_what_is_there();
	test_errors_while_it_runs();
	test_finish_under_a_flood();
	osd_objects_close(objects);
	return 0;
}
