/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pdu.h -- iSCSI PDUs as bytes (RFC 7143 section 11): opcodes, positions in the basic header
 * segment, and what of a header can be built or checked without knowing a session.
 * Not here: who sends what when (session.c, task.c), sockets (io.c), Python (session_type.c). */
#ifndef PYOSD_PDU_H
#define PYOSD_PDU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cursor.h"

#define ISCSI_BHS_LENGTH 48u
#define ISCSI_AHS_MAX	 (255u * 4u)
#define ISCSI_DIGEST	 4u
#define ISCSI_CDB_MAX	 260u
/* Longest header we send: BHS, extended-CDB AHS of a 260-byte CDB, bidi AHS, digest. */
#define ISCSI_TX_HEADER_MAX (ISCSI_BHS_LENGTH + 248u + 8u + ISCSI_DIGEST)
#define ISCSI_NO_TAG	    0xffffffffu
#define ISCSI_SEGMENT_MAX   0xffffffu

enum iscsi_opcode {
	ISCSI_NOP_OUT = 0x00,
	ISCSI_SCSI_COMMAND = 0x01,
	ISCSI_TASK_MANAGEMENT = 0x02,
	ISCSI_LOGIN = 0x03,
	ISCSI_TEXT = 0x04,
	ISCSI_DATA_OUT = 0x05,
	ISCSI_LOGOUT = 0x06,
	ISCSI_NOP_IN = 0x20,
	ISCSI_SCSI_RESPONSE = 0x21,
	ISCSI_TASK_MANAGEMENT_RESPONSE = 0x22,
	ISCSI_LOGIN_RESPONSE = 0x23,
	ISCSI_TEXT_RESPONSE = 0x24,
	ISCSI_DATA_IN = 0x25,
	ISCSI_LOGOUT_RESPONSE = 0x26,
	ISCSI_R2T = 0x31,
	ISCSI_ASYNC = 0x32,
	ISCSI_REJECT = 0x3f,
};

#define ISCSI_OPCODE_MASK 0x3fu
#define ISCSI_IMMEDIATE	  0x40u /* byte 0 */
#define ISCSI_FINAL	  0x80u /* byte 1 */

/* SCSI Command, byte 1. */
#define ISCSI_COMMAND_READ   0x40u
#define ISCSI_COMMAND_WRITE  0x20u
#define ISCSI_COMMAND_SIMPLE 0x01u
/* SCSI Response and Data-In, byte 1. */
#define ISCSI_BIDI_OVERFLOW  0x10u
#define ISCSI_BIDI_UNDERFLOW 0x08u
#define ISCSI_OVERFLOW	     0x04u
#define ISCSI_UNDERFLOW	     0x02u
#define ISCSI_DATA_IN_STATUS 0x01u

/* Positions in the BHS. */
enum {
	BHS_OPCODE = 0,
	BHS_FLAGS = 1,
	BHS_RESPONSE = 2,
	BHS_STATUS = 3,
	BHS_AHS_WORDS = 4,
	BHS_DATA_LENGTH = 5, /* 3 bytes */
	BHS_LUN = 8,	     /* 8 bytes */
	BHS_TAG = 16,	     /* initiator task tag */
	BHS_WORD20 = 20,     /* expected length, or target transfer tag */
	BHS_CMD_SN = 24,     /* StatSN in what a target sends */
	BHS_STAT_SN = 24,
	BHS_EXP_STAT_SN = 28, /* ExpCmdSN in what a target sends */
	BHS_EXP_CMD_SN = 28,
	BHS_MAX_CMD_SN = 32,
	BHS_CDB = 32,
	BHS_DATA_SN = 36,	/* R2TSN in an R2T */
	BHS_BUFFER_OFFSET = 40, /* bidi read residual in a SCSI Response */
	BHS_WORD44 = 44,	/* residual count; desired length in an R2T */
};

static inline uint32_t bhs_word(const uint8_t *bhs, size_t at)
{
	return (uint32_t)osd_get_be(bhs + at, 4);
}

static inline void bhs_set_word(uint8_t *bhs, size_t at, uint32_t value)
{
	osd_put_be(bhs + at, value, 4);
}

static inline uint32_t bhs_data_length(const uint8_t *bhs)
{
	return (uint32_t)osd_get_be(bhs + BHS_DATA_LENGTH, 3);
}

/* Bytes that follow a data segment of this length to end on a word. */
static inline uint32_t iscsi_pad(uint32_t length)
{
	return -length & 3;
}

/* CRC32C (RFC 7143 13.1) as it stands in a digest field. */
void iscsi_digest_put(uint8_t *to, const uint8_t *bytes, size_t length);
bool iscsi_digest_ok(const uint8_t *digest, const uint8_t *bytes, size_t length);

/* Puts a single-level LUN (0-16383) into the BHS. */
void iscsi_put_lun(uint8_t *bhs, uint16_t lun);

/* Puts the CDB into the BHS and, past 16 bytes, an extended-CDB AHS behind it; read_length > 0
 * adds the bidirectional read length AHS after it (stock tgtd wants this order).  Fills
 * TotalAHSLength. header holds ISCSI_TX_HEADER_MAX bytes, cdb_length <= ISCSI_CDB_MAX.  Returns
 * the header's length. */
size_t iscsi_put_cdb(uint8_t *header, const uint8_t *cdb, size_t cdb_length, uint32_t read_length);

#endif
