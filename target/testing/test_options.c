/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_options.c -- options for tests: their values and refusals, and that the product has none of them,
 * nor a store without a directory. */
#include <string.h>

#include "base/test.h"
#include "unit/config.h"
#include "object/object.h"
#include "store/stand_in.h"
#include "testing/stores.h"

#define TOKEN "000102030405060708090a0b0c0d0e0f"

static void parse(const char *text, const char *directory, struct osd_config *ret_config)
{
	char message[256] = "";

	CHECK_EQ(osd_config_parse(text, directory, message, ret_config), OSD_OK);
}

/* Refused, and the message names what is wrong. */
static void refused(const char *text, const char *named)
{
	struct osd_config config;
	char message[256] = "";

	CHECK_EQ(osd_config_parse(text, NULL, message, &config), OSD_E_PARAM_FIELD);
	if (!strstr(message, named)) {
		fprintf(stderr, "'%s': message '%s' does not name '%s'\n", text, message, named);
		exit(1);
	}
}

static void test_values(void)
{
	struct osd_config config;

	parse("", "/a", &config);
	CHECK(!config.test.in_memory && !config.test.faults && !config.test.lease_usec);
	CHECK(!config.test.hold && !config.test.token && !config.test.stores->model);
	osd_config_release(&config);

	parse("fault=7;fault_kill=1;unsafe_nosync=1;model=thesis;hold=/gate;lease=9;token=" TOKEN,
	      "/a", &config);
	CHECK_EQ(config.test.stores->fault_at, 7);
	CHECK(config.test.stores->fault_kill && config.test.stores->unsafe_nosync);
	CHECK(!strcmp(config.test.stores->model, "thesis"));
	CHECK(config.test.faults && !strcmp(config.test.hold, "/gate"));
	CHECK_EQ(config.test.lease_usec, 9000000);
	for (uint8_t i = 0; i < 16; i++)
		CHECK_EQ(config.test.token[i], i);
	osd_config_release(&config);
	osd_config_release(&config); /* twice does no harm */

	parse("memory=1", "/path of the unit", &config);
	CHECK(config.test.in_memory && !config.directory);
	osd_config_release(&config);
}

static void test_refusals(void)
{
	refused("dir=/a;memory=1", "memory");
	refused("ssd=/a;memory=1", "memory");
	refused("memory=1;model=thesis", "model");
	refused("memory=2", "0 or 1");
	refused("dir=/a;fault=-1", "fault");
	refused("dir=/a;token=00", "token");
	refused("dir=/a;token=zz0102030405060708090a0b0c0d0e0f", "hexadecimal");
	refused("", "dir");
}

static void test_product(void)
{
	static const char *const names[] = {"memory=1",	    "fault=1",	    "fault_kill=1",
					    "model=thesis", "hold=/gate",   "unsafe_nosync=1",
					    "ballast=2MiB", "token=" TOKEN, "lease=9"};
	const struct osd_objects_config config = {0};
	const struct osd_test_options *options = osd_test_options;
	const struct osd_stand_ins *stand_ins = osd_stand_ins;
	struct osd_objects *objects;
	char message[256] = "", text[80];

	osd_test_options = NULL;
	osd_stand_ins = NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(text, sizeof(text), "dir=/a;%s", names[i]);
		refused(text, "unknown");
	}
	CHECK_EQ(osd_objects_open(&config, message, &objects), OSD_E_PARAM_FIELD);
	CHECK(strstr(message, "data directory"));
	osd_test_options = options;
	osd_stand_ins = stand_ins;
}

int main(void)
{
	test_values();
	test_refusals();
	test_product();
	return 0;
}
