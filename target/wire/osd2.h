/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osd2.h -- numbers of T10 OSD-2 and of this target's extensions: service actions, object types,
 * permission bits, attribute pages and numbers.  Constants, and which of them are supported. */
#ifndef OSD_WIRE_OSD2_H
#define OSD_WIRE_OSD2_H

#include <stdbool.h>
#include <stdint.h>

#define OSD_OPCODE                0x7f /* variable-length CDB */
#define OSD_CDB_LENGTH            236
#define OSD_CDB_ADDITIONAL_LENGTH 228
#define OSD_SENSE_MAX             252
#define OSD_CAPABILITY_LENGTH     104
#define OSD_FUNCTION_PARTITION_LAST UINT64_C(0xffff) /* partitions 1h to FFFFh hold functions */
#define OSD_FIRST_ID              UINT64_C(0x10000) /* first partition, object and collection id */
#define OSD_OFFSET_UNUSED         0xffffffffu
#define OSD_TRANSFER_MAX (64u << 20) /* bytes of Data-In or Data-Out in one command */

/* The identity of this target in INQUIRY data and in the Root Information page (8, 16 and 4 bytes,
 * space padded). */
#define OSD_VENDOR_ID   "IOSD"
#define OSD_PRODUCT_ID  "OBJECT STORE"
#define OSD_PRODUCT_REV "0001"

/* Every service action the standard names (osd2-wire 3.1) and ours. */
#define OSD_SERVICE_ACTIONS(X)                                                                     \
	X(0x8880, OBJECT_STRUCTURE_CHECK, "OBJECT STRUCTURE CHECK")                                \
	X(0x8881, FORMAT_OSD, "FORMAT OSD")                                                        \
	X(0x8882, CREATE, "CREATE")                                                                \
	X(0x8883, LIST, "LIST")                                                                    \
	X(0x8884, PUNCH, "PUNCH")                                                                  \
	X(0x8885, READ, "READ")                                                                    \
	X(0x8886, WRITE, "WRITE")                                                                  \
	X(0x8887, APPEND, "APPEND")                                                                \
	X(0x8888, FLUSH, "FLUSH")                                                                  \
	X(0x8889, CLEAR, "CLEAR")                                                                  \
	X(0x888a, REMOVE, "REMOVE")                                                                \
	X(0x888b, CREATE_PARTITION, "CREATE PARTITION")                                            \
	X(0x888c, REMOVE_PARTITION, "REMOVE PARTITION")                                            \
	X(0x888e, GET_ATTRIBUTES, "GET ATTRIBUTES")                                                \
	X(0x888f, SET_ATTRIBUTES, "SET ATTRIBUTES")                                                \
	X(0x8892, CREATE_AND_WRITE, "CREATE AND WRITE")                                            \
	X(0x8893, COPY_USER_OBJECTS, "COPY USER OBJECTS")                                          \
	X(0x8894, CREATE_USER_TRACKING_COLLECTION, "CREATE USER TRACKING COLLECTION")              \
	X(0x8895, CREATE_COLLECTION, "CREATE COLLECTION")                                          \
	X(0x8896, REMOVE_COLLECTION, "REMOVE COLLECTION")                                          \
	X(0x8897, LIST_COLLECTION, "LIST COLLECTION")                                              \
	X(0x8898, SET_KEY, "SET KEY")                                                              \
	X(0x8899, SET_MASTER_KEY, "SET MASTER KEY")                                                \
	X(0x889a, FLUSH_COLLECTION, "FLUSH COLLECTION")                                            \
	X(0x889b, FLUSH_PARTITION, "FLUSH PARTITION")                                              \
	X(0x889c, FLUSH_OSD, "FLUSH OSD")                                                          \
	X(0x88a0, QUERY, "QUERY")                                                                  \
	X(0x88a1, REMOVE_MEMBER_OBJECTS, "REMOVE MEMBER OBJECTS")                                  \
	X(0x88a2, GET_MEMBER_ATTRIBUTES, "GET MEMBER ATTRIBUTES")                                  \
	X(0x88a3, SET_MEMBER_ATTRIBUTES, "SET MEMBER ATTRIBUTES")                                  \
	X(0x88a8, CREATE_CLONE, "CREATE CLONE")                                                    \
	X(0x88a9, CREATE_SNAPSHOT, "CREATE SNAPSHOT")                                              \
	X(0x88aa, DETACH_CLONE, "DETACH CLONE")                                                    \
	X(0x88ab, REFRESH_SNAPSHOT_OR_CLONE, "REFRESH SNAPSHOT OR CLONE")                          \
	X(0x88ac, RESTORE_PARTITION_FROM_SNAPSHOT, "RESTORE PARTITION FROM SNAPSHOT")              \
	X(0x88b1, READ_MAP, "READ MAP")                                                            \
	X(0x88b2, READ_MAPS_AND_COMPARE, "READ MAPS AND COMPARE")                                  \
	X(0x8f7c, PERFORM_SCSI_COMMAND, "PERFORM SCSI COMMAND")                                    \
	X(0x8f7d, PERFORM_TASK_MANAGEMENT_FUNCTION, "PERFORM TASK MANAGEMENT FUNCTION")            \
	X(0x8f81, EXEC, "EXEC")                                                                    \
	X(0x8f82, EXECUTE_FUNCTION, "EXECUTE FUNCTION")                                            \
	X(0x8f83, ACTIVATE_FUNCTION, "ACTIVATE FUNCTION")                                          \
	X(0x8f84, COMPARE_AND_SWAP, "COMPARE AND SWAP")                                            \
	X(0x8f85, FETCH_AND_ADD, "FETCH AND ADD")                                                  \
	X(0x8f86, GENERIC_COMPARE_AND_SWAP, "GENERIC COMPARE AND SWAP")                            \
	X(0x8f87, CONDITIONAL_SET_ATTRIBUTES, "CONDITIONAL SET ATTRIBUTES")                        \
	X(0x8f88, READ_NAMES, "READ NAMES")                                                        \
	X(0x8f89, CHANGE_NAMES, "CHANGE NAMES")

/* OSC's private codes for the last four, in gaps of the standard's range: understood only with
 * osc-compat (osd2-wire 3.19). */
#define OSD_OSC_SERVICE_ACTIONS(X)                                                                 \
	X(0x888d, COMPARE_AND_SWAP, "CAS")                                                         \
	X(0x8890, FETCH_AND_ADD, "FA")                                                             \
	X(0x8891, CONDITIONAL_SET_ATTRIBUTES, "COND SETATTR")                                      \
	X(0x88a5, GENERIC_COMPARE_AND_SWAP, "GEN CAS")

enum osd_service_action {
#define X(code, symbol, name) OSD_SA_##symbol = code,
	OSD_SERVICE_ACTIONS(X)
#undef X
};

enum osd_object_type {
	OSD_ROOT = 0x01,
	OSD_PARTITION = 0x02,
	OSD_COLLECTION = 0x40,
	OSD_USER_OBJECT = 0x80,
};

enum osd_collection_type {
	OSD_COLLECTION_LINKED = 0x00,
	OSD_COLLECTION_TRACKING = 0x01,
	OSD_COLLECTION_SPONTANEOUS = 0xef,
};

/* Operation codes of the other commands a unit answers (SPC), by PERFORM SCSI COMMAND. */
#define OSD_SCSI_TEST_UNIT_READY 0x00
#define OSD_SCSI_REQUEST_SENSE   0x03
#define OSD_SCSI_INQUIRY         0x12
#define OSD_SCSI_REPORT_LUNS     0xa0
#define OSD_SCSI_MAINTENANCE_IN  0xa3
#define OSD_SCSI_REPORT_OPCODES  0x0c /* its service action REPORT SUPPORTED OPERATION CODES */

/* Byte 10 (osd2-wire 2.2). */
#define OSD_OPTION_DPO            0x10
#define OSD_OPTION_FUA            0x08
#define OSD_OPTION_ISOLATION_MASK 0x07

/* OSC's data distribution types, b1-b0 of byte 10 with osc-compat (osd2-wire 3.5). */
#define OSD_DDT_SGL        1
#define OSD_DDT_VEC        2
#define OSD_DDT_MASK       3

/* Scopes of the FLUSH commands (osd2-wire 3.6). */
#define OSD_FLUSH_SCOPE_MASK 3
#define OSD_FLUSH_RANGE      2

/* Isolation methods (osd2-wire 2.2) served: bit n from the left is method n.  Commands on one
 * object are atomic against each other, which is enough for each of these. */
enum osd_isolation {
	OSD_ISOLATION_DEFAULT = 0,
	OSD_ISOLATION_NONE = 1,
	OSD_ISOLATION_STRICT = 2,
	OSD_ISOLATION_RANGE = 4,
	OSD_ISOLATION_FUNCTIONAL = 5,
};
#define OSD_ISOLATION_METHODS 0x6c /* none, strict, range, functional */

static inline bool osd_isolation_supported(uint8_t method)
{
	return method < 8 && (OSD_ISOLATION_METHODS << method & 0x80);
}

/* Byte 11 (osd2-wire 2.3). */
#define OSD_IMMED_TR            0x80
#define OSD_LIST_ATTR           0x40
#define OSD_CDBFMT_MASK         0x30
#define OSD_CDBFMT_SET_ONE      0x10
#define OSD_CDBFMT_PAGE         0x20
#define OSD_CDBFMT_LIST         0x30
#define OSD_BYTE11_COMMAND_MASK 0x0f
#define OSD_FCR                 0x01 /* REMOVE COLLECTION: with members */

#define OSD_TIMESTAMPS_BYPASS 0x7f /* byte 12 */

/* Duplication methods (byte 14 of COPY USER OBJECTS, osd2-wire 3.13) that this target honours: the
 * command refuses others, and root information 200h + method has a value for these only. */
#define OSD_DUPLICATION_METHODS(X)                                                                 \
	X(0x00, DEFAULT, "default")                                                                \
	X(0x01, SPACE_EFFICIENT, "space efficient")                                                \
	X(0x81, BYTE_BY_BYTE, "byte by byte")                                                      \
	X(0xfd, FASTER_COPY, "faster copy")                                                        \
	X(0xff, DONT_CARE, "don't care")

enum osd_duplication_method {
#define X(code, symbol, name) OSD_DUPLICATION_##symbol = code,
	OSD_DUPLICATION_METHODS(X)
#undef X
};

static inline bool osd_duplication_supported(uint8_t method)
{
	switch (method) {
#define X(code, symbol, name)                                                                      \
	case code:                                                                                 \
		return true;
		OSD_DUPLICATION_METHODS(X)
#undef X
	default:
		return false;
	}
}

/* Permission bits: capability bytes 49 and 50 as one big-endian 16-bit number (osd2-wire 6.2);
 * FUN_EXE is byte 50 bit 1 (Oasis Table III). */
enum osd_permission {
	OSD_PERM_READ = 0x8000,
	OSD_PERM_WRITE = 0x4000,
	OSD_PERM_GET_ATTR = 0x2000,
	OSD_PERM_SET_ATTR = 0x1000,
	OSD_PERM_CREATE = 0x0800,
	OSD_PERM_REMOVE = 0x0400,
	OSD_PERM_OBJ_MGMT = 0x0200,
	OSD_PERM_APPEND = 0x0100,
	OSD_PERM_DEV_MGMT = 0x0080,
	OSD_PERM_GLOBAL = 0x0040,
	OSD_PERM_POL_SEC = 0x0020,
	OSD_PERM_M_OBJECT = 0x0010,
	OSD_PERM_QUERY = 0x0008,
	OSD_PERM_GBL_REM = 0x0004,
	OSD_PERM_FUN_EXE = 0x0002,
};

/* Attribute lists (osd2-wire 5.3). */
#define OSD_LIST_GET          0x1
#define OSD_LIST_SET          0x9 /* and retrieved */
#define OSD_LIST_MULTI_OBJECT 0xe
#define OSD_LIST_MULTI_OSC    0xf /* OSD-1's number for it, which OSC's initiator expects */

/* Attribute page ranges and classes (osd2-wire 5.1). */
#define OSD_PAGE_PARTITION_BASE  0x30000000u
#define OSD_PAGE_COLLECTION_BASE 0x60000000u
#define OSD_PAGE_ROOT_BASE       0x90000000u
#define OSD_PAGE_RESERVED_BASE   0xc0000000u
#define OSD_PAGE_ANY_BASE        0xf0000000u
#define OSD_PAGE_CURRENT_COMMAND 0xfffffffeu
#define OSD_PAGE_ALL             0xffffffffu
#define OSD_NUMBER_ALL           0xffffffffu
#define OSD_ATTRIBUTE_MAX        0xfffe /* longest value, bytes */

/* The first page of the range of a type of objects. */
static inline uint32_t osd_page_base(enum osd_object_type type)
{
	return type == OSD_ROOT		? OSD_PAGE_ROOT_BASE
	       : type == OSD_PARTITION	? OSD_PAGE_PARTITION_BASE
	       : type == OSD_COLLECTION ? OSD_PAGE_COLLECTION_BASE
					: 0;
}

static inline bool osd_page_is_of(enum osd_object_type type, uint32_t page)
{
	return page - osd_page_base(type) < OSD_PAGE_PARTITION_BASE;
}

/* Standard pages, relative to the range's base. */
#define OSD_REL_INFORMATION 1
#define OSD_REL_QUOTAS      2
#define OSD_REL_TIMESTAMPS  3
#define OSD_REL_COLLECTIONS 4 /* user object; partition: attributes access; collection: tracking */
#define OSD_REL_SECURITY    5
#define OSD_REL_RECOVERY    6 /* error recovery: damage found */

/* Attribute numbers used in more than one place. */
#define OSD_INFO_OBJECT_ID       0x2
#define OSD_INFO_SYSTEM_ID       0x3 /* root */
#define OSD_INFO_SERIAL          0x8 /* root */
#define OSD_INFO_USERNAME        0x9
#define OSD_INFO_USED_CAPACITY   0x81
#define OSD_INFO_LOGICAL_LENGTH  0x82
#define OSD_TIME_CREATED         1
#define OSD_TIME_ATTR_ACCESSED   2
#define OSD_TIME_DATA_MODIFIED   5
#define OSD_TIME_BYPASS          0xfffffffeu
#define OSD_SEC_CLOCK            0x9
#define OSD_SEC_TAG              0x40000001u /* policy access tag */
#define OSD_SEC_USER_TAG         0x40000002u /* partition: default of its user objects */
#define OSD_DAMAGE_SUMMARY       1 /* error recovery pages: 1 byte, enum osd_damage */
#define OSD_DAMAGE_CONTAINED     2 /* the same of what is inside */
#define OSD_DAMAGE_DATA_TIME     3 /* 6 bytes, ms since 1970: last found */
#define OSD_DAMAGE_ATTR_TIME     4
#define OSD_DAMAGE_INSIDE_TIME   5
#define OSD_DAMAGE_COUNT         6 /* 6 bytes: damaged partitions, objects */
#define OSD_CURRENT_TYPE         2
#define OSD_CURRENT_PARTITION_ID 3
#define OSD_CURRENT_OBJECT_ID    4
#define OSD_CURRENT_APPEND_START 5
#define OSD_CURRENT_CAPACITY     6
#define OSD_CURRENT_PRINCIPAL    0x80000001u /* this target's: the principal of the sender */
#define OSD_CURRENT_RESULT_LENGTH 0x80000002u /* this target's: bytes of the result, cut or not */
#define OSD_CURRENT_RESULT_FORM  0x80000003u /* this target's: enum osd_result_form (exec/record/record.h) */
#define OSD_CURRENT_CHECKSUM     0x80000004u /* this target's: CRC-32C of the data of READ or WRITE */
#define OSD_CURRENT_CACHED_RESULT 0x80000005u /* this target's: 1: EXEC named an earlier job, whose result it is */

/* This target's pages and well-known ids. */
#define OSD_PAGE_JOB_STATUS      0x20000001u
#define OSD_PAGE_JOB_PAYLOAD     0x20000002u
#define OSD_PAGE_JOB_CONTROL     0x20000003u
#define OSD_PAGE_FUNCTION        0x20000006u /* user object in a function partition (function/page.c) */
#define OSD_PAGE_JOB_USED        0x20000007u /* surrogate: the objects that the job used (exec/tell/pages.c) */
#define OSD_PAGE_STACK           0x20000020u /* user object; + base: of others (object/stack.h) */
#define OSD_PAGE_DERIVED_FIRST   0x00010000u /* user object: pages of applications, which functions may set */
#define OSD_PAGE_DERIVED_LAST    0x1fffffffu
#define OSD_PAGE_HOOKS           0x20000021u /* the same (object/hooks.h) */
#define OSD_PAGE_EXEC_ROOT       0xb0000001u
#define OSD_PAGE_STORE_ROOT      0xb0000002u
#define OSD_PAGE_HEAD            0x20000004u /* user object: its head (object/head_page.c) */
#define OSD_PAGE_VERSION	 0x20000005u /* user object: version of its data (object/version_page.c) */
#define OSD_PAGE_MEMBERS_VERSION 0x80000001u /* collection: version of its members (the same) */
#define OSD_VERSION_NUMBER	 1	     /* of both */
#define OSD_VERSION_BYTES	 12	     /* be64 counter, be32 opening */
#define OSD_PAGE_HEADS_ROOT      0xb0000003u
#define OSD_PAGE_SUMS_ROOT       0xb0000004u /* checksums and the scrub (object/sums_page.c) */
#define OSD_PAGE_FUNCTIONS_ROOT  0xb0000005u /* engines and active functions (exec/tell/function_page.c) */
#define OSD_PAGE_COUNTERS        0x00000007u /* user object: what COMPARE AND SWAP and so on use */
#define OSD_PAGE_INDEX           0x50000001u /* partition: which pages the value index covers */
#define OSD_PAGE_CHARGED         0x50000002u /* partition: what its quota is compared with */
#define OSD_JOBS_PARTITION       UINT64_C(0x7fffffff00000000)
#define OSD_LOST_PARTITION       UINT64_C(0x7fffffff00000001) /* made by osd target repair */
#define OSD_JOB_IDS_FIRST        UINT64_C(0x4000000000000000) /* ids of jobs that stand apart */
#define OSD_JOB_IDS_LAST         UINT64_C(0x7fffffffffffffff)
#define OSD_OBJECTS_COLLECTION   UINT64_C(0x1000) /* every user object of the partition */
#define OSD_JOBS_COLLECTION      UINT64_C(0x1001)
#define OSD_COUNTER_SWAP         1 /* of OSD_PAGE_COUNTERS: COMPARE AND SWAP */
#define OSD_COUNTER_ADD          2 /* FETCH AND ADD */
#define OSD_COUNTER_BYTES        8
#define OSD_CREATE_MAX           4096 /* objects one CREATE makes */

/* Bits of a damage summary (osd2-wire 5.18). */
enum osd_damage {
	OSD_DAMAGED_DATA = 0x01, /* of a user object; else the list of what is inside */
	OSD_DAMAGED_ATTRIBUTES = 0x02,
	OSD_DAMAGED_CHECK_ROOT = 0x04, /* OBJECT STRUCTURE CHECK recommended */
	OSD_DAMAGED_CHECK_PARTITION = 0x08,
};

/* CDB continuation segment (osd2-wire 4). */
#define OSD_CONTINUATION_FORMAT 0x01
#define OSD_CONTINUATION_HEADER 40
#define OSD_DESC_END            0x0000
#define OSD_DESC_SG_LIST        0x0001
#define OSD_DESC_QUERY_LIST     0x0002
#define OSD_DESC_EXTENSION_CAPS 0xffee
#define OSD_DESC_EXEC_PARAMS    0xf081

#endif
