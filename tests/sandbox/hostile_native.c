/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hostile_native.c -- a function of the engine native as an attacker writes it: each entry point tries one kind of
 * attack.  Tried in a bare sandbox by test_native.py, and over the wire by tests/exec/test_native.py.
 *
 * An entry point that only tries what must be denied returns the number of attempts that came through, and prints
 * their names.  All attempts do no harm if they come through. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "osd.h"
#include "wire/proxy_frame.h"

#define BAD	(-1L) /* a descriptor, pointer or id that is nobody's */
#define PAGE	4096u
#define MIB	(1u << 20)
#define JOB_FD	4

/* ---- system calls ---------------------------------------------------------------------------- */

struct attempt {
	const char *name;
	long number, arguments[6];
};

#define TRY(name, ...) {#name, SYS_##name, {__VA_ARGS__}}

/* Without the filter these fail with another error than EPERM, or do nothing. */
static const struct attempt attempts[] = {
	TRY(execve, BAD, BAD, BAD),
	TRY(execveat, BAD, BAD, BAD, BAD, BAD),
	TRY(clone, CLONE_NEWUSER | SIGCHLD, 0, BAD, BAD, 0),
	TRY(kill, BAD, 0),
	TRY(kill, 1, 0),
	TRY(tkill, 1, 0),
	TRY(tgkill, 1, 1, 0),
	TRY(rt_sigqueueinfo, BAD, 0, BAD),
	TRY(pidfd_open, 1, 0),
	TRY(pidfd_getfd, BAD, 0, 0),
	TRY(ptrace, PTRACE_TRACEME, 0, 0, 0),
	TRY(ptrace, PTRACE_ATTACH, BAD, 0, 0),
	TRY(process_vm_readv, 1, 0, 0, 0, 0, 0),
	TRY(process_vm_writev, 1, 0, 0, 0, 0, 0),
	TRY(process_madvise, BAD, 0, 0, 0, 0),
	TRY(socket, AF_INET, SOCK_STREAM, 0),
	TRY(socket, AF_UNIX, SOCK_STREAM, 0),
	TRY(socket, AF_NETLINK, SOCK_RAW, 0),
	TRY(socket, AF_VSOCK, SOCK_STREAM, 0),
	TRY(socket, AF_ALG, SOCK_SEQPACKET, 0),
	TRY(socketpair, AF_UNIX, SOCK_STREAM, 0, BAD),
	TRY(connect, JOB_FD, BAD, 0),
	TRY(bind, JOB_FD, BAD, 0),
	TRY(listen, JOB_FD, 0),
	TRY(sendmsg, JOB_FD, BAD, 0),
	TRY(sendto, JOB_FD, BAD, 0, 0, 0, 0),
	TRY(recvmsg, JOB_FD + 1, BAD, 0),
	TRY(setsockopt, JOB_FD, 0, 0, 0, 0),
	TRY(io_uring_setup, 0, BAD),
	TRY(io_setup, 0, BAD),
	TRY(mount, BAD, BAD, BAD, 0, 0),
	TRY(umount2, BAD, 0),
	TRY(fsopen, BAD, 0),
	TRY(open_tree, BAD, BAD, 0),
	TRY(move_mount, BAD, BAD, BAD, BAD, 0),
	TRY(pivot_root, BAD, BAD),
	TRY(chroot, BAD),
	TRY(chdir, BAD),
	TRY(unshare, 0),
	TRY(setns, BAD, 0),
	TRY(bpf, BAD, BAD, 0),
	TRY(perf_event_open, BAD, BAD, BAD, BAD, BAD),
	TRY(userfaultfd, BAD),
	TRY(memfd_create, BAD, 0),
	TRY(keyctl, BAD, 0, 0, 0, 0),
	TRY(add_key, BAD, BAD, BAD, 0, 0),
	TRY(seccomp, 1, 0, BAD),
	TRY(seccomp, 1, 8, BAD),
	TRY(prctl, BAD, 0, 0, 0, 0),
	TRY(prlimit64, 0, 0, 0, 0),
	TRY(setrlimit, BAD, BAD),
	TRY(setuid, BAD),
	TRY(setresuid, BAD, BAD, BAD),
	TRY(setgroups, BAD, BAD),
	TRY(personality, 0xffffffff),
	TRY(init_module, BAD, 0, BAD),
	TRY(finit_module, BAD, BAD, 0),
	TRY(kexec_load, BAD, BAD, BAD, BAD),
	TRY(reboot, 0, 0, 0, 0),
	TRY(syslog, BAD, 0, 0),
	TRY(open_by_handle_at, BAD, BAD, 0),
	TRY(name_to_handle_at, BAD, BAD, BAD, BAD, 0),
	TRY(fanotify_init, BAD, 0),
	TRY(inotify_init1, BAD),
	TRY(shmget, BAD, 0, 0),
	TRY(shmat, BAD, BAD, 0),
	TRY(mq_open, BAD, 0, 0, 0),
	TRY(semget, BAD, 0, 0),
	TRY(timer_create, BAD, BAD, BAD),
	TRY(setitimer, BAD, BAD, BAD),
	TRY(sched_setaffinity, 0, 0, BAD),
	TRY(sched_setscheduler, 0, BAD, BAD),
	TRY(setpriority, BAD, 0, 0),
	TRY(ioprio_set, BAD, 0, 0),
	TRY(linkat, BAD, BAD, BAD, BAD, 0),
	TRY(symlinkat, BAD, BAD, BAD),
	TRY(mknodat, BAD, BAD, 0, 0),
	TRY(fchmodat, BAD, BAD, 0),
	TRY(fchownat, BAD, BAD, 0, 0, 0),
	TRY(fchmod, JOB_FD, 0),
	TRY(fsetxattr, BAD, BAD, BAD, 0, 0),
	TRY(utimensat, BAD, BAD, BAD, 0),
	TRY(sync),
	TRY(fallocate, BAD, 0, 0, 0),
	TRY(splice, BAD, 0, BAD, 0, 0, 0),
	TRY(sendfile, BAD, BAD, 0, 0),
	TRY(copy_file_range, BAD, 0, BAD, 0, 0, 0),
	TRY(mlock, BAD, 0),
	TRY(mbind, BAD, 0, 0, 0, 0, 0),
	TRY(remap_file_pages, BAD, 0, 0, 0, 0),
	TRY(pkey_mprotect, BAD, 0, 0, 0),
#ifdef __x86_64__
	TRY(fork),
	TRY(arch_prctl, BAD, BAD),
	TRY(modify_ldt, BAD, 0, 0),
	TRY(iopl, 0),
	TRY(ioperm, BAD, 0, 0),
#endif
};

static int came_through(const char *name)
{
	printf("%s came through\n", name);
	return 1;
}

OSD_FUNCTION(system_calls)
{
	int count = 0;

	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		const long *x = attempts[i].arguments;
		long result = syscall(attempts[i].number, x[0], x[1], x[2], x[3], x[4], x[5]);

		if (attempts[i].number == SYS_clone && result == 0)
			_exit(99); /* a child */
#ifdef SYS_fork
		if (attempts[i].number == SYS_fork && result == 0)
			_exit(99);
#endif
		if (result != -1 || errno != EPERM)
			count += came_through(attempts[i].name);
	}
	return count;
}

OSD_FUNCTION(files)
{
	static const char *const paths[] = {
		"/",	     "/etc/passwd",	"/proc/self/maps", "/proc/1/mem", "/sys",
		"/dev/mem",  "/dev/shm",	"/tmp",		   "/scratch",	  "/usr/lib",
		"../x",	     "/proc/self/fd/4", "/usr/bin/true",   "/var/lib",	  "/usr/share/zoneinfo/../../lib",
	};
	int count = 0;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (open(paths[i], O_RDONLY) >= 0 || open(paths[i], O_WRONLY | O_CREAT, 0600) >= 0)
			count += came_through(paths[i]);
	if (open("/dev/zero", O_RDWR) >= 0 || open("/dev/urandom", O_WRONLY) >= 0)
		count += came_through("a device");
	return count;
}

/* ---- machine code of its own ----------------------------------------------------------------- */

#ifdef __x86_64__
static const unsigned char returns_7[] = {0xb8, 7, 0, 0, 0, 0xc3};
#else
static const unsigned char returns_7[] = {0xe0, 0, 0x80, 0x52, 0xc0, 3, 0x5f, 0xd6};
#endif

static int jump(void *to)
{
	int (*code)(void);

	memcpy(&code, &to, sizeof(code));
	return code();
}

static void *page_of(const void *address)
{
	return (void *)((uintptr_t)address & ~(uintptr_t)(PAGE - 1));
}

OSD_FUNCTION(new_code)
{
	const int executable = PROT_READ | PROT_EXEC, private = MAP_PRIVATE | MAP_ANONYMOUS;
	int (*own)(void) = osd_function_files;
	double (*of_a_library)(double) = lgamma;
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, private, -1, 0), *code, *unused;
	int file = open("x", O_RDWR | O_CREAT, 0700), count = 0;

	memcpy(&code, &own, sizeof(code));
	memcpy(&unused, &of_a_library, sizeof(unused));
	memcpy(page, returns_7, sizeof(returns_7));
	if (mprotect(page, PAGE, executable) == 0)
		count += came_through("mprotect of new memory");
	if (mprotect(page, PAGE, executable | PROT_WRITE) == 0)
		count += came_through("mprotect of all kinds");
	if (mmap(NULL, PAGE, executable, private, -1, 0) != MAP_FAILED)
		count += came_through("mmap");
	if (mprotect(page_of(code), PAGE, executable | PROT_WRITE) == 0)
		count += came_through("own code, writable");
	if (mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page_of(unused)) == page_of(unused) &&
	    mprotect(page_of(unused), PAGE, executable) == 0)
		count += came_through("code of a library, replaced");
	if (file >= 0 && write(file, returns_7, sizeof(returns_7)) > 0 &&
	    mmap(NULL, PAGE, executable, MAP_PRIVATE, file, 0) != MAP_FAILED)
		count += came_through("a file of the scratch folder");
	return count;
}

OSD_FUNCTION(jump_into_data)
{
	static unsigned char code[sizeof(returns_7)];

	memcpy(code, returns_7, sizeof(code));
	return jump(code);
}

#ifdef __x86_64__
OSD_FUNCTION(other_table)
{
	long result = 20; /* getpid */

	__asm__ volatile("int $0x80" : "+a"(result) : : "memory");
	return 0;
}
#endif

/* ---- the shared memory with the proxy -------------------------------------------------------- */

static bool can_read(const void *address)
{
	return access(address, F_OK) == 0 || errno != EFAULT;
}

/* It lies below or above the C library; its first word is known. */
static struct osd_shm *find_shared(void)
{
	int (*near)(const char *, int) = access;
	uintptr_t begin, at;

	memcpy(&begin, &near, sizeof(begin));
	begin &= ~(uintptr_t)(PAGE - 1);
	for (uintptr_t i = 0; i < (1u << 18); i++) {
		for (int up = 0; up < 2; up++) {
			at = up ? begin + i * PAGE : begin - i * PAGE;
			if (can_read((void *)at) && *(const uint32_t *)at == OSD_SHM_MAGIC)
				return (struct osd_shm *)at;
		}
	}
	puts("the shared memory was not found");
	exit(3);
}

OSD_FUNCTION(jump_into_shared_memory)
{
	uint8_t *body = (uint8_t *)find_shared() + OSD_SHM_BODY_AT;

	memcpy(body, returns_7, sizeof(returns_7));
	return jump(body);
}

/* Posts what is in the frame, and waits for an answer that never comes. */
static int post(struct osd_shm *shared, unsigned area)
{
	osd_shm_post(&shared->areas[area].call);
	while (poll(NULL, 0, 1000) <= 0)
		;
	return 1;
}

static int post_call(uint16_t op, uint16_t flags, uint32_t body_bytes)
{
	struct osd_shm *shared = find_shared();
	uint8_t *frame = (uint8_t *)shared + OSD_SHM_FRAME_AT;

	memset(frame, 0, OSD_FRAME_BYTES);
	frame[1] = OSD_PROXY_VERSION;
	frame[2] = (uint8_t)(op >> 8), frame[3] = (uint8_t)op;
	frame[5] = (uint8_t)flags;
	for (int i = 0; i < 4; i++)
		frame[8 + i] = (uint8_t)(body_bytes >> (24 - 8 * i));
	return post(shared, 0);
}

OSD_FUNCTION(frame_of_ones)
{
	struct osd_shm *shared = find_shared();

	memset((uint8_t *)shared + OSD_SHM_FRAME_AT, 0xff, OSD_SHM_BODY_AT - OSD_SHM_FRAME_AT);
	return post(shared, 0);
}

OSD_FUNCTION(frame_of_zeros)
{
	struct osd_shm *shared = find_shared();

	memset((uint8_t *)shared + OSD_SHM_FRAME_AT, 0, OSD_SHM_BODY_AT - OSD_SHM_FRAME_AT);
	return post(shared, 0);
}

OSD_FUNCTION(frame_unknown)
{
	return post_call(999, 0, 0);
}

OSD_FUNCTION(frame_too_long)
{
	return post_call(OSD_CALL_WRITE, 0, OSD_BODY_MAX + 1);
}

OSD_FUNCTION(frame_in_the_other_area)
{
	return post(find_shared(), 1);
}

/* Everything that the two share, at once: frames, bodies, words, samples. */
OSD_FUNCTION(all_bits)
{
	struct osd_shm *shared = find_shared();

	memset(shared, 0x7f, OSD_SHM_BYTES);
	return post(shared, 0);
}

/* Forged samples and answers: the target measures for itself. */
OSD_FUNCTION(forged_samples)
{
	struct osd_shm *shared = find_shared();

	atomic_store(&shared->cpu_user_usec, UINT64_MAX);
	atomic_store(&shared->cpu_system_usec, UINT64_MAX);
	atomic_store(&shared->peak_bytes, UINT64_MAX);
	return osd_zone(OSD_ZONE_TYPE) <= 0;
}

/* A report of its own, longer than its frame says. */
OSD_FUNCTION(forged_finish)
{
	struct osd_shm *shared = find_shared();

	memset((uint8_t *)shared + OSD_SHM_BODY_AT, 0xff, 64);
	return post_call(OSD_CALL_FINISH, 0, 8);
}

OSD_FUNCTION(descriptors_closed)
{
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	return osd_result(OSD_BYTES, "closed", 6) != 0;
}

/* Messages that only a sandbox that starts sends, more than fit. */
OSD_FUNCTION(job_socket_flooded)
{
	static const char message[64] = {0, 1, 0, 1};

	fcntl(JOB_FD, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 10; i++)
		if (write(JOB_FD, message, sizeof(message)) < 0)
			break;
	return 0;
}

/* ---- the ten calls --------------------------------------------------------------------------- */

#define NOWHERE ((void *)16)
#define TOP	((void *)-16L)
#define HUGE_LENGTH UINT32_MAX
#define OBJECT	(uint64_t)osd_zone(OSD_ZONE_PARTITION), (uint64_t)osd_zone(OSD_ZONE_OBJECT)

OSD_FUNCTION(range_read)	{ return (int)osd_read(OBJECT, 0, NOWHERE, PAGE); }
OSD_FUNCTION(range_read_long)	{ return (int)osd_read(OBJECT, 0, TOP, HUGE_LENGTH); }
OSD_FUNCTION(range_write)	{ return (int)osd_write(OBJECT, 0, NOWHERE, PAGE); }
OSD_FUNCTION(range_write_long)	{ return (int)osd_write(OBJECT, 0, TOP, HUGE_LENGTH); }
OSD_FUNCTION(range_getattr)	{ return (int)osd_getattr(OBJECT, 1, 1, NOWHERE, PAGE); }
OSD_FUNCTION(range_setattr)	{ return (int)osd_setattr(OBJECT, 1, 1, NOWHERE, 16); }
OSD_FUNCTION(range_args)	{ return (int)osd_args(NOWHERE, PAGE); }
OSD_FUNCTION(range_args_from)	{ return (int)osd_args_from(1, NOWHERE, PAGE); }
OSD_FUNCTION(range_result)	{ return (int)osd_result(OSD_BYTES, NOWHERE, PAGE); }
OSD_FUNCTION(range_log)		{ return (int)-osd_log(OSD_OUTPUT, NOWHERE, PAGE); }
OSD_FUNCTION(range_progress)	{ return (int)osd_progress(1, NOWHERE, 16); }

OSD_FUNCTION(bad_parameters)
{
	static uint8_t value[65535];
	const int64_t answers[] = {
		osd_zone((enum osd_zone_part)3),
		osd_zone((enum osd_zone_part)-1),
		osd_result((enum osd_encoding)2, "", 0),
		osd_log((enum osd_stream)4, "x", 1),
		osd_log((enum osd_stream)0, "x", 1),
		osd_progress(1001, "", 0),
		osd_progress(-2, "", 0),
		osd_progress(1, value, 257),
		osd_setattr(OBJECT, 1, 1, value, 65535),
	};
	int count = 0;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (answers[i] != OSD_INVALID)
			count += came_through("a parameter");
	return count;
}

static void *call_from_thread(void *answer)
{
	*(int64_t *)answer = osd_zone(OSD_ZONE_TYPE);
	return NULL;
}

OSD_FUNCTION(calls_of_a_thread)
{
	pthread_t thread;
	int64_t answer = 0;

	if (pthread_create(&thread, NULL, call_from_thread, &answer) != 0)
		return 2;
	pthread_join(thread, NULL);
	return answer != OSD_INVALID || osd_zone(OSD_ZONE_TYPE) <= 0;
}

/* Runde's form: a result that is longer than its room. */
OSD_EXPORT(too_much) int too_much(void *in, size_t in_length, void *out, size_t room, size_t *out_length);
int too_much(void *in, size_t in_length, void *out, size_t room, size_t *out_length)
{
	(void)in, (void)in_length, (void)out;
	*out_length = room + 1;
	return 0;
}

OSD_EXPORT(as_much) int as_much(void *in, size_t in_length, void *out, size_t room, size_t *out_length);
int as_much(void *in, size_t in_length, void *out, size_t room, size_t *out_length)
{
	memset(out, in_length ? *(char *)in : '.', room);
	*out_length = room;
	return 0;
}

OSD_FUNCTION(endless_result)
{
	static uint8_t piece[MIB];
	int64_t error;

	while ((error = osd_result(OSD_BYTES, piece, sizeof(piece))) == 0)
		;
	return (int)-error;
}

/* ---- limits ---------------------------------------------------------------------------------- */

OSD_FUNCTION(loop)
{
	for (volatile int i = 0;; i++)
		;
}

OSD_FUNCTION(loop_without_signals)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (int i = 1; i < 65; i++)
		signal(i, SIG_IGN);
	osd_log(OSD_OUTPUT, "on\n", 3);
	for (volatile int i = 0;; i++)
		;
}

static void return_from(int signal)
{
	(void)signal;
}

OSD_FUNCTION(handlers_that_return)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGXCPU, SIGTERM, SIGURG};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], return_from);
	signal(SIGSEGV, SIG_DFL);
	osd_log(OSD_OUTPUT, "on\n", 3);
	for (volatile int i = 0;; i++)
		;
}

OSD_FUNCTION(flood)
{
	for (;;)
		osd_log(OSD_OUTPUT, "on and on\n", 10);
}

/* MiB that malloc gave, all of them used. */
OSD_FUNCTION(memory)
{
	int count = 0;
	void *piece;

	while ((piece = malloc(MIB))) {
		memset(piece, 1, MIB);
		count++;
	}
	return count;
}

OSD_FUNCTION(memory_that_is_not_counted)
{
	int zero = open("/dev/zero", O_RDONLY), count = 0;
	const int flags[] = {MAP_SHARED | MAP_ANONYMOUS, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (mmap(NULL, MIB, PROT_READ | PROT_WRITE, flags[i], -1, 0) != MAP_FAILED)
			count += came_through("a kind of memory");
	if (mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, zero, 0) != MAP_FAILED)
		count += came_through("shared memory of /dev/zero");
	return count;
}

static int deeper(volatile int *level)
{
	volatile char frame[PAGE];

	frame[0] = (char)*level;
	(*level)++;
	return *level < 0 ? 0 : deeper(level) + frame[0];
}

OSD_FUNCTION(stack)
{
	volatile int level = 0;

	return deeper(&level);
}

OSD_FUNCTION(ends_with_exit)	 { exit(0); }
OSD_FUNCTION(ends_at_once)	 { _exit(9); }
OSD_FUNCTION(aborts)		 { abort(); }
OSD_FUNCTION(divides_by_zero)
{
	volatile int zero = 0, number = 7;

	return number / zero;
}

/* ---- what is open ---------------------------------------------------------------------------- */

/* After a long read the process has descriptors of the object's files: they are read-only. */
OSD_FUNCTION(shared_files)
{
	uint64_t partition = (uint64_t)osd_zone(OSD_ZONE_PARTITION), object = (uint64_t)osd_zone(OSD_ZONE_OBJECT);
	static uint8_t piece[MIB];
	int count = 0, open_files = 0;

	if (osd_read(partition, object, 0, piece, sizeof(piece)) < 0)
		return 100;
	for (int fd = JOB_FD + 1; fd < 64; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		open_files++;
		if (write(fd, "x", 1) >= 0 || pwrite(fd, "x", 1, 0) >= 0 || ftruncate(fd, 0) == 0)
			count += came_through("a write");
		if (mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
			count += came_through("a writable map");
		if (mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED)
			count += came_through("executable data");
	}
	printf("%d open\n", open_files);
	return count;
}

/* 1: something of an earlier call is there. */
OSD_FUNCTION(traces)
{
	static int before;
	int fd = open("x", O_RDONLY), found = before || fd >= 0;

	before = 1;
	setenv("TRACE", "1", 1);
	close(open("x", O_RDWR | O_CREAT, 0600));
	return found;
}
