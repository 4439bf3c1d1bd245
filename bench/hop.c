/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hop.c -- a call from a sandbox to its proxy and back, without the work (rows
 * rpc_hop_*): the sandbox's own proxy_client.c against a server that only decodes and answers, and
 * beside it the least two processes need who wait for each other, a bare pair of futexes.
 *
 * bench_hop CPU_OF_CALLER CPU_OF_SERVER ROUNDS SAMPLES: prints SAMPLES lines of JSON, nanoseconds
 * of one round trip, [ours, bare]. */
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "proxy_client.h"
#include "wire/proxy_frame.h"

#define ROUNDS_MAX 10000000

/* One direction of the bare pair. */
struct word {
	_Alignas(64) _Atomic uint32_t value;
};

static uint8_t *memory; /* OSD_SHM_BYTES of frames as a sandbox shares them, then the bare pair */

static struct osd_shm *shm(void)
{
	return (struct osd_shm *)memory;
}

static struct word *pair(void)
{
	return (struct word *)(memory + OSD_SHM_BYTES);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0) {
		perror("bench_hop: sched_setaffinity");
		exit(1);
	}
}

/* ---- ours -------------------------------------------------------------------------------------- */

static void serve_calls(void)
{
	struct osd_answer answer = {.code = OSD_ANSWER_OK};
	struct osd_call call;
	uint32_t seen = 0;

	while (osd_shm_wait(&shm()->areas[0].call, &seen, OSD_SHM_FOREVER, NULL) == OSD_SHM_POSTED) {
		if (!osd_call_decode(memory + OSD_SHM_FRAME_AT, &call))
			_exit(1);
		answer.a = call.a;
		osd_answer_encode(&answer, memory + OSD_SHM_FRAME_AT + OSD_FRAME_BYTES);
		osd_shm_post(&shm()->areas[0].answer);
	}
}

static bool call_rounds(unsigned rounds)
{
	struct osd_call call = {.op = OSD_CALL_LENGTH, .partition_id = 1, .object_id = 1};
	struct osd_answer answer;
	const uint8_t *body;

	for (unsigned i = 0; i < rounds; i++) {
		call.a = i;
		if (!osd_proxy_call(&call, NULL, &answer, &body) || answer.a != i)
			return false;
	}
	return true;
}

/* ---- bare -------------------------------------------------------------------------------------- */

static void wait_for(struct word *word, uint32_t wanted)
{
	uint32_t now;

	while ((now = atomic_load(&word->value)) != wanted)
		syscall(SYS_futex, &word->value, FUTEX_WAIT, now, NULL, NULL, 0);
}

static void tell(struct word *word, uint32_t value)
{
	atomic_store(&word->value, value);
	syscall(SYS_futex, &word->value, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void serve_bare(void)
{
	for (uint32_t i = 1;; i++) {
		wait_for(&pair()[0], i);
		tell(&pair()[1], i);
	}
}

static void bare_rounds(unsigned rounds, uint32_t *at)
{
	for (unsigned i = 0; i < rounds; i++) {
		tell(&pair()[0], ++*at);
		wait_for(&pair()[1], *at);
	}
}

/* ---- both, in turn ----------------------------------------------------------------------------- */

static pid_t start(void (*serve)(void), int cpu)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(cpu);
	serve();
	_exit(0);
}

static bool measure(unsigned rounds, unsigned samples)
{
	uint32_t at = 0;

	for (unsigned i = 0; i <= samples; i++) { /* the first is warm-up */
		uint64_t begin = osd_monotonic_nsec(), middle;

		if (!call_rounds(rounds))
			return false;
		middle = osd_monotonic_nsec();
		bare_rounds(rounds, &at);
		if (i)
			printf("[%" PRIu64 ", %" PRIu64 "]\n", (middle - begin) / rounds,
			       (osd_monotonic_nsec() - middle) / rounds);
	}
	return true;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
	pid_t servers[2];
	bool fine;

	if (rounds == 0 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_hop CPU_OF_CALLER CPU_OF_SERVER ROUNDS SAMPLES\n");
		return 2;
	}
	memory = mmap(NULL, OSD_SHM_BYTES + 2 * sizeof(struct word), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	servers[0] = start(serve_calls, (int)strtol(argv[2], NULL, 10));
	servers[1] = start(serve_bare, (int)strtol(argv[2], NULL, 10));
	if (servers[0] < 0 || servers[1] < 0)
		return 1;
	pin((int)strtol(argv[1], NULL, 10));
	osd_proxy_attach(shm(), -1);
	osd_proxy_open(true);
	fine = measure((unsigned)rounds, (unsigned)strtoul(argv[4], NULL, 10));
	for (size_t i = 0; i < 2; i++) {
		kill(servers[i], SIGKILL);
		waitpid(servers[i], NULL, 0);
	}
	return fine ? 0 : 1;
}
