/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_shm_wait.c -- two threads play both ends of a call: no post is lost, a kick ends a wait, a
 * wait without a post times out. */
#include "base/shm_wait.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 20000

#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static struct osd_shm_line call, answer, quiet;
static uint32_t request, reply; /* plain words: the lines order them */
static _Atomic bool dead;

static void *serve(void *unused)
{
	uint32_t seen = 0;

	(void)unused;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		REQUIRE(osd_shm_wait(&call, &seen, OSD_SHM_FOREVER, NULL) == OSD_SHM_POSTED);
		reply = request + 1;
		osd_shm_post(&answer);
	}
	atomic_store(&dead, true);
	osd_shm_kick(&quiet);
	return NULL;
}

int main(void)
{
	uint32_t answer_seen = 0, quiet_seen = 0;
	pthread_t server;

	REQUIRE(osd_shm_wait(&quiet, &quiet_seen, 1000, &dead) == OSD_SHM_TIMEOUT);
	REQUIRE(pthread_create(&server, NULL, serve, NULL) == 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		request = i;
		osd_shm_post(&call);
		REQUIRE(osd_shm_wait(&answer, &answer_seen, OSD_SHM_FOREVER, NULL) == OSD_SHM_POSTED);
		REQUIRE(reply == i + 1);
	}
	REQUIRE(osd_shm_wait(&quiet, &quiet_seen, OSD_SHM_FOREVER, &dead) == OSD_SHM_DEAD);
	REQUIRE(pthread_join(server, NULL) == 0);
	return 0;
}
