/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_control.c -- the thread of the control socket: peers come, ask, watch, hang up in the middle and say
 * nonsense while commands run and workers come and go; it ends with peers connected.  Runs under the
 * thread sanitizer; what requests mean is tested over the socket (tests/control). */
#include "unit/unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/test.h"
#include "base/util.h"
#include "unit/control.h"
#include "wire/control_frame.h"

#define PEERS  4
#define ROUNDS 60

static char folder[] = "/tmp/osd-control-XXXXXX";
static char path[sizeof(folder) + 8];
static struct osd_unit *unit;
static _Atomic bool over;

static int dial(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, path, sizeof(path));
	CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

static void say(int fd, enum osd_control_type type, const char *text)
{
	struct osd_control_frame frame = {.type = (uint16_t)type,
					  .serial = 1,
					  .payload = text,
					  .payload_bytes = (uint32_t)strlen(text)};
	uint8_t bytes[512];
	size_t length = osd_control_encode(&frame, bytes, sizeof(bytes));

	CHECK(length && send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length);
}

/* The type of the answer; what is pushed is passed over. */
static uint16_t hear(int fd)
{
	static _Thread_local uint8_t bytes[OSD_CONTROL_MAX];
	struct osd_control_frame frame;
	ssize_t length;

	do {
		length = recv(fd, bytes, sizeof(bytes), 0);
		CHECK(length > 0);
		CHECK_EQ(osd_control_decode(bytes, (size_t)length, &frame), OSD_CONTROL_FINE);
	} while (frame.serial == 0);
	return frame.type;
}

static uint16_t ask(int fd, enum osd_control_type type, const char *text)
{
	say(fd, type, text);
	return hear(fd);
}

static void *peer_main(void *argument)
{
	const char *hello = argument;

	for (unsigned i = 0; i < ROUNDS; i++) {
		int fd = dial();

		CHECK_EQ(ask(fd, OSD_CONTROL_HELLO, hello), OSD_CONTROL_WELCOME);
		CHECK_EQ(ask(fd, OSD_CONTROL_WATCH, "interval_ms=20\n"), OSD_CONTROL_OK);
		CHECK_EQ(ask(fd, OSD_CONTROL_SNAPSHOT, ""), OSD_CONTROL_SNAPSHOT_IS);
		ask(fd, OSD_CONTROL_WORKERS, i % 2 ? "count=1\n" : "count=7\n");
		if (i % 3)
			say(fd, OSD_CONTROL_SNAPSHOT, ""); /* and does not wait for the answer */
		else
			CHECK(send(fd, "nonsense", 8, MSG_NOSIGNAL) == 8);
		close(fd);
	}
	return NULL;
}

/* Jobs are counted from any thread. */
static void *jobs_main(void *argument)
{
	while (!over) {
		osd_control_jobs_wait(argument);
		usleep(500);
	}
	return NULL;
}

static struct osd_unit *open_unit(void)
{
	struct osd_unit *opened;
	struct osd_config config;
	char message[256], options[128];

	snprintf(options, sizeof(options), "memory=1;control=%s", path);
	CHECK_EQ(osd_config_parse(options, NULL, message, &config), OSD_OK);
	CHECK_EQ(osd_unit_open(&config, message, &opened), OSD_OK);
	osd_config_release(&config);
	return opened;
}

static void test_peers(void)
{
	static char hellos[][48] = {
		"role=tool\nwho=a\nversions=1-1\n", "role=manager\nwho=b\nversions=1-1\n",
		"role=manager\nwho=c\nversions=1-1\n", "role=tool\nwho=d\nversions=1-1\n"};
	pthread_t peers[PEERS];

	for (unsigned i = 0; i < PEERS; i++)
		CHECK(!pthread_create(&peers[i], NULL, peer_main, hellos[i]));
	for (unsigned i = 0; i < PEERS; i++)
		pthread_join(peers[i], NULL);
}

/* Of a control socket alone: jobs begin to wait from other threads until it is freed. */
static void test_waiting_jobs(void)
{
	struct osd_control *control = osd_control_create(), *late = osd_control_create();
	struct osd_control_targets none = {.unit = NULL};
	char message[256];
	pthread_t jobs;
	int fd;

	CHECK(control && late);
	CHECK(!pthread_create(&jobs, NULL, jobs_main, control));
	CHECK_EQ(osd_control_start(control, path, &none, message), OSD_OK);
	CHECK_EQ(osd_control_start(late, path, &none, message), OSD_E_PARAM_FIELD);
	CHECK(strstr(message, "another target listens there"));
	osd_control_stop(late);
	osd_control_free(late);
	fd = dial();
	CHECK_EQ(ask(fd, OSD_CONTROL_HELLO, "role=tool\nwho=a\nversions=1-1\n"),
		 OSD_CONTROL_WELCOME);
	osd_control_stop(control);
	over = true;
	pthread_join(jobs, NULL);
	osd_control_free(control);
	close(fd);
}

int main(void)
{
	struct stat there;
	int fd;

	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	test_waiting_jobs();
	unit = open_unit();
	CHECK(stat(path, &there) == 0 && (there.st_mode & 0777) == 0600);
	test_peers();
	fd = dial(); /* is there when it ends */
	CHECK_EQ(ask(fd, OSD_CONTROL_HELLO, "role=tool\nwho=a\nversions=1-1\n"),
		 OSD_CONTROL_WELCOME);
	osd_unit_close(unit);
	close(fd);
	CHECK(stat(path, &there) < 0);
	CHECK(rmdir(folder) == 0);
	return 0;
}
