/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bootstrap.c -- see bootstrap.h.  The text of a master key file:
 *
 *   iosd master key 1
 *   authentication HEX64
 *   generation HEX64
 *   system-id HEX40
 *
 * The text of a local key file begins with "iosd local key 1", has no line "authentication", and ends with
 * "method N", the security method to use.
 *
 * No message repeats any of it. */
#include "security/bootstrap.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "security/secret.h"
#include "wire/cursor.h"

#define HEADER	     "iosd master key 1\n"
#define LOCAL_HEADER "iosd local key 1\n"
#define PATH_SHOWN   "%.120s"
#define TEXT_BYTES   512 /* more than any such file has */

struct text {
	char bytes[TEXT_BYTES];
	size_t length;
};

static enum osd_status fail(char message[256], const char *path, const char *why)
{
	return OSD_EXPLAIN(message, OSD_E_MEDIUM, "master key file '" PATH_SHOWN "': %s", path,
			   why);
}

/* ---- writing ----------------------------------------------------------------------------- */

static void put_text(struct text *text, const char *words)
{
	size_t length = OSD_MIN(strlen(words), sizeof(text->bytes) - text->length);

	memcpy(text->bytes + text->length, words, length);
	text->length += length;
}

static void put_line(struct text *text, const char *name, const uint8_t *bytes, size_t length)
{
	char digits[3];

	put_text(text, name);
	put_text(text, " ");
	for (size_t i = 0; i < length; i++) {
		snprintf(digits, sizeof(digits), "%02x", bytes[i]);
		put_text(text, digits);
	}
	put_text(text, "\n");
}

static int sync_directory(const char *path)
{
	char copy[PATH_MAX];
	int error = 0;

	snprintf(copy, sizeof(copy), "%s", path);
	OSD_CLEANUP_CLOSE int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		error = errno;
	return error;
}

/* Writes the whole file or none: it has another name until its bytes are on disk.  A file that
 * another process has made meanwhile stays. */
static int write_text(const char *path, const struct text *text)
{
	char fresh[PATH_MAX];
	int error = 0;

	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
		return ENAMETOOLONG;
	OSD_CLEANUP_CLOSE int fd =
		open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return errno;
	/* A file that a crash has left may have another mode. */
	if (fchmod(fd, 0600) < 0)
		error = errno;
	if (!error && write(fd, text->bytes, text->length) != (ssize_t)text->length)
		error = errno ? errno : EIO;
	if (!error && fsync(fd) < 0)
		error = errno;
	if (!error && link(fresh, path) < 0)
		error = errno;
	unlink(fresh);
	return error ? error : sync_directory(path);
}

static enum osd_status make(const char *path, const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			    char message[256], struct text *text)
{
	struct osd_key_pair *key = osd_secret_alloc(sizeof(*key));
	int error;

	if (!key)
		return OSD_E_NO_MEMORY;
	osd_random_bytes(key, sizeof(*key));
	put_text(text, HEADER);
	put_line(text, "authentication", key->authentication, sizeof(key->authentication));
	put_line(text, "generation", key->generation, sizeof(key->generation));
	put_line(text, "system-id", system_id, OSD_SYSTEM_ID_BYTES);
	osd_secret_free(key, sizeof(*key));
	error = write_text(path, text);
	return error ? fail(message, path, strerror(error)) : OSD_OK;
}

/* ---- reading ----------------------------------------------------------------------------- */

static enum osd_status read_text(const char *path, char message[256], struct text *text)
{
	/* O_NONBLOCK: the open of a FIFO would wait for a writer. */
	OSD_CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	ssize_t got;

	if (fd < 0 && errno == ENOENT)
		return OSD_E_NO_OBJECT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(message, path, strerror(errno));
	if (!S_ISREG(st.st_mode) || (st.st_mode & 077) || st.st_uid != geteuid())
		return fail(message, path,
			    "must be a file of the user the target runs as, with mode 0600");
	got = read(fd, text->bytes, sizeof(text->bytes));
	if (got < 0)
		return fail(message, path, strerror(errno));
	text->length = (size_t)got;
	return OSD_OK;
}

static int digit_of(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Takes "NAME HEX\n" off the front of the text. */
static bool take_line(struct osd_rd *text, const char *name, uint8_t *bytes, size_t length)
{
	size_t name_length = strlen(name), whole = name_length + 1 + 2 * length + 1;
	const char *at = (const char *)osd_rd_bytes(text, whole);
	bool good = at && !memcmp(at, name, name_length) && at[name_length] == ' ' &&
		    at[whole - 1] == '\n';

	for (size_t i = 0; good && i < length; i++) {
		int high = digit_of(at[name_length + 1 + 2 * i]);
		int low = digit_of(at[name_length + 2 + 2 * i]);

		good = high >= 0 && low >= 0;
		bytes[i] = (uint8_t)(high << 4 | (low & 15));
	}
	return good;
}

static enum osd_status parse(const char *path, const struct text *text,
			     const uint8_t system_id[OSD_SYSTEM_ID_BYTES], char message[256],
			     struct osd_key_pair *key)
{
	size_t header = strlen(HEADER);
	uint8_t theirs[OSD_SYSTEM_ID_BYTES];
	struct osd_rd rest;

	if (text->length < header || memcmp(text->bytes, HEADER, header) != 0)
		return fail(message, path, "does not begin with 'iosd master key 1'");
	rest = osd_rd_init(text->bytes + header, text->length - header);
	if (!take_line(&rest, "authentication", key->authentication, sizeof(key->authentication)) ||
	    !take_line(&rest, "generation", key->generation, sizeof(key->generation)) ||
	    !take_line(&rest, "system-id", theirs, sizeof(theirs)) || osd_rd_left(&rest) != 0)
		return fail(message, path,
			    "needs the lines authentication, generation, system-id, and no others");
	if (memcmp(theirs, system_id, sizeof(theirs)) != 0)
		return fail(message, path,
			    "is another store's (its system id says so): move it away, and "
			    "a new one is made");
	return OSD_OK;
}

enum osd_status osd_bootstrap_master(const char *path, const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
				     char message[256], struct osd_key_pair *ret_key)
{
	struct text *text = osd_secret_alloc(sizeof(*text));
	enum osd_status status = text ? read_text(path, message, text) : OSD_E_NO_MEMORY;

	if (status == OSD_E_NO_OBJECT)
		status = make(path, system_id, message, text);
	if (status == OSD_OK)
		status = parse(path, text, system_id, message, ret_key);
	osd_secret_free(text, sizeof(*text));
	return status;
}

/* ---- the local administrator's key ------------------------------------------------------- */

enum osd_status osd_bootstrap_leave_local(const char *path,
					  const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
					  const uint8_t generation[OSD_MAC_LENGTH],
					  unsigned method, char message[256])
{
	struct text *text = osd_secret_alloc(sizeof(*text));
	char line[24];
	int error;

	if (!text)
		return OSD_E_NO_MEMORY;
	put_text(text, LOCAL_HEADER);
	put_line(text, "generation", generation, OSD_MAC_LENGTH);
	put_line(text, "system-id", system_id, OSD_SYSTEM_ID_BYTES);
	snprintf(line, sizeof(line), "method %u\n", method);
	put_text(text, line);
	/* write_text() replaces no file. */
	unlink(path);
	error = write_text(path, text);
	osd_secret_free(text, sizeof(*text));
	if (!error)
		return OSD_OK;
	return OSD_EXPLAIN(message, OSD_E_MEDIUM, "local key file '" PATH_SHOWN "': %s", path,
			   strerror(error));
}
