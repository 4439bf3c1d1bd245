/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_machine.c -- machine code that is kept in files: only what was put comes back, for the same function, code, store
 * and build. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "base/util.h"
#include "function/impl.h"
#include "function/machine.h"
#include "testing/stores.h"

#define CODE	"\0asm"
#define MACHINE "machine code"

static char directory[] = "/tmp/iosd-machine-XXXXXX", folder[64];
static struct osd_objects *objects;
static struct osd_functions *functions;
static struct osd_function function = {
	.id = {1, OSD_FIRST_ID}, .sha256 = {1, 2, 3}, .engine = OSD_FUNCTION_COMPILED};
static struct osd_function_code *code, *whole;

static void open_functions(const char *build)
{
	char message[256];

	CHECK_EQ(osd_functions_open(objects, NULL, message, &functions), OSD_OK);
	CHECK(osd_function_found(functions, &function));
	osd_functions_keep_machine(functions, directory, build);
	CHECK(functions->machine);
}

static void open_again(const char *build)
{
	osd_functions_close(functions);
	open_functions(build);
}

static bool comes_back(void)
{
	OSD_CLEANUP(osd_function_code_putp)
	struct osd_function_code *got = osd_machine_get(functions, &function, code);

	if (!got)
		return false;
	CHECK(got->length == code->length && got->machine_length == whole->machine_length);
	CHECK(memcmp(got->bytes, whole->bytes, got->length + got->machine_length) == 0);
	CHECK(memcmp(got->sha256, code->sha256, sizeof(got->sha256)) == 0);
	return true;
}

/* The path of the only file; false: there is none. */
static bool find_file(char path[512])
{
	DIR *opened = opendir(folder);
	const struct dirent *entry;
	unsigned count = 0;

	CHECK(opened);
	while ((entry = readdir(opened))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, 512, "%s/%s", folder, entry->d_name);
		count++;
	}
	closedir(opened);
	CHECK(count <= 1);
	return count;
}

static void test_kept(void)
{
	char path[512];

	CHECK(!comes_back());
	osd_machine_put(functions, &function, code); /* has none */
	CHECK(!find_file(path));
	osd_machine_put(functions, &function, whole);
	CHECK(comes_back());
	open_again("one");
	CHECK(comes_back());
	osd_machine_put(functions, &function, whole); /* in its place */
	CHECK(comes_back() && find_file(path));
}

static void test_another_build(void)
{
	open_again("another");
	CHECK(!comes_back());
	open_again("one");
	CHECK(comes_back());
}

static void test_another_version(void)
{
	struct osd_function other = function;
	char path[512], moved[512];

	CHECK(find_file(path));
	other.sha256[31] ^= 1;
	CHECK(!osd_machine_get(functions, &other, code));
	snprintf(moved, sizeof(moved), "%s", path);
	moved[strlen(moved) - 1] = '1'; /* as the other's */
	CHECK_EQ(rename(path, moved), 0);
	CHECK(!osd_machine_get(functions, &other, code));
	CHECK_EQ(rename(moved, path), 0);
	CHECK(comes_back());
}

static void test_changed(void)
{
	char path[512];
	uint8_t byte;
	off_t length;
	int fd;

	CHECK(find_file(path));
	fd = open(path, O_RDWR | O_CLOEXEC);
	length = lseek(fd, 0, SEEK_END);
	CHECK(fd >= 0 && length == 32 + (off_t)whole->machine_length);
	for (off_t at = 0; at < length; at++) {
		CHECK_EQ(pread(fd, &byte, 1, at), 1);
		byte ^= 0x10;
		CHECK_EQ(pwrite(fd, &byte, 1, at), 1);
		CHECK(!comes_back());
		byte ^= 0x10;
		CHECK_EQ(pwrite(fd, &byte, 1, at), 1);
	}
	CHECK(comes_back());
	CHECK_EQ(pwrite(fd, &byte, 1, length), 1);
	CHECK(!comes_back());
	for (off_t shorter = length - 1; shorter >= 0; shorter--) {
		CHECK_EQ(ftruncate(fd, shorter), 0);
		CHECK(!comes_back());
	}
	close(fd);
	osd_machine_put(functions, &function, whole);
	CHECK(comes_back());
}

static void test_ends_with_the_function(void)
{
	struct osd_function other = function;
	char path[512];

	other.id.object_id++;
	osd_machine_put(functions, &other, whole); /* it is not active */
	CHECK(find_file(path) && comes_back());
	osd_functions_forget(functions);
	CHECK(!find_file(path));
}

int main(void)
{
	static const struct osd_test_stores stores = {.fault_at = UINT64_MAX};
	const struct osd_objects_config config = {.cache_bytes = 8u << 20, .test = &stores};
	char message[256];

	CHECK(mkdtemp(directory));
	snprintf(folder, sizeof(folder), "%s/machine", directory);
	CHECK_EQ(osd_objects_open(&config, message, &objects), OSD_OK);
	code = calloc(1, sizeof(*code) + sizeof(CODE));
	CHECK(code);
	atomic_init(&code->references, 1);
	code->length = sizeof(CODE);
	memcpy(code->bytes, CODE, sizeof(CODE));
	memcpy(code->sha256, function.sha256, sizeof(code->sha256));
	whole = osd_function_code_compiled(code, (const uint8_t *)MACHINE, sizeof(MACHINE));
	open_functions("one");
	test_kept();
	test_another_build();
	test_another_version();
	test_changed();
	test_ends_with_the_function();
	osd_functions_close(functions);
	osd_objects_close(objects);
	osd_function_code_put(code);
	osd_function_code_put(whole);
	CHECK_EQ(rmdir(folder), 0);
	CHECK_EQ(rmdir(directory), 0);
	return 0;
}
