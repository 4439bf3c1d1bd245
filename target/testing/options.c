/* SPDX-License-Identifier: GPL-2.0-or-later */
/* options.c -- the options for tests and benchmarks; tests/README.md lists them.  If this library is
 * loaded, the parser of unit/config.h takes them beside those of the product. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "store/media.h"
#include "unit/config.h"
#include "testing/stores.h"
#include "wire/inquiry.h"

struct values {
	bool memory;
	uint64_t fault;
	bool fault_kill;
	bool unsafe_nosync;
	uint64_t ballast;
	uint64_t lease;
	char *model;
	char *hold;
	char *token;
	/* Made of the values above. */
	struct osd_test_stores stores;
	uint8_t token_bytes[OSD_SECURITY_TOKEN_BYTES];
};

#define AT(member) offsetof(struct values, member)

static const struct osd_option options[] = {
	{"memory", OPTION_BOOL, AT(memory), 0, 1, "0", "keep everything in memory"},
	{"fault", OPTION_NUMBER, AT(fault), 0, INT64_MAX, "0", "the N-th store call fails"},
	{"fault_kill", OPTION_BOOL, AT(fault_kill), 0, 1, "0", "the process dies there instead"},
	{"ballast", OPTION_SIZE, AT(ballast), 1 << 20, UINT64_C(64) << 20, "1MiB",
	 "size of the ballast on a large file system"},
	{"model", OPTION_TEXT, AT(model), 1, 128, NULL, "simulated disks (docs/tiers.md)"},
	{"hold", OPTION_TEXT, AT(hold), 1, 4000, NULL,
	 "long commands stop at their next step while this file exists; FILE.step: one step"},
	{"lease", OPTION_NUMBER, AT(lease), 0, 3600, "0",
	 "seconds of a resource manager's lease; 0: as in the product"},
	{"unsafe_nosync", OPTION_BOOL, AT(unsafe_nosync), 0, 1, "0",
	 "lose acknowledged changes on kill -9"},
	{"token", OPTION_TEXT, AT(token), 32, 32, NULL, "security token in hex"},
};

static bool parse_token(const char *hex, uint8_t token[OSD_SECURITY_TOKEN_BYTES])
{
	char byte[3] = "", *end;

	for (size_t i = 0; i < OSD_SECURITY_TOKEN_BYTES; i++) {
		memcpy(byte, hex + 2 * i, 2);
		token[i] = (uint8_t)strtoul(byte, &end, 16);
		if (end != byte + 2)
			return false;
	}
	return true;
}

static enum osd_status check(const struct osd_config *config, struct values *values,
			     char message[256])
{
	const char *wrong = NULL;

	if (values->memory && (config->directory || config->ssd_directory))
		wrong = "options 'memory' and 'dir' or 'ssd' exclude each other";
	else if (values->memory && values->model)
		wrong = "options 'memory' and 'model' exclude each other";
	else if (values->token && !parse_token(values->token, values->token_bytes))
		wrong = "option 'token' must be 32 hexadecimal digits";
	if (!wrong)
		return OSD_OK;
	return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD, "%s", wrong);
}

static enum osd_status apply(struct osd_config *config, char message[256])
{
	struct values *values = config->test.values;
	enum osd_status status = check(config, values, message);

	if (status != OSD_OK)
		return status;
	values->stores = (struct osd_test_stores){
		.fault_at = values->fault,
		.fault_kill = values->fault_kill,
		.unsafe_nosync = values->unsafe_nosync,
		.model = values->model,
	};
	osd_media_ballast_bytes = values->ballast;
	config->test.stores = &values->stores;
	config->test.hold = values->hold;
	config->test.lease_usec = values->lease * 1000000;
	config->test.token = values->token ? values->token_bytes : NULL;
	config->test.in_memory = values->memory;
	config->test.faults = values->fault != 0;
	if (values->model)
		osd_warning("the disks of this store are simulated (model=%s): it is as slow as "
			    "they are",
			    values->model);
	return OSD_OK;
}

static const struct osd_test_options test_options = {
	.options = options,
	.count = OSD_ARRAY_SIZE(options),
	.size = sizeof(struct values),
	.apply = apply,
};

__attribute__((constructor)) static void set_options(void)
{
	osd_test_options = &test_options;
}
