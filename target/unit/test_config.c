/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_config.c -- option strings: defaults, every kind of value, every kind of refusal. */
#include "base/test.h"
#include "unit/config.h"

static struct osd_config parse_ok(const char *text)
{
	struct osd_config config;
	char message[256] = "";

	if (osd_config_parse(text, NULL, message, &config) != OSD_OK) {
		fprintf(stderr, "'%s' was refused: %s\n", text, message);
		exit(1);
	}
	return config;
}

/* Refused, and the message names what is wrong. */
static void parse_bad(const char *text, const char *named)
{
	struct osd_config config;
	char message[256] = "";

	CHECK_EQ(osd_config_parse(text, NULL, message, &config), OSD_E_PARAM_FIELD);
	if (!strstr(message, named)) {
		fprintf(stderr, "'%s': message '%s' does not name '%s'\n", text, message, named);
		exit(1);
	}
}

static void test_defaults(void)
{
	struct osd_config config = parse_ok("dir=/srv/osd");

	CHECK(!strcmp(config.directory, "/srv/osd"));
	CHECK(!config.ssd_directory && !config.sandboxd);
	CHECK(!strcmp(config.isolation, "full"));
	CHECK(config.reuse == OSD_REUSE_NEVER);
	CHECK(!config.allow_bytecode);
	CHECK_EQ(config.workers, 4);
	CHECK_EQ(config.slots, 0);
	CHECK_EQ(config.durability, OSD_DURABILITY_PROCESS);
	CHECK(!config.osc_compat);
	CHECK(!config.test.in_memory);
	osd_config_release(&config);
	CHECK(!config.directory);
	osd_config_release(&config); /* twice does no harm */
}

static void test_values(void)
{
	struct osd_config config =
		parse_ok("dir=/a b;workers=64;durability=sync;on_ssd_loss=read-through;io=direct;cache=65536;"
			 "allow_bytecode=1;sandboxd=/run/s;workers=2;;control=/run/C 1");

	CHECK(!strcmp(config.directory, "/a b"));
	CHECK_EQ(config.workers, 2); /* the last one counts */
	CHECK_EQ(config.durability, OSD_DURABILITY_SYNC);
	CHECK_EQ(config.on_ssd_loss, OSD_SSD_LOSS_READ_THROUGH);
	CHECK_EQ(config.io, OSD_IO_DIRECT);
	CHECK_EQ(config.cache_bytes, 65536);
	CHECK(config.allow_bytecode);
	CHECK(!strcmp(config.sandboxd, "/run/s"));
	CHECK(!strcmp(config.control, "/run/C 1"));
	osd_config_release(&config);

	config = parse_ok("dir=/a;osc_compat=1");
	CHECK(config.osc_compat);
	osd_config_release(&config);
}

static void test_refusals(void)
{
	parse_bad("", "dir");
	parse_bad("dir=", "dir");
	parse_bad("dir=/a;wokers=2", "wokers");
	parse_bad("dir=/a;workers", "workers");
	parse_bad("dir=/a;workers=", "workers");
	parse_bad("dir=/a;workers=0", "workers");
	parse_bad("dir=/a;workers=65", "1 to 64");
	parse_bad("dir=/a;workers=-1", "workers");
	parse_bad("dir=/a;workers=2KiB", "workers");
	parse_bad("dir=/a;workers=99999999999999999999", "workers");
	parse_bad("dir=/a;stored_principal=8388608TiB", "stored_principal");
	parse_bad("dir=/a;stored_principal=99999999TiB", "stored_principal");
	parse_bad("dir=/a;cache=1kb", "KiB");
	parse_bad("dir=/a;durability=always", "process or sync");
	parse_bad("dir=/a;on_ssd_loss=", "fail or read-through");
	parse_bad("dir=/a;io=fast", "cached or direct");
	parse_bad("dir=/a;secure=yes", "0 or 1");
	parse_bad("dir=/a;osc_compat=on", "0 or 1");
	parse_bad("dir=/a;osc-compat=1", "unknown");
	parse_bad("dir=/a;heads=on", "small-only");
	parse_bad("dir=/a;head_size=2TiB", "head_size");
	parse_bad("dir=/a;head_high=100", "head_high");
	parse_bad("dir=/a;head_high=50;head_low=60", "head_low");
	parse_bad("=1;dir=/a", "unknown");
}

/* tgtd's path of a unit is its directory, unless an option names another. */
static void test_directory(void)
{
	struct osd_config config;
	char message[256] = "";

	CHECK_EQ(osd_config_parse("workers=2", "/path;of=tgtd", message, &config), OSD_OK);
	CHECK(!strcmp(config.directory, "/path;of=tgtd"));
	osd_config_release(&config);
	CHECK_EQ(osd_config_parse("dir=/b", "/a", message, &config), OSD_OK);
	CHECK(!strcmp(config.directory, "/b"));
	osd_config_release(&config);
	CHECK_EQ(osd_config_parse("", "", message, &config), OSD_E_PARAM_FIELD);
	CHECK(strstr(message, "'dir'"));
}

int main(void)
{
	test_directory();
	test_defaults();
	test_values();
	test_refusals();
	return 0;
}
