/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osd_harness.c -- front end 2: OSD requests on stdin, answers on stdout.  For tests, fuzzing
 * and benchmarks of everything below the transport.
 *
 *   osd_harness OPTION-STRING         serve until end of input, then close the store and exit 0
 *   osd_harness --list-commands       the command table, tab separated
 *   osd_harness --list-attributes     the table of standard attributes, tab separated
 *   osd_harness --list-sense          the table of conditions and their sense data, tab separated
 *   osd_harness --help
 *
 * Request frame: be32 4F534451h "OSDQ", be64 tag, be32 CDB length, be32 Data-Out length, be32
 * Data-In capacity, then CDB and Data-Out.  Answer frame: be32 4F534441h "OSDA", be64 tag, SAM
 * status, 3 zero bytes, be32 sense length, be32 Data-In length, then sense data and Data-In.
 * Many requests may be outstanding; answers come in any order.  A request there is no memory for
 * is answered BUSY; a frame that is no frame ends the harness with exit 2.
 *
 * Every buffer is allocated at its exact size, so that a sanitizer sees one byte too far. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/util.h"
#include "command/table.h"
#include "harness/listings.h"
#include "unit/unit.h"
#include "wire/capability.h"
#include "wire/cursor.h"
#include "wire/inquiry.h"

#define REQUEST_MAGIC  0x4f534451u
#define ANSWER_MAGIC   0x4f534441u
#define REQUEST_HEADER 24u
#define ANSWER_HEADER  24u
#define CDB_MAX	       4096u

enum { EXIT_FRAME = 2, EXIT_START = 3, EXIT_OUTPUT = 4 };

struct harness_request {
	struct osd_request request;
	uint64_t tag;
	uint8_t *cdb, *data_out, *data_in; /* owned */
};

static struct osd_identity identity; /* of the unit */
static struct osd_lock output_lock = OSD_LOCK_INITIALIZER(OSD_RANK_HARNESS_OUTPUT);

static void harness_request_free(struct harness_request *item)
{
	if (!item)
		return;
	free(item->cdb);
	free(item->data_out);
	free(item->data_in);
	free(item);
}

OSD_DEFINE_CLEANUP(struct harness_request *, harness_request_free)

/* ---- answers --------------------------------------------------------------------------------- */

static void write_all(struct iovec *iov, int count)
{
	while (count) {
		ssize_t written = writev(STDOUT_FILENO, iov, count);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			_exit(EXIT_OUTPUT); /* the reader is gone; the store is crash-consistent */
		while (count && (size_t)written >= iov->iov_len) {
			written -= (ssize_t)iov->iov_len;
			iov++;
			count--;
		}
		if (count) {
			iov->iov_base = (uint8_t *)iov->iov_base + written;
			iov->iov_len -= (size_t)written;
		}
	}
}

static void send_answer(struct harness_request *item)
{
	struct osd_request *request = &item->request;
	uint8_t header[ANSWER_HEADER];
	struct osd_wr w = osd_wr_init(header, sizeof(header));
	struct iovec iov[3] = {{header, sizeof(header)},
			       {request->sense, request->sense_length},
			       {item->data_in, request->data_in_length}};

	osd_wr_be(&w, ANSWER_MAGIC, 4);		   /* 0-3 */
	osd_wr_be(&w, item->tag, 8);		   /* 4-11 */
	osd_wr_be(&w, request->sam_status, 1);	   /* 12 */
	osd_wr_zero(&w, 3);			   /* 13-15 */
	osd_wr_be(&w, request->sense_length, 4);   /* 16-19 */
	osd_wr_be(&w, request->data_in_length, 4); /* 20-23 */
	osd_lock(&output_lock);
	write_all(iov, OSD_ARRAY_SIZE(iov));
	osd_unlock(&output_lock);
}

static void answer(struct osd_request *request)
{
	send_answer(request->front_end);
	harness_request_free(request->front_end);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* 1: read it all; 0: end of input before the first byte; -1: cut short or failed. */
static int read_all(void *buffer, size_t length)
{
	uint8_t *at = buffer;
	size_t done = 0;

	while (done < length) {
		ssize_t count = read(STDIN_FILENO, at + done, length - done);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return count == 0 && done == 0 ? 0 : -1;
		done += (size_t)count;
	}
	return 1;
}

/* Reads length bytes past. */
static bool skip(size_t length)
{
	uint8_t bytes[4096];

	while (length) {
		size_t piece = OSD_MIN(length, sizeof(bytes));

		if (read_all(bytes, piece) != 1)
			return false;
		length -= piece;
	}
	return true;
}

struct request_header {
	uint64_t tag;
	size_t cdb_length, data_out_length, data_in_capacity;
};

/* 1, 0 or -1, as read_all; -1 also for what is no frame. */
static int read_header(struct request_header *ret_header)
{
	uint8_t bytes[REQUEST_HEADER];
	struct osd_rd r = osd_rd_init(bytes, sizeof(bytes));
	int got = read_all(bytes, sizeof(bytes));
	uint32_t magic;

	if (got <= 0)
		return got;
	magic = (uint32_t)osd_rd_be(&r, 4);		 /* 0-3 */
	ret_header->tag = osd_rd_be(&r, 8);		 /* 4-11 */
	ret_header->cdb_length = osd_rd_be(&r, 4);	 /* 12-15 */
	ret_header->data_out_length = osd_rd_be(&r, 4);	 /* 16-19 */
	ret_header->data_in_capacity = osd_rd_be(&r, 4); /* 20-23 */
	return magic == REQUEST_MAGIC && ret_header->cdb_length <= CDB_MAX &&
			       ret_header->data_out_length <= OSD_TRANSFER_MAX &&
			       ret_header->data_in_capacity <= OSD_TRANSFER_MAX
		       ? 1
		       : -1;
}

/* NULL: no memory. */
static struct harness_request *new_request(const struct request_header *header)
{
	struct harness_request *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	item->tag = header->tag;
	item->cdb = malloc(header->cdb_length);
	item->data_out = malloc(header->data_out_length);
	item->data_in = malloc(header->data_in_capacity);
	if ((!item->cdb && header->cdb_length) || (!item->data_out && header->data_out_length) ||
	    (!item->data_in && header->data_in_capacity)) {
		harness_request_free(item);
		return NULL;
	}
	item->request.cdb = item->cdb;
	item->request.cdb_length = header->cdb_length;
	item->request.data_out = item->data_out;
	item->request.data_out_length = header->data_out_length;
	item->request.data_in = item->data_in;
	item->request.data_in_capacity = header->data_in_capacity;
	item->request.nexus = (struct osd_nexus){
		.id = 1, .initiator_name = "", .address = "harness"};
	item->request.task_tag = item->tag;
	item->request.identity = &identity;
	item->request.done = answer;
	item->request.front_end = item;
	return item;
}

/* 1: *ret_item is the next request, or NULL when there was no memory for it and BUSY has been
 * answered; 0: end of input; -1: not a frame. */
static int read_request(struct harness_request **ret_item)
{
	OSD_CLEANUP(harness_request_freep) struct harness_request *item = NULL;
	struct request_header header;
	int got = read_header(&header);

	*ret_item = NULL;
	if (got <= 0)
		return got;
	item = new_request(&header);
	if (!item) {
		struct harness_request busy = {.tag = header.tag,
					       .request.sam_status = OSD_SAM_BUSY};

		if (!skip(header.cdb_length + header.data_out_length))
			return -1;
		send_answer(&busy);
		return 1;
	}
	if (read_all(item->cdb, header.cdb_length) != 1 ||
	    read_all(item->data_out, header.data_out_length) != 1)
		return -1;
	*ret_item = OSD_STEAL(item);
	return 1;
}

static void identify(const struct osd_unit *unit)
{
	static const uint16_t versions[OSD_INQUIRY_VERSIONS] = {OSD_VERSION_OSD2, OSD_VERSION_SPC3};
	const char *serial = osd_unit_serial(unit);
	uint8_t information[8] = {0, OSD_SECURITY_METHODS};

	osd_identity_init(&identity, OSD_VENDOR_ID, OSD_PRODUCT_ID, OSD_PRODUCT_REV, versions);
	osd_identity_add(&identity, OSD_VPD_SERIAL, serial, strlen(serial));
	osd_identity_add(&identity, OSD_VPD_IDENTIFICATION, osd_unit_system_id(unit),
			 OSD_SYSTEM_ID_BYTES);
	osd_identity_add(&identity, OSD_VPD_OSD, information, sizeof(information));
	osd_identity_add(&identity, OSD_VPD_TOKEN, osd_unit_token(unit), OSD_SECURITY_TOKEN_BYTES);
}

static int serve(struct osd_unit *unit)
{
	struct osd_inline_window window = {0};
	struct harness_request *item;
	int got;

	while ((got = read_request(&item)) > 0) {
		if (!item)
			continue;
		if (osd_unit_try(unit, &window, &item->request))
			answer(&item->request);
		else
			osd_unit_submit(unit, &window, &item->request);
	}
	if (got < 0)
		osd_error("input is not a request frame");
	return got < 0 ? EXIT_FRAME : EXIT_SUCCESS;
}

static int usage(void)
{
	puts("usage: osd_harness OPTION-STRING | --list-commands | --list-attributes | --list-sense |\n"
	     "       osd_harness --help\n"
	     "options, written name=value and separated by ';':");
	osd_config_help(stdout);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	OSD_CLEANUP(osd_config_release) struct osd_config config = {0};
	struct osd_unit *unit;
	char message[256];
	int code;

	osd_log_init(STDERR_FILENO, "osd_harness", OSD_LOG_INFO);
	if (argc == 2 && !strcmp(argv[1], "--list-commands")) {
		harness_list_commands();
		return EXIT_SUCCESS;
	}
	if (argc == 2 && !strcmp(argv[1], "--list-sense")) {
		harness_list_sense();
		return EXIT_SUCCESS;
	}
	if (argc == 2 && !strcmp(argv[1], "--list-attributes")) {
		harness_list_attributes();
		return EXIT_SUCCESS;
	}
	if (argc != 2 || !strcmp(argv[1], "--help"))
		return usage();
	if (osd_config_parse(argv[1], NULL, message, &config) != OSD_OK ||
	    osd_unit_open(&config, message, &unit) != OSD_OK) {
		osd_error("%s", message);
		return EXIT_START;
	}
	identify(unit);
	code = serve(unit);
	osd_unit_close(unit);
	return code;
}
