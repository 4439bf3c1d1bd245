/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zygote.c -- iosd-zygote: it prepares the engine of its pool (engine.h), forks a sandbox for each
 * request of iosd-sandboxd, and reaps it. zygote_launch.c starts it as process 1 and root of its
 * namespaces.  It must never have a second thread: a fork copies one thread only, and may copy a lock
 * that another holds. main.c has the steps of a sandbox after the fork. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "confine.h"
#include "engine.h"
#include "base/fd_message.h"
#include "main.h"
#include "privileges.h"
#include "root.h"
#include "scratch.h"
#include "seccomp_rules.h"
#include "zygote_frame.h"

struct child {
	pid_t pid; /* 0: the slot is free */
	int pidfd;
	uint64_t serial;
	struct osd_scratch scratch; /* of the slot, not of the child: stays */
	int landlock_fd;	    /* rules of a sandbox of this slot; -1: none */
};

struct zygote {
	struct osd_confinement confinement;
	struct osd_engine_setup setup; /* folders as seen after the change of root */
	uint64_t set_bytes;
	unsigned slots;
	struct child *children; /* by slot */
	unsigned alive;
	bool retiring;
	int signal_fd;
	int tasks_fd;    /* /proc/self/task, opened while there was a /proc; -1 without */
	int own_pid_fd;  /* to return to the own process namespace after each fork */
};

/* ---- set-up ---------------------------------------------------------------------------------- */

static int raise_oom_score(struct osd_step *step)
{
	char text[16];
	OSD_CLEANUP_CLOSE int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	int before, length;

	if (fd < 0)
		return osd_step_failed(step, "open", "oom_score_adj");
	length = (int)read(fd, text, sizeof(text) - 1);
	text[OSD_MAX(length, 0)] = '\0';
	before = (int)strtol(text, NULL, 10);
	length = snprintf(text, sizeof(text), "%d", OSD_MIN(OSD_MAX(before, 0) + 500, 1000));
	return pwrite(fd, text, (size_t)length, 0) == length
		       ? 0
		       : osd_step_failed(step, "write", "oom_score_adj");
}

static int prepare_signals(struct zygote *z, struct osd_step *step)
{
	sigset_t child;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN); /* a terminal's ^C is for the daemon */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (sigprocmask(SIG_SETMASK, &child, NULL) < 0)
		return osd_step_failed(step, "block SIGCHLD", NULL);
	z->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	return z->signal_fd < 0 ? osd_step_failed(step, "make signalfd", NULL) : 0;
}

static int prepare_process(struct zygote *z, struct osd_step *step)
{
	unsigned layers = z->confinement.layers;
	int error = prepare_signals(z, step);

	if (!error && layers & OSD_LAYER_OOM_SCORE)
		error = raise_oom_score(step);
	if (error)
		return error;
	z->tasks_fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	z->setup.statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	z->own_pid_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (z->own_pid_fd < 0)
		return osd_step_failed(step, "open own pidfd", NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return osd_step_failed(step, "ask for the parent-death signal", NULL);
	return 0;
}

static unsigned filter_rules(const struct osd_engine *engine)
{
	return (engine->executable_memory ? OSD_SECCOMP_EXECUTABLE : 0) |
	       (engine->narrows_filter ? OSD_SECCOMP_NARROW : 0);
}

static int prepare_confinement(struct zygote *z, struct osd_step *step)
{
	unsigned layers = z->confinement.layers;
	int error = 0;

	if (layers & OSD_LAYER_MOUNTNS) {
		error = osd_root_enter(z->confinement.engine->folders, ZYGOTE_FD_PACKAGE,
				       z->setup.set ? ZYGOTE_FD_SET : -1, z->slots, step);
		z->setup.support = OSD_ROOT_PACKAGE;
		z->setup.folder = OSD_ROOT_SET;
	}
	if (!error && layers & OSD_LAYER_SECCOMP)
		error = osd_seccomp_build(OSD_SANDBOX_JOB_FD,
					  osd_scratch_possible(layers) ? osd_scratch_here : NULL,
					  filter_rules(z->confinement.engine),
					  &z->confinement.filter, step);
	return error;
}

/* fd: a descriptor for the daemon; -1: none. */
static void send_message(const struct zygote_message *message, int fd)
{
	if (osd_fd_send(ZYGOTE_FD_CONTROL, message, sizeof(*message), &fd, fd >= 0, 0) < 0)
		_exit(1); /* the daemon has ended; the exit of process 1 ends all sandboxes */
}

static void tell(uint32_t type, const struct zygote_message *about, const char *text, int fd)
{
	struct zygote_message message = {.type = type};

	if (about) {
		message.slot = about->slot;
		message.serial = about->serial;
	}
	if (text)
		snprintf(message.text, sizeof(message.text), "%s", text);
	send_message(&message, fd);
}

static int fail(const char *why)
{
	tell(ZYGOTE_FAILED, NULL, why, -1);
	return 1;
}

static int refuse_to_start(const struct osd_step *step, int error)
{
	char text[ZYGOTE_TEXT_MAX];

	snprintf(text, sizeof(text), "cannot %s: %s", step->what, strerror(-error));
	return fail(text);
}

/* ---- sandboxes ------------------------------------------------------------------------------- */

/* A library that starts a thread, as some linear-algebra libraries do, makes every later fork unsafe.
 * The number of threads is the link count of /proc/self/task less two. */
static bool one_thread(const struct zygote *z)
{
	struct stat status;

	return z->tasks_fd < 0 || fstat(z->tasks_fd, &status) < 0 || status.st_nlink <= 3;
}

/* The next child is process 1 of a new process namespace.  This uses unshare and fork, not clone3: so
 * the C library and the interpreter run their fork preparations and know the child's thread id. */
static int enter_next_pidns(const struct zygote *z)
{
	if (!(z->confinement.layers & OSD_LAYER_PIDNS))
		return 0;
	if (setns(z->own_pid_fd, CLONE_NEWPID) < 0 || unshare(CLONE_NEWPID) < 0)
		return -errno;
	return 0;
}

/* The rules refer to the folder itself, so they are made again with each new folder. */
static int prepare_rules(const struct zygote *z, struct child *child, bool scratch,
			 struct osd_step *step)
{
	char path[OSD_SCRATCH_PATH];

	if (!(z->confinement.layers & OSD_LAYER_LANDLOCK))
		return 0;
	osd_closep(&child->landlock_fd);
	osd_scratch_path((unsigned)(child - z->children), path);
	return osd_landlock_build(z->confinement.engine->folders, z->setup.support,
				  z->setup.set ? z->setup.folder : NULL, scratch ? path : NULL,
				  &child->landlock_fd, step);
}

/* Provides an empty scratch folder and the rules of file access for it. */
static int prepare_files(const struct zygote *z, struct child *child,
			 const struct zygote_message *request, struct osd_step *step)
{
	unsigned slot = request->slot, owner = z->confinement.uid_base + 1 + slot;
	bool scratch = osd_scratch_possible(z->confinement.layers), new = child->landlock_fd < 0;
	int error = 0;

	if (scratch)
		error = osd_scratch_prepare(&child->scratch, slot, owner,
					    osd_scratch_bytes(request->limits.memory_bytes), &new,
					    step);
	if (!error && (new || child->landlock_fd < 0))
		error = prepare_rules(z, child, scratch, step);
	return error;
}

static pid_t fork_sandbox(struct zygote *z, const struct zygote_message *request, const int *fds,
			  size_t fd_count)
{
	int error = enter_next_pidns(z);
	struct osd_sandbox_start start = {.slot = request->slot,
					  .limits = request->limits,
					  .file_bytes = osd_scratch_file_bytes(
						  z->confinement.layers,
						  request->limits.memory_bytes),
					  .landlock_fd = z->children[request->slot].landlock_fd,
					  .fds = fds,
					  .fd_count = fd_count};
	sigset_t none;
	pid_t pid;

	if (error)
		return error;
	start.limits.memory_bytes += z->set_bytes;
	start.limits.processes += z->confinement.engine->threads;
	pid = osd_engine_fork(z->confinement.engine);
	if (pid != 0)
		return pid;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	osd_sandbox_main(&z->confinement, &start);
}

static void spawn(struct zygote *z, const struct zygote_message *request, const int *fds,
		  size_t fd_count)
{
	struct child *child = &z->children[request->slot];
	struct osd_step step = {.what = "fork a sandbox"};
	char text[ZYGOTE_TEXT_MAX];
	pid_t pid = prepare_files(z, child, request, &step);

	if (pid == 0)
		pid = one_thread(z) ? fork_sandbox(z, request, fds, fd_count) : -EAGAIN;
	if (pid < 0) {
		snprintf(text, sizeof(text), "cannot %s: %s", step.what,
			 pid == -EAGAIN && !one_thread(z) ? "the zygote has more than one thread"
							  : strerror(-pid));
		tell(ZYGOTE_FAILED, request, text, -1);
		return;
	}
	child->pid = pid;
	child->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	child->serial = request->serial;
	z->alive++;
	tell(ZYGOTE_SPAWNED, request, NULL, child->pidfd);
}

static void report_exit(struct zygote *z, struct child *child, int status,
			const struct rusage *usage)
{
	unsigned slot = (unsigned)(child - z->children);
	struct osd_step step;
	int error;
	struct zygote_message message = {
		.type = ZYGOTE_EXITED,
		.slot = slot,
		.serial = child->serial,
		.status = {.wait_status = status,
			   .cpu_user_usec = osd_timeval_usec(usage->ru_utime),
			   .cpu_system_usec = osd_timeval_usec(usage->ru_stime),
			   .peak_bytes = (uint64_t)usage->ru_maxrss * 1024},
	};

	close(child->pidfd);
	child->pid = 0;
	z->alive--;
	/* Called before the daemon gives the slot, and its memory, to another sandbox.  If it fails,
	 * the next fork tries again, and fails with it. */
	error = osd_scratch_clear(&child->scratch, slot, &step);
	if (error)
		osd_error("zygote: cannot %s: %s", step.what, strerror(-error));
	send_message(&message, -1);
}

/* Reaps all ended processes.  Those that are no sandboxes are orphans of a namespace. */
static void reap(struct zygote *z)
{
	struct signalfd_siginfo ignored;
	struct rusage usage;
	int status;
	pid_t pid;

	while (read(z->signal_fd, &ignored, sizeof(ignored)) > 0)
		;
	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		for (unsigned i = 0; i < z->slots; i++) {
			if (z->children[i].pid == pid) {
				report_exit(z, &z->children[i], status, &usage);
				break;
			}
		}
	}
}

/* ---- loop ------------------------------------------------------------------------------------ */

/* Called when the job of a waiting sandbox has another memory limit. */
static void resize(struct zygote *z, const struct zygote_message *request)
{
	struct child *child = &z->children[request->slot];
	struct osd_step step;
	char text[ZYGOTE_TEXT_MAX] = "";
	int error;

	if (!child->pid || child->serial != request->serial)
		return; /* its end is on the way */
	error = osd_scratch_resize(&child->scratch, request->slot,
				   osd_scratch_bytes(request->limits.memory_bytes), &step);
	if (error)
		snprintf(text, sizeof(text), "cannot %s: %s", step.what, strerror(-error));
	tell(ZYGOTE_RESIZED, request, text, -1);
}

/* False: the daemon has closed the socket. */
static bool serve_request(struct zygote *z)
{
	struct zygote_message request;
	int fds[OSD_FD_MESSAGE_MAX];
	size_t fd_count = 0;
	ssize_t length = osd_fd_receive(ZYGOTE_FD_CONTROL, &request, sizeof(request), fds,
					OSD_FD_MESSAGE_MAX, &fd_count);

	if (length <= 0)
		return false;
	if (length == sizeof(request) && request.type == ZYGOTE_RETIRE)
		z->retiring = true;
	else if (length == sizeof(request) && request.type == ZYGOTE_SPAWN &&
		 request.slot < z->slots && fd_count >= SPAWN_FD_CGROUPS &&
		 !z->children[request.slot].pid)
		spawn(z, &request, fds, fd_count);
	else if (length == sizeof(request) && request.type == ZYGOTE_RESIZE &&
		 request.slot < z->slots)
		resize(z, &request);
	else
		osd_error("zygote: malformed request");
	osd_fds_close(fds, fd_count);
	return true;
}

/* Without a process namespace, only this ends the sandboxes with the zygote. */
static void kill_all(const struct zygote *z)
{
	for (unsigned i = 0; i < z->slots; i++) {
		if (z->children[i].pid)
			kill(z->children[i].pid, SIGKILL);
	}
}

static void serve(struct zygote *z)
{
	struct pollfd ready[2] = {{.fd = ZYGOTE_FD_CONTROL, .events = POLLIN},
				  {.fd = z->signal_fd, .events = POLLIN}};

	while (!z->retiring || z->alive) {
		if (poll(ready, 2, -1) < 0 && errno != EINTR)
			break;
		if (ready[1].revents)
			reap(z);
		if (ready[0].revents && !serve_request(z))
			break;
	}
	kill_all(z);
}

/* Scripts compute on a few blocks of some MiB at a time.  If glibc returns memory to the kernel between
 * two of them, each page faults again, which costs as much as the work.  The first value is the largest
 * that glibc itself would reach once blocks of that size were freed.  The second is the memory that a
 * sandbox may keep for the next job: a copy of the longest data that pass through a function, and some more. */
static void tune_malloc(void)
{
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 24 << 20);
}

static bool load_engine(const struct zygote *z, char text[ZYGOTE_TEXT_MAX])
{
	const struct osd_engine *engine = z->confinement.engine;
	bool loaded = !engine->load || engine->load(ZYGOTE_FD_LIBRARY, text, ZYGOTE_TEXT_MAX);

	close(ZYGOTE_FD_LIBRARY);
	return loaded;
}

static bool prepare_engine(struct zygote *z, char text[ZYGOTE_TEXT_MAX])
{
	const struct osd_engine *engine = z->confinement.engine;

	tune_malloc();
	close(ZYGOTE_FD_PACKAGE);
	close(ZYGOTE_FD_SET);
	if (!engine->package_sets && (z->setup.set || z->setup.preload[0])) {
		snprintf(text, ZYGOTE_TEXT_MAX,
			 "engine %s has no package sets: remove the keys packages and preload",
			 engine->name);
		return false;
	}
	if (engine->prepare && !engine->prepare(&z->setup, &z->set_bytes, text, ZYGOTE_TEXT_MAX))
		return false;
	osd_closep(&z->setup.statm_fd);
	if (one_thread(z))
		return true;
	snprintf(text, ZYGOTE_TEXT_MAX, "a module that was imported ahead of need started a thread");
	return false;
}

/* Arguments: argv of zygote_launch.c.  An empty FOLDER: the pool has no package set. */
static void read_arguments(struct zygote *z, char **argv)
{
	z->confinement.engine = osd_engine_find(argv[1]);
	z->confinement.layers = (unsigned)strtoul(argv[2], NULL, 16);
	z->slots = (unsigned)strtoul(argv[3], NULL, 10);
	z->confinement.uid_base = (unsigned)strtoul(argv[4], NULL, 10);
	z->setup = (struct osd_engine_setup){.support = argv[5],
					     .pool = argv[6],
					     .folder = argv[7],
					     .set = argv[7][0] ? argv[8] : NULL,
					     .preload = argv[9]};
}

/* iosd-zygote ENGINE LAYERS SLOTS UID_BASE PACKAGE POOL FOLDER SET PRELOAD */
int main(int argc, char **argv)
{
	struct zygote z = {.tasks_fd = -1};
	struct osd_step step;
	char text[ZYGOTE_TEXT_MAX];
	int error;

	if (argc != 10) {
		fprintf(stderr, "iosd-zygote is started by iosd-sandboxd\n");
		return 2;
	}
	read_arguments(&z, argv);
	osd_log_init(STDERR_FILENO, "iosd-zygote", OSD_LOG_INFO);
	if (!z.confinement.engine)
		return fail("it has no such engine");
	z.children = calloc(z.slots, sizeof(*z.children));
	if (!z.children)
		return 1;
	for (unsigned i = 0; i < z.slots; i++)
		z.children[i].landlock_fd = -1;
	if (!load_engine(&z, text))
		return fail(text);
	error = prepare_process(&z, &step);
	if (!error)
		error = prepare_confinement(&z, &step);
	if (error)
		return refuse_to_start(&step, error);
	if (!prepare_engine(&z, text))
		return fail(text);
	error = osd_privileges_keep(osd_zygote_capabilities(z.confinement.layers),
				    osd_zygote_capabilities(z.confinement.layers));
	if (error) {
		snprintf(step.what, sizeof(step.what), "give up capabilities");
		return refuse_to_start(&step, error);
	}
	send_message(&(struct zygote_message){.type = ZYGOTE_READY,
					      .set_bytes = z.set_bytes,
					      .threads = z.confinement.engine->threads},
		     -1);
	serve(&z);
	return 0;
}
