/* SPDX-License-Identifier: GPL-2.0-or-later */
/* options.c -- the command line of iosd-sandboxd.  The manual page is made from the usage text. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_LIMIT       1024u

static const char usage[] =
	"usage: iosd-sandboxd --socket PATH --python-dir DIR [option...]\n"
	"       iosd-sandboxd --print-level\n"
	"  --socket PATH        listen here (Unix SEQPACKET)\n"
	"  --python-dir DIR     folder that holds the Python package osd\n"
	"  --max N              most sandboxes at once (default 320)\n"
	"  --isolation LEVEL    full (default), no-cgroup, no-userns, minimal, or best: the best\n"
	"                       this host can give\n"
	"  --cgroup-parent PATH control groups go below this one (default: our own)\n"
	"  --uid UID            the target's user: the socket becomes this user's, and nobody else but\n"
	"                       root may connect (default: our own user)\n"
	"  --uid-base N         sandboxes run as N+1, N+2, ..., up to --max of them, ids that nobody\n"
	"                       else of this host may have (default 2130706432)\n"
	"  --cpu-share PERCENT  least share of the processors for all sandboxes together, as far as they\n"
	"                       can use it; 0: only what nobody else uses (default 5, at most 90)\n"
	"  --rotate-after N     forks before a zygote is replaced (default 2000)\n"
	"  --pools-file FILE    the pools, a line each as the target reads them; read again at SIGHUP\n"
	"  --pool NAME          instead: another pool, beside `default`; what follows is about it\n"
	"  --packages DIR       the pool's package set, made by `osd pool build`\n"
	"  --package-set ID     the set must be this one\n"
	"  --preload NAMES      modules of the set, or of the standard library, to import ahead of\n"
	"                       need, separated by commas\n"
	"  --wasmtime FILE      library of Wasmtime, for pools of the engine wasm\n"
	"  --print-level        print what isolation this host can give, as JSON, and exit\n";

static bool parse_number(const char *text, unsigned least, unsigned most, unsigned *ret_number)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || number < least || number > most)
		return false;
	*ret_number = (unsigned)number;
	return true;
}

/* About the pool named last. */
static bool take_pool_option(struct osd_daemon *daemon, struct osd_options *options, int option,
			     const char *value)
{
	struct osd_pool_words *pool = &options->pool;

	options->pools = true;
	switch (option) {
	case 'P':
		*pool = (struct osd_pool_words){.name = value};
		break;
	case 'S':
		pool->packages = value;
		break;
	case 'I':
		pool->set = value;
		break;
	case 'L':
		pool->preload = value;
		break;
	default:
		return false;
	}
	return !osd_pool_words_check(pool) && osd_zygotes_add(daemon, pool);
}

static bool take_option(struct osd_daemon *daemon, struct osd_options *options, int option,
			const char *value)
{
	switch (option) {
	case 's':
		daemon->socket_path = value;
		return true;
	case 'p':
		return snprintf(options->package, sizeof(options->package), "%s/osd", value) <
		       (int)sizeof(options->package);
	case 'i':
		options->isolation = value;
		return true;
	case 'c':
		daemon->cgroup_parent = value;
		return true;
	case 'm':
		return parse_number(value, 1, MAX_LIMIT, &daemon->max);
	case 'u':
		return parse_number(value, 0, INT32_MAX, &daemon->peer);
	case 'b':
		return parse_number(value, 1, INT32_MAX - 2 * MAX_LIMIT, &daemon->uid_base);
	case 'w':
		return parse_number(value, 0, OSD_CPU_SHARE_MAX, &daemon->cpu_share);
	case 'r':
		return parse_number(value, 1, INT32_MAX, &daemon->rotate_after);
	case 'l':
		options->print_level = true;
		return true;
	case 'f':
		daemon->pools_file = value;
		return true;
	case 'W':
		daemon->wasmtime = value;
		return true;
	default:
		return take_pool_option(daemon, options, option, value);
	}
}

bool osd_options_parse(struct osd_daemon *daemon, struct osd_options *options, int argc, char **argv)
{
	static const struct option table[] = {
		{"socket", required_argument, NULL, 's'},
		{"python-dir", required_argument, NULL, 'p'},
		{"max", required_argument, NULL, 'm'},
		{"isolation", required_argument, NULL, 'i'},
		{"cgroup-parent", required_argument, NULL, 'c'},
		{"uid", required_argument, NULL, 'u'},
		{"uid-base", required_argument, NULL, 'b'},
		{"cpu-share", required_argument, NULL, 'w'},
		{"rotate-after", required_argument, NULL, 'r'},
		{"pools-file", required_argument, NULL, 'f'},
		{"pool", required_argument, NULL, 'P'},
		{"packages", required_argument, NULL, 'S'},
		{"package-set", required_argument, NULL, 'I'},
		{"preload", required_argument, NULL, 'L'},
		{"wasmtime", required_argument, NULL, 'W'},
		{"print-level", no_argument, NULL, 'l'},
		{NULL, 0, NULL, 0},
	};
	bool fine = true;
	int option;

	while (fine && (option = getopt_long(argc, argv, "", table, NULL)) != -1)
		fine = take_option(daemon, options, option, optarg);
	daemon->package = options->package;
	fine = fine && optind == argc && !(daemon->pools_file && options->pools) &&
	       (options->print_level || (daemon->socket_path && options->package[0]));
	if (!fine)
		fputs(usage, stderr);
	return fine;
}
