/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tgt_abi.h -- the little of tgt's interface the module uses, declared by ourselves, because tgt
 * installs no headers.  x86-64; the layout is the same in tgt 1.0.60 to 1.0.97 (offsets compared
 * with its sources).  Fields not used are padding; static asserts pin the others, and a test
 * compares this file with the headers of the distribution's source package.
 *
 * At run time the module checks what it can see of the layout before it trusts it (bs_iosd.c). */
#ifndef OSD_SHIM_TGT_ABI_H
#define OSD_SHIM_TGT_ABI_H

#include <stddef.h>
#include <stdint.h>

#define TGT_ABI_VERSIONS "tgt 1.0.60 to 1.0.97"

struct tgt_cmd;
struct tgt_lu;

struct tgt_list {
	struct tgt_list *next, *prev;
};

enum tgt_data_direction {
	TGT_DATA_NONE = 0,
	TGT_DATA_WRITE = 1,
	TGT_DATA_READ = 2,
	TGT_DATA_BIDIRECTIONAL = 3,
};

enum tgt_admin_error { /* tgtadm_err */
	TGTADM_SUCCESS = 0,
	TGTADM_NOMEM = 2,
	TGTADM_INVALID_REQUEST = 17,
	TGTADM_UNSUPPORTED_OPERATION = 22,
};

#define TGT_DEVICE_TYPE_OSD 0x11
#define TGT_CMD_ASYNC       (1ul << 2) /* in scsi_cmd.state */
#define TGT_SENSE_BUFFER    252
#define TGT_VPD(page)       ((page) & 0x7f)

struct tgt_vpd {
	uint16_t size; /* of the data that INQUIRY returns */
	void (*update)(struct tgt_lu *lu, void *data);
	uint8_t data[];
};

struct tgt_lu_attributes { /* lu_phy_attr */
	char scsi_id[37];
	char scsi_sn[37];
	uint64_t numeric_id;
	char vendor_id[8 + 1];
	char product_id[16 + 1];
	char product_rev[4 + 1];
	uint16_t version_desc[8];
	unsigned char device_type;
	char unused_flags[6];
	char sense_format;
	char unused_blocks[8];
	struct tgt_vpd *lu_vpd[128];
};

struct tgt_backing_store { /* backingstore_template */
	const char *bs_name;
	int bs_datasize;
	int (*bs_open)(struct tgt_lu *lu, char *path, int *fd, uint64_t *size);
	void (*bs_close)(struct tgt_lu *lu);
	int (*bs_init)(struct tgt_lu *lu, char *bsopts);
	void (*bs_exit)(struct tgt_lu *lu);
	int (*bs_cmd_submit)(struct tgt_cmd *cmd);
	int bs_oflags_supported;
	unsigned long bs_supported_ops[4];
	struct tgt_list siblings;
};

struct tgt_lu { /* scsi_lu */
	uint8_t unused_head[16];
	uint64_t size;
	uint64_t lun;
	uint8_t unused_device[144 - 32];
	int (*config)(struct tgt_lu *lu, char *params); /* dev_type_template.lu_config */
	uint8_t unused_type[6336 - 152];
	struct tgt_backing_store *bst;
	uint8_t unused_modes[6376 - 6344];
	struct tgt_lu_attributes attrs;
};

struct tgt_data_buffer { /* scsi_data_buffer */
	uint64_t buffer;
	uint32_t length;
	uint32_t transfer_len;
	int32_t resid;
};

struct tgt_cmd { /* scsi_cmd */
	uint8_t unused_head[48];
	struct tgt_lu *dev;
	unsigned long state;
	enum tgt_data_direction data_dir;
	struct tgt_data_buffer in_sdb;
	struct tgt_data_buffer out_sdb;
	uint64_t cmd_itn_id;
	uint64_t offset;
	uint32_t tl;
	uint8_t *scb;
	int scb_len;
	uint8_t lun[8];
	int attribute;
	uint64_t tag;
	int result;
	void *mreq; /* task management request that waits for this command, or NULL */
	unsigned char sense_buffer[TGT_SENSE_BUFFER];
	int sense_len;
	struct tgt_list bs_list;
	uint8_t unused_nexus[16];
};

#define PIN(type, member, at)                                                                      \
	_Static_assert(offsetof(struct type, member) == (at), #type "." #member)

PIN(tgt_vpd, update, 8);
PIN(tgt_vpd, data, 16);
PIN(tgt_lu_attributes, vendor_id, 88);
PIN(tgt_lu_attributes, product_id, 97);
PIN(tgt_lu_attributes, product_rev, 114);
PIN(tgt_lu_attributes, version_desc, 120);
PIN(tgt_lu_attributes, device_type, 136);
PIN(tgt_lu_attributes, sense_format, 143);
PIN(tgt_lu_attributes, lu_vpd, 152);
PIN(tgt_backing_store, bs_datasize, 8);
PIN(tgt_backing_store, bs_open, 16);
PIN(tgt_backing_store, bs_close, 24);
PIN(tgt_backing_store, bs_init, 32);
PIN(tgt_backing_store, bs_exit, 40);
PIN(tgt_backing_store, bs_cmd_submit, 48);
PIN(tgt_backing_store, bs_oflags_supported, 56);
PIN(tgt_backing_store, bs_supported_ops, 64);
PIN(tgt_backing_store, siblings, 96);
PIN(tgt_lu, size, 16);
PIN(tgt_lu, lun, 24);
PIN(tgt_lu, config, 144);
PIN(tgt_lu, bst, 6336);
PIN(tgt_lu, attrs, 6376);
PIN(tgt_data_buffer, length, 8);
PIN(tgt_data_buffer, transfer_len, 12);
PIN(tgt_data_buffer, resid, 16);
PIN(tgt_cmd, dev, 48);
PIN(tgt_cmd, state, 56);
PIN(tgt_cmd, data_dir, 64);
PIN(tgt_cmd, in_sdb, 72);
PIN(tgt_cmd, out_sdb, 96);
PIN(tgt_cmd, cmd_itn_id, 120);
PIN(tgt_cmd, scb, 144);
PIN(tgt_cmd, scb_len, 152);
PIN(tgt_cmd, lun, 156);
PIN(tgt_cmd, attribute, 164);
PIN(tgt_cmd, tag, 168);
PIN(tgt_cmd, result, 176);
PIN(tgt_cmd, mreq, 184);
PIN(tgt_cmd, sense_buffer, 192);
PIN(tgt_cmd, sense_len, 444);
PIN(tgt_cmd, bs_list, 448);
_Static_assert(sizeof(struct tgt_lu_attributes) == 1176, "lu_phy_attr");
_Static_assert(sizeof(struct tgt_backing_store) == 112, "backingstore_template");
_Static_assert(sizeof(struct tgt_data_buffer) == 24, "scsi_data_buffer");
_Static_assert(sizeof(struct tgt_cmd) == 480, "scsi_cmd");

#undef PIN

struct tgt_text { /* concat_buf */
	void *stream;
	int error, used;
	char *text; /* once it is finished */
	size_t size;
};
_Static_assert(sizeof(struct tgt_text) == 32, "tgt_text");

struct tgt_peer { /* it_nexus_peer; the hardened tgtd only */
	char initiator[256];
	char chap_user[256]; /* proven by CHAP in this session; "": none */
	char address[64]; /* "": not known */
};
_Static_assert(sizeof(struct tgt_peer) == 576, "it_nexus_peer");

#define TGT_SHOW_CONNECTIONS 6 /* MODE_CONNECTION */

/* The symbols of tgtd.  They are weak: the module checks all of them before it registers, and names
 * the missing ones instead of failing to load.  iscsi_nexus_peer() may be missing: a stock tgtd
 * does not have it. */
#define TGT_IMPORT __attribute__((weak, visibility("default")))
TGT_IMPORT int register_backingstore_template(struct tgt_backing_store *bst);
TGT_IMPORT void target_cmd_io_done(struct tgt_cmd *cmd, int result);
TGT_IMPORT int tgt_event_add(int fd, int events, void (*handler)(int fd, int events, void *data),
			     void *data);
TGT_IMPORT void tgt_event_del(int fd);
TGT_IMPORT struct tgt_vpd *alloc_vpd(uint16_t size);
TGT_IMPORT int iscsi_transportid(int tid, uint64_t itn_id, char *buffer, int size);
TGT_IMPORT int iscsi_nexus_peer(uint64_t itn_id, struct tgt_peer *peer, size_t size);
TGT_IMPORT void concat_buf_init(struct tgt_text *text);
TGT_IMPORT int concat_buf_finish(struct tgt_text *text);
TGT_IMPORT void concat_buf_release(struct tgt_text *text);
TGT_IMPORT int iscsi_target_show(int mode, int tid, uint64_t session, uint32_t connection,
				 uint64_t lun, struct tgt_text *text);

#endif
