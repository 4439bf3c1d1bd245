/* SPDX-License-Identifier: GPL-2.0-or-later */
/* machine.c -- see machine.h.
 *
 * The name of a file has the ids of the function and the SHA-256 of its code.  Files are renamed into place, so a reader
 * finds a whole one; one that a crash has cut fails its check. */
#include "function/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "function/impl.h"
#include "security/box.h"
#include "security/mac.h"
#include "wire/proxy_frame.h"

#define FOLDER	  "machine"
#define NEW	  "new"
#define SEAL_INFO "iosd machine code"
#define NAME_SIZE (16 + 1 + 16 + 1 + 64 + 1)

struct osd_machine {
	int folder; /* owned */
	char build[];
};

struct osd_machine *osd_machine_open(const char *directory, const char *build)
{
	OSD_CLEANUP_CLOSE int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct osd_machine *machine = malloc(sizeof(*machine) + strlen(build) + 1);

	if (!machine)
		return NULL;
	memcpy(machine->build, build, strlen(build) + 1);
	(void)mkdirat(dir, FOLDER, 0700); /* most likely it is there */
	machine->folder =
		openat(dir, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (machine->folder >= 0)
		return machine;
	osd_warning("cannot keep machine code of functions in %s/" FOLDER ": %m", directory);
	free(machine);
	return NULL;
}

void osd_machine_close(struct osd_machine *machine)
{
	if (machine)
		close(machine->folder);
	free(machine);
}

static void name_of(const struct osd_function *function, char name[NAME_SIZE])
{
	int used = snprintf(name, NAME_SIZE, "%016" PRIx64 "-%016" PRIx64 "-",
			    function->id.partition_id, function->id.object_id);

	for (size_t i = 0; i < sizeof(function->sha256); i++, used += 2)
		snprintf(name + used, NAME_SIZE - (size_t)used, "%02x", function->sha256[i]);
}

/* ---- in memory --------------------------------------------------------------------------------------- */

bool osd_function_needs_compiler(const struct osd_function *function,
				 const struct osd_function_code *code)
{
	return strcmp(function->engine, OSD_FUNCTION_COMPILED) == 0 && !code->compiled &&
	       !osd_box_is(code->bytes, code->length);
}

struct osd_function_code *osd_function_code_compiled(const struct osd_function_code *code,
						     const uint8_t *machine, size_t length)
{
	struct osd_function_code *copy = malloc(sizeof(*copy) + code->length + length);

	if (!copy)
		return NULL;
	atomic_init(&copy->references, 1);
	atomic_init(&copy->pace, 0);
	copy->version = code->version;
	memcpy(copy->sha256, code->sha256, sizeof(copy->sha256));
	copy->length = code->length;
	copy->machine_length = length;
	copy->compiled = true;
	memcpy(copy->bytes, code->bytes, code->length);
	if (machine)
		memcpy(copy->bytes + code->length, machine, length);
	return copy;
}

/* ---- the check value --------------------------------------------------------------------------------- */

static bool check_value(struct osd_functions *functions, const char *name, const uint8_t *bytes,
			size_t length, uint8_t value[OSD_MAC_LENGTH])
{
	const char *build = functions->machine->build;
	uint8_t seal[OSD_SEAL_BYTES], key[OSD_MAC_LENGTH];
	struct osd_mac mac;

	_Static_assert(OSD_SEAL_BYTES == OSD_MAC_LENGTH, "the seal is a key");
	if (osd_objects_seal(functions->objects, true, seal) != OSD_OK || !osd_crypto_init())
		return false;
	osd_mac_init(&mac, OSD_HMAC_SHA256, seal);
	osd_mac_update(&mac, SEAL_INFO, strlen(SEAL_INFO));
	osd_mac_final(&mac, key);
	osd_mac_init(&mac, OSD_HMAC_SHA256, key);
	osd_mac_update(&mac, name, NAME_SIZE); /* texts end with a zero byte */
	osd_mac_update(&mac, build, strlen(build) + 1);
	osd_mac_update(&mac, bytes, length);
	osd_mac_final(&mac, value);
	explicit_bzero(seal, sizeof(seal));
	explicit_bzero(key, sizeof(key));
	return true;
}

/* ---- files ------------------------------------------------------------------------------------------- */

static bool write_file(int folder, const char *name, const uint8_t value[OSD_MAC_LENGTH],
		       const uint8_t *bytes, size_t length)
{
	OSD_CLEANUP_CLOSE int fd = -1;
	bool good;

	unlinkat(folder, NEW, 0); /* left by a crash; of two writers at a time one may keep nothing */
	fd = openat(folder, NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	good = fd >= 0 && osd_write_all(fd, value, OSD_MAC_LENGTH) &&
	       osd_write_all(fd, bytes, length) && renameat(folder, NEW, folder, name) == 0;
	if (!good)
		osd_debug("machine code of a function is not kept: %m");
	return good;
}

/* Whether the file belongs to an active function.  There may be thousands of both, so names are made for the right id only. */
static bool is_wanted(struct osd_functions *functions, const char *name)
{
	struct osd_object_id id = {0, 0};
	bool wanted = false;

	if (sscanf(name, "%16" SCNx64 "-%16" SCNx64, &id.partition_id, &id.object_id) != 2)
		return false;

	osd_lock(&functions->lock);
	for (size_t i = 0; i < functions->count && !wanted; i++) {
		char of_active[NAME_SIZE];

		if (!osd_same_id(functions->entries[i].function.id, id))
			continue;
		name_of(&functions->entries[i].function, of_active);
		wanted = strcmp(name, of_active) == 0;
	}
	osd_unlock(&functions->lock);
	return wanted;
}

/* Returns the bytes of what is left. */
static uint64_t sweep(struct osd_functions *functions)
{
	int fd = openat(functions->machine->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	uint64_t bytes = 0;
	struct stat status;

	if (!folder) {
		osd_closep(&fd);
		return UINT64_MAX;
	}
	while ((entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		if (!is_wanted(functions, entry->d_name))
			unlinkat(fd, entry->d_name, 0);
		else if (fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
			bytes += (uint64_t)status.st_size;
	}
	closedir(folder);
	return bytes;
}

void osd_machine_sweep(struct osd_functions *functions)
{
	if (functions->machine && atomic_exchange(&functions->machine_due, false))
		sweep(functions);
}

/* ---- to and from files ------------------------------------------------------------------------------- */

/* A function that ends meanwhile leaves no file: its end sweeps after it, or it is noticed here. */
void osd_machine_put(struct osd_functions *functions, const struct osd_function *function,
		     const struct osd_function_code *code)
{
	const struct osd_machine *machine = functions->machine;
	const uint8_t *bytes = code->bytes + code->length;
	uint8_t value[OSD_MAC_LENGTH];
	char name[NAME_SIZE];
	uint64_t others;

	if (!machine || !code->machine_length)
		return;
	name_of(function, name);
	others = sweep(functions);
	if (others > OSD_MACHINE_MAX - OSD_MIN(code->machine_length, OSD_MACHINE_MAX) ||
	    !check_value(functions, name, bytes, code->machine_length, value) ||
	    !write_file(machine->folder, name, value, bytes, code->machine_length))
		return;
	if (!is_wanted(functions, name))
		unlinkat(machine->folder, name, 0);
}

static struct osd_function_code *read_file(struct osd_functions *functions, int fd,
					   const char *name, const struct osd_function_code *code)
{
	OSD_CLEANUP_FREE struct osd_function_code *whole = NULL; /* nobody else has it yet */
	uint8_t stored[OSD_MAC_LENGTH], value[OSD_MAC_LENGTH], *bytes;
	struct stat status;
	size_t length;

	if (fstat(fd, &status) < 0 || status.st_size <= OSD_MAC_LENGTH ||
	    status.st_size > OSD_MAC_LENGTH + (off_t)OSD_JOB_MACHINE_MAX)
		return NULL;
	length = (size_t)status.st_size - OSD_MAC_LENGTH;
	whole = osd_function_code_compiled(code, NULL, length);
	if (!whole)
		return NULL;
	bytes = whole->bytes + whole->length;
	if (readv(fd, (struct iovec[]){{stored, sizeof(stored)}, {bytes, length}}, 2) !=
		    status.st_size ||
	    !check_value(functions, name, bytes, length, value))
		return NULL;
	if (osd_mac_equal(stored, value))
		return OSD_STEAL(whole);
	osd_info("machine code of function 0x%.16s/0x%.16s is not that of this store, compiler and "
		 "processor: it is compiled again",
		 name, name + 17);
	return NULL;
}

struct osd_function_code *osd_machine_get(struct osd_functions *functions,
					  const struct osd_function *function,
					  const struct osd_function_code *code)
{
	OSD_CLEANUP_CLOSE int fd = -1;
	char name[NAME_SIZE];

	if (!functions->machine || !osd_function_needs_compiler(function, code))
		return NULL;
	name_of(function, name);
	fd = openat(functions->machine->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? NULL : read_file(functions, fd, name, code);
}
