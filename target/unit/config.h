/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config.h -- the option string of a logical unit or the harness ("dir=/srv/osd;workers=4") as a
 * checked structure.  tgtd cuts option strings at the first comma, so options are separated by
 * ';'. */
#ifndef OSD_UNIT_CONFIG_H
#define OSD_UNIT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "exec/sandbox/reuse.h"
#include "object/object.h"
#include "object/sums.h"
#include "wire/capability.h"

struct osd_test_stores; /* testing/stores.h */

/* The values of the options of a library for tests (struct osd_test_options); all zero in the
 * product. */
struct osd_config_test {
	void *values;			      /* of the library's options; owned */
	const struct osd_test_stores *stores; /* in values, as are the next two */
	const char *hold;     /* long commands stop at their next step while this file exists */
	const uint8_t *token; /* security token; NULL: a new one */
	bool in_memory;	      /* it needs no directory */
	bool faults;	      /* some are injected on purpose */
};

struct osd_config {
	char *directory;      /* dir=; owned; NULL: in memory, in tests alone */
	char *ssd_directory;  /* ssd=; owned; NULL: one root */
	char *sandboxd;       /* sandboxd=, socket of iosd-sandboxd; owned; NULL: no sandboxes */
	char *isolation;      /* isolation=, level required of sandboxes; owned; never NULL */
	char *control;        /* control=, socket of a resource manager; owned; NULL: none */
	uint64_t control_uid; /* control_uid=, user of the resource manager; 0: the target's own */
	char *pools;          /* pools=, file of pools (exec/pool/config.c); owned; NULL: default alone */
	char *machine_code;   /* machine_code=, compiler and processor; owned; NULL: none is kept */
	char *signers;        /* signers=, policy and signers of functions; owned; NULL: none */
	uint64_t kept_results;	  /* kept_results=, bytes; 0: none */
	uint64_t function_memory; /* function_memory=, bytes that active functions may reserve; 0: no bound */
	enum osd_reuse reuse; /* reuse=never|verified|trusted, of sandboxes */
	char *master_key;     /* master-key=, file with the first master key; owned; NULL: none */
	char *local_key;      /* local-key=, file for the local administrator's key; owned; NULL: none */
	bool allow_bytecode;  /* allow_bytecode=1: jobs may be .pyc files */
	enum osd_security_method security; /* security=nosec|capkey|cmdrsp|alldata, of what is made */
	bool secure;          /* secure=1: refuse a store whose root, or new partitions, have NOSEC */
	struct osd_heads_config heads; /* heads=, head_size=, head_high=, head_low=, head_rate= */
	uint64_t workers;     /* workers= */
	uint64_t queue_principal; /* queue_principal=, jobs of one principal in the queue; 0: default */
	uint64_t stored_principal; /* stored_principal=, bytes in the jobs partition; 0: default */
	uint64_t script_turn; /* script_turn=, us; 0: as the kernel likes */
	uint64_t slots;       /* slots=, sandboxes at a time; 0: as many as processors */
	uint64_t cache_bytes; /* cache=, Berkeley DB cache; 0: default */
	enum osd_durability durability; /* durability=process|sync */
	enum osd_ssd_loss on_ssd_loss;  /* on_ssd_loss=fail|read-through */
	enum osd_io io;       /* io=cached|direct */
	struct osd_sums_config sums; /* checksums=, verify=, scrub_rate=, scrub_days= */
	bool osc_compat;      /* osc_compat=1: follow OSC's initiator even against the standard */
	struct osd_config_test test;
};

enum osd_option_kind { OPTION_TEXT, OPTION_NUMBER, OPTION_SIZE, OPTION_BOOL, OPTION_CHOICE };

struct osd_option {
	const char *name;
	enum osd_option_kind kind;
	size_t offset;	    /* in struct osd_config, or in the structure of struct osd_test_options */
	uint64_t min, max;  /* numbers and sizes: range; text: max is the longest, in bytes */
	const char *value;  /* default, as a person would write it; NULL: none */
	const char *meaning;
};

/* Options that a library for tests adds to the product's; texts, numbers and booleans alone. */
struct osd_test_options {
	const struct osd_option *options;
	size_t count;
	size_t size; /* of the structure that their offsets are in: config->test.values */
	/* Called when all options are parsed: checks these, also against the product's, and sets the rest
	 * of config->test. */
	enum osd_status (*apply)(struct osd_config *config, char message[256]);
};

/* NULL in the product.  The library (target/testing/) sets it when it is loaded. */
extern const struct osd_test_options *osd_test_options;

/* Parses defaults, then options in order.  directory: used if no option names one, or NULL.
 * OSD_E_PARAM_FIELD: message names the option and its permitted values.  *ret_config needs
 * osd_config_release. */
enum osd_status osd_config_parse(const char *options, const char *directory, char message[256],
				 struct osd_config *ret_config);
void osd_config_release(struct osd_config *config);
/* One line per option: name, range or values, default, meaning. */
void osd_config_help(FILE *out);

#endif
