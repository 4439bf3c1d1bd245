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
	uint64_t lease_usec;  /* of a resource manager; 0: as in the product */
	bool in_memory;	      /* it needs no directory */
	bool faults;	      /* some are injected on purpose */
};

/* The values of the options, which the table in config.c describes.  Texts are owned; NULL: the option is not given. */
struct osd_config {
	char *directory; /* dir=; NULL: in memory, in tests alone */
	char *ssd_directory, *sandboxd, *pools, *machine_code, *signers, *control, *master_key,
		*local_key;
	char *isolation; /* never NULL */
	uint64_t control_uid, kept_results, function_memory, workers, queue_principal,
		stored_principal;
	uint64_t script_turn, slots, cache_bytes;
	bool allow_bytecode, secure, osc_compat;
	enum osd_reuse reuse;
	enum osd_security_method security;
	enum osd_durability durability;
	enum osd_ssd_loss on_ssd_loss;
	enum osd_io io;
	struct osd_heads_config heads; /* heads=, head_size=, head_high=, head_low=, head_rate= */
	struct osd_sums_config sums;   /* checksums=, verify=, scrub_rate=, scrub_days= */
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
