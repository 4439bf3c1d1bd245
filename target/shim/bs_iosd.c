/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bs_iosd.c -- the module as stock tgtd sees it: registration, opening and closing of logical
 * units, INQUIRY identity.  Works both ways: loaded from tgtd's backing-store directory
 * (register_bs_module) and preloaded (the constructor).  One logical unit is one store with its
 * own unit.
 *
 * In the constructor tgtd has no event loop yet and may still fork: threads and descriptors
 * start at bs_open.  tgtd calls bs_close and bs_exit only when a unit is deleted, never when it
 * is killed: the store does not count on them. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/log.h"
#include "base/util.h"
#include "shim/shim.h"
#include "wire/cursor.h"
#include "wire/inquiry.h"
#include "wire/osd2.h"

#define VPD_BLOCK_PROVISIONING 0xb2
#define OSD_INFORMATION_BYTES 8u
#define BLOCK_LIMITS_BYTES    0x3cu /* of tgtd's own page B0h */
#define NAA_BYTES	      8u
#define NAA_LOCAL	      0x3u
#define DESIGNATOR_HEADER     4u

static struct tgt_backing_store shim_backing_store;
static struct shim_lu *all; /* main thread only, as the next */
static int (*tgt_config)(struct tgt_lu *lu, char *params); /* tgtd's own, the same for all units */

static struct shim_lu *shim_lu_find(const struct tgt_lu *lu)
{
	struct shim_lu *shim = all;

	while (shim && shim->lu != lu)
		shim = shim->next;
	return shim;
}

/* ---- INQUIRY identity ------------------------------------------------------------------------ */

static void keep_page(struct tgt_lu *lu, void *data)
{
	(void)lu;
	(void)data;
}

/* Replaces a page that tgtd has filled for block devices. */
static bool replace_vpd(struct tgt_lu *lu, unsigned page, const uint8_t *bytes, uint16_t length)
{
	struct tgt_vpd *vpd = alloc_vpd(length);

	if (!vpd)
		return false;
	vpd->size = length;
	vpd->update = keep_page;
	if (length)
		memcpy(vpd->data, bytes, length);
	free(lu->attrs.lu_vpd[TGT_VPD(page)]);
	lu->attrs.lu_vpd[TGT_VPD(page)] = vpd;
	return true;
}

/* The token is that of the open unit. */
static bool set_security_pages(struct tgt_lu *lu)
{
	uint8_t information[OSD_INFORMATION_BYTES] = {0};

	osd_put_be(information, OSD_SECURITY_METHODS, 2);
	free(lu->attrs.lu_vpd[TGT_VPD(VPD_BLOCK_PROVISIONING)]);
	lu->attrs.lu_vpd[TGT_VPD(VPD_BLOCK_PROVISIONING)] = NULL;
	return replace_vpd(lu, OSD_VPD_OSD, information, sizeof(information)) &&
	       replace_vpd(lu, OSD_VPD_TOKEN, NULL, 0);
}

/* Pages 80h and 83h name the store wherever it is served: its serial number and, as designators, its OSD
 * system id and a locally assigned NAA identifier made of that. */
static bool set_store_pages(struct tgt_lu *lu, const char *serial, const uint8_t *system_id)
{
	uint8_t designators[OSD_SYSTEM_ID_BYTES + DESIGNATOR_HEADER + NAA_BYTES] = {0};
	uint8_t *naa = designators + OSD_SYSTEM_ID_BYTES;

	memcpy(designators, system_id, OSD_SYSTEM_ID_BYTES);
	memcpy(naa, "\x01\x03\x00\x08", DESIGNATOR_HEADER);
	naa += DESIGNATOR_HEADER;
	memcpy(naa, system_id + OSD_SYSTEM_ID_BYTES - NAA_BYTES, NAA_BYTES);
	naa[0] = (uint8_t)(NAA_LOCAL << 4 | (naa[0] & 0xf));
	snprintf(lu->attrs.scsi_sn, sizeof(lu->attrs.scsi_sn), "%s", serial);
	snprintf(lu->attrs.scsi_id, sizeof(lu->attrs.scsi_id), "%s", serial);
	return replace_vpd(lu, OSD_VPD_SERIAL, (const uint8_t *)serial, (uint16_t)strlen(serial)) &&
	       replace_vpd(lu, OSD_VPD_IDENTIFICATION, designators, sizeof(designators));
}

/* `tgtadm --op update --params`: tgtd's own function follows pointers to the pages of block devices. */
static int shim_config(struct tgt_lu *lu, char *params)
{
	static const char *const of_blocks[] = {"thin_provisioning", "rotation_rate",
						"optimal_xfer_gran", "optimal_xfer_len"};

	for (size_t i = 0; params && i < OSD_ARRAY_SIZE(of_blocks); i++) {
		if (strstr(params, of_blocks[i])) {
			osd_error("lun %u: %s is a parameter of block devices", (unsigned)lu->lun,
				  of_blocks[i]);
			return TGTADM_INVALID_REQUEST;
		}
	}
	return tgt_config(lu, params);
}

static bool set_identity(struct tgt_lu *lu)
{
	struct tgt_lu_attributes *attrs = &lu->attrs;

	snprintf(attrs->vendor_id, sizeof(attrs->vendor_id), "%s", OSD_VENDOR_ID);
	snprintf(attrs->product_id, sizeof(attrs->product_id), "%s", OSD_PRODUCT_ID);
	snprintf(attrs->product_rev, sizeof(attrs->product_rev), "%s", OSD_PRODUCT_REV);
	memset(attrs->version_desc, 0, sizeof(attrs->version_desc));
	attrs->version_desc[0] = OSD_VERSION_OSD2;
	attrs->version_desc[1] = OSD_VERSION_ISCSI;
	attrs->version_desc[2] = OSD_VERSION_SPC3;
	attrs->sense_format = 1; /* descriptor format */
	return set_security_pages(lu);
}

/* ---- logical units --------------------------------------------------------------------------- */

/* Whether the structure has the expected layout: compares fields that tgtd itself has just set. */
static bool layout_is_ours(const struct tgt_lu *lu)
{
	const struct tgt_lu_attributes *attrs = &lu->attrs;

	return lu->bst == &shim_backing_store && attrs->device_type == TGT_DEVICE_TYPE_OSD &&
	       !memcmp(attrs->vendor_id, "IET", 4) && attrs->version_desc[0] == 0x0340 &&
	       attrs->lu_vpd[TGT_VPD(0x80)] && attrs->lu_vpd[TGT_VPD(0x83)] &&
	       attrs->lu_vpd[TGT_VPD(OSD_VPD_OSD)] &&
	       attrs->lu_vpd[TGT_VPD(OSD_VPD_OSD)]->size == BLOCK_LIMITS_BYTES && lu->config;
}

static void shim_lu_free(struct shim_lu *shim)
{
	for (struct shim_lu **at = &all; *at; at = &(*at)->next) {
		if (*at == shim) {
			*at = shim->next;
			break;
		}
	}
	free(shim->options);
	free(shim);
}

static int shim_init(struct tgt_lu *lu, char *bsopts)
{
	struct shim_lu *shim;

	if (lu->bst != &shim_backing_store || lu->attrs.device_type != TGT_DEVICE_TYPE_OSD) {
		osd_error(
			"not an OSD unit, or structures that differ from those of " TGT_ABI_VERSIONS
			": create the unit with --device-type osd --bstype iosd");
		return TGTADM_INVALID_REQUEST;
	}
	if (!layout_is_ours(lu)) {
		osd_error("this tgtd's structures differ from those of " TGT_ABI_VERSIONS
			  ": install the tgt package this module was built for");
		return TGTADM_UNSUPPORTED_OPERATION;
	}
	shim = calloc(1, sizeof(*shim));
	if (!shim)
		return TGTADM_NOMEM;
	shim->lu = lu;
	shim->next = all;
	all = shim;
	shim->options = strdup(bsopts ? bsopts : "");
	if (!shim->options || !set_identity(lu)) {
		shim_lu_free(shim);
		return TGTADM_NOMEM;
	}
	tgt_config = lu->config;
	lu->config = shim_config;
	return TGTADM_SUCCESS;
}

static void shim_exit(struct tgt_lu *lu)
{
	struct shim_lu *shim = shim_lu_find(lu);

	if (shim)
		shim_lu_free(shim);
}

/* The path of the unit is the data directory. */
static int open_unit(struct shim_lu *shim, const char *path)
{
	OSD_CLEANUP(osd_config_release) struct osd_config config = {0};
	char message[256] = "out of memory";

	if (osd_config_parse(shim->options, path, message, &config) != OSD_OK ||
	    osd_unit_open(&config, message, &shim->unit) != OSD_OK) {
		osd_error("lun %u: %s", (unsigned)shim->lu->lun, message);
		return -EINVAL;
	}
	if (replace_vpd(shim->lu, OSD_VPD_TOKEN, osd_unit_token(shim->unit),
			OSD_SECURITY_TOKEN_BYTES) &&
	    set_store_pages(shim->lu, osd_unit_serial(shim->unit), osd_unit_system_id(shim->unit)))
		shim->completions = shim_completions_create(&shim->unit, shim_cmd_finish);
	if (!shim->completions) {
		osd_error("lun %u: cannot add an event to tgtd's loop", (unsigned)shim->lu->lun);
		osd_unit_close(shim->unit);
		shim->unit = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int shim_open(struct tgt_lu *lu, char *path, int *fd, uint64_t *size)
{
	struct shim_lu *shim = shim_lu_find(lu);
	int error = shim ? open_unit(shim, path) : -EINVAL;

	if (error)
		return error;
	*fd = -1;
	*size = osd_unit_capacity(shim->unit);
	osd_info("lun %u: %s is open", (unsigned)lu->lun, path);
	return 0;
}

/* tgtd calls this with no command under way: it refuses to delete a unit with commands as
 * active. */
static void shim_close(struct tgt_lu *lu)
{
	struct shim_lu *shim = shim_lu_find(lu);

	if (!shim || !shim->unit)
		return;
	osd_unit_close(shim->unit);
	shim->unit = NULL;
	shim_completions_free(shim->completions);
	shim->completions = NULL;
	shim_commands_free(shim);
}

static int shim_submit(struct tgt_cmd *cmd)
{
	bool ours = cmd->dev->bst == &shim_backing_store;

	return shim_cmd_submit(ours ? shim_lu_find(cmd->dev) : NULL, cmd);
}

static struct tgt_backing_store shim_backing_store = {
	.bs_name = "iosd",
	.bs_open = shim_open,
	.bs_close = shim_close,
	.bs_init = shim_init,
	.bs_exit = shim_exit,
	.bs_cmd_submit = shim_submit,
};

/* ---- registration ---------------------------------------------------------------------------- */

/* tgtd allocates and frees the data buffer of every command; without this glibc maps and unmaps
 * each large one, which costs a third of the throughput at 4 MiB. */
static void tune_malloc(void)
{
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_TOP_PAD, 64 << 20);
}

static bool symbols_resolve(void)
{
	return target_cmd_io_done && tgt_event_add && tgt_event_del && alloc_vpd &&
	       iscsi_transportid && concat_buf_init && concat_buf_finish &&
	       concat_buf_release && iscsi_target_show;
}

static void register_once(void)
{
	static bool registered;

	if (registered)
		return;
	registered = true;
	osd_log_init(STDERR_FILENO, "iosd", OSD_LOG_INFO);
	if (!symbols_resolve()) {
		osd_error("this tgtd lacks functions of " TGT_ABI_VERSIONS
			  ": install the tgt package this module was built for");
		return;
	}
	tune_malloc();
	register_backingstore_template(&shim_backing_store);
}

/* The symbol tgtd looks up in modules of its backing-store directory. */
__attribute__((visibility("default"))) void register_bs_module(void);
void register_bs_module(void)
{
	if (register_backingstore_template)
		register_once();
}

/* `osd target serve` has tgtd for itself, so tgtd is confined before it does anything (base/confine.h). */
static void confine_if_asked(void)
{
	int error = getenv("IOSD_CONFINE") ? osd_confine() : 0;

	if (!error)
		return;
	osd_error("tgtd cannot be confined, so it does not serve: %s", strerror(error));
	_exit(1);
}

/* Preloaded into another program than tgtd the symbol is absent, and nothing happens. */
__attribute__((constructor)) static void preload(void)
{
	if (!register_backingstore_template)
		return;
	register_once();
	confine_if_asked();
}
