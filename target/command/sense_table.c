/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sense_table.c -- see sense_table.h. */
#include "command/sense_table.h"

#include <stddef.h>

#include "base/util.h"

#define P OSD_PARTITION
#define C OSD_COLLECTION
#define U OSD_USER_OBJECT

#define NONE	   OSD_SENSE_NO_FIELD
#define GIVEN	   OSD_SENSE_FIELD_GIVEN
#define OBJECT	   OSD_SENSE_OBJECT
#define COMMAND	   OSD_SENSE_COMMAND_INFORMATION
#define INFORM	   OSD_SENSE_INFORMATION
#define ATTRIBUTES OSD_SENSE_ATTRIBUTE
#define TEXT	   OSD_SENSE_TEXT

static const struct osd_sense_row rows[] = {
	{"operation code or CDB length is not OSD-2's", OSD_E_OPCODE, 0, NONE, 0, NULL},
	{"embedded command unknown", OSD_E_OPCODE, 0, NONE, 0, NULL},

	{"field of the CDB is reserved, impossible or not supported", OSD_E_CDB_FIELD, 0, GIVEN,
	 OBJECT, NULL},
	{"service action is unknown or not supported", OSD_E_CDB_FIELD, 0, 8, OBJECT, NULL},
	{"isolation method is reserved or not supported", OSD_E_CDB_FIELD, 0, 10, OBJECT, NULL},
	{"format of the attribute parameters is reserved", OSD_E_CDB_FIELD, 0, 11, OBJECT, NULL},
	{"timestamps control is reserved", OSD_E_CDB_FIELD, 0, 12, OBJECT, NULL},
	{"command about the root or partitions names another object", OSD_E_CDB_FIELD, 0, GIVEN,
	 OBJECT, NULL},
	{"Data-Out is shorter than a length says", OSD_E_CDB_FIELD, 0, GIVEN, OBJECT, NULL},
	{"retrieved attributes would lie on the command data", OSD_E_CDB_FIELD, 0, GIVEN, OBJECT,
	 NULL},
	{"CDB continuation segment", OSD_E_CDB_FIELD, 0, 48, OBJECT, NULL},
	{"page of another type of object, in page format", OSD_E_CDB_FIELD, 0, 52, OBJECT, NULL},
	{"attribute set from the CDB is refused", OSD_E_CDB_FIELD, 0, 52, OBJECT | ATTRIBUTES,
	 NULL},
	{"capability, or request check value, is not genuine", OSD_E_CDB_FIELD, 0, 80, OBJECT,
	 NULL},
	{"field of an embedded CDB", OSD_E_CDB_FIELD, 0, GIVEN, 0,
	 "the field is the embedded CDB's"},
	{"partition does not exist", OSD_E_NO_PARTITION, 0, 16, OBJECT, NULL},
	{"user object or collection does not exist", OSD_E_NO_OBJECT, 0, 24, OBJECT, NULL},
	{"requested partition id is taken or reserved", OSD_E_EXISTS, P, 16, OBJECT, NULL},
	{"requested object id is taken or reserved", OSD_E_EXISTS, C | U, 24, OBJECT, NULL},
	{"start beyond the end of the object", OSD_E_BEYOND_END, 0, 40, OBJECT, NULL},
	{"method of the capability is less than the partition's", OSD_E_CDB_FIELD, 0, 82, OBJECT,
	 NULL},
	{"capability has expired", OSD_E_CDB_FIELD, 0, 84, OBJECT, NULL},
	{"capability is for another type of object", OSD_E_CDB_FIELD, 0, 128, OBJECT, NULL},
	{"capability has another type of descriptor", OSD_E_CDB_FIELD, 0, 135, OBJECT, NULL},
	{"capability is for another partition", OSD_E_CDB_FIELD, 0, 152, OBJECT, NULL},
	{"capability is for another object", OSD_E_CDB_FIELD, 0, 160, OBJECT, NULL},
	{"policy access tag is not the object's", OSD_E_CDB_FIELD, 0, 140, OBJECT, NULL},
	{"created time is not the object's", OSD_E_CDB_FIELD, 0, 122, OBJECT, NULL},
	{"boot epoch is not the target's", OSD_E_CDB_FIELD, 0, 144, OBJECT, NULL},
	{"permission is missing in the capability", OSD_E_PERMISSION, 0, 129, OBJECT, NULL},
	{"range ends beyond what the capability allows", OSD_E_CDB_FIELD, 0, 168, OBJECT, NULL},
	{"range begins before what the capability allows", OSD_E_CDB_FIELD, 0, 176, OBJECT, NULL},
	{"attribute is none that the capability allows", OSD_E_CDB_FIELD, 0, 136,
	 OBJECT | ATTRIBUTES, NULL},
	{"attribute's permission is missing in the capability", OSD_E_PERMISSION, 0, 129,
	 OBJECT | ATTRIBUTES, NULL},
	{"no place for integrity information in Data-In", OSD_E_CDB_FIELD, 0, 228, OBJECT, NULL},
	{"no integrity information in Data-Out", OSD_E_CDB_FIELD, 0, 232, OBJECT, NULL},

	{"entry of an attributes list runs past it", OSD_E_PARAM_LENGTH, 0, NONE, OBJECT, NULL},
	{"attributes list is shorter than its header", OSD_E_PARAM_LENGTH, 0, GIVEN, OBJECT, NULL},
	{"attributes list is of another type", OSD_E_PARAM_FIELD, 0, NONE, OBJECT, NULL},
	{"attribute of another type's page, read only, or with a bad value", OSD_E_PARAM_FIELD, 0,
	 NONE, OBJECT | ATTRIBUTES, "all refused ones of the list, up to 16"},

	{"attributes of one object exceed 65,528 bytes of a multi-object list", OSD_E_GROUP_LENGTH,
	 0, 52, OBJECT | ATTRIBUTES, "the attribute that did not fit"},

	{"audit value is frozen", OSD_E_AUDIT_FROZEN, 0, NONE, OBJECT, NULL},
	{"working key is frozen", OSD_E_KEY_FROZEN, 0, NONE, OBJECT, NULL},
	{"nonce is not unique", OSD_E_NONCE_REPEAT, 0, NONE, OBJECT, NULL},
	{"nonce timestamp is out of range", OSD_E_NONCE_TIME, 0, NONE, OBJECT | INFORM,
	 "00h: a time of the target's clock that is not"},
	{"Data-Out integrity check value is wrong", OSD_E_DATA_OUT_ICV, 0, NONE, OBJECT, NULL},
	{"SET MASTER KEY out of sequence", OSD_E_SEQUENCE, 0, NONE, OBJECT, NULL},

	{"partition or collection is not empty", OSD_E_NOT_EMPTY, 0, NONE, OBJECT, NULL},
	{"quota is exceeded", OSD_E_QUOTA, 0, NONE, OBJECT, NULL},
	{"no space is left", OSD_E_NO_SPACE, 0, NONE, OBJECT, NULL},
	{"read past the end of the object", OSD_E_SHORT_READ, 0, NONE, OBJECT | COMMAND,
	 "01h: bytes read"},
	{"data have another version than the command wants", OSD_E_VERSION, 0, NONE, OBJECT, NULL},
	{"structure check found damage", OSD_E_DAMAGED, 0, NONE, OBJECT | COMMAND,
	 "01h: damaged objects, and partitions damaged themselves"},
	{"format in progress", OSD_E_NOT_READY, 0, NONE, OBJECT, NULL},
	{"backing device failed", OSD_E_MEDIUM, 0, NONE, OBJECT, NULL},
	{"device with the object's head failed", OSD_E_HEAD_FAILED, 0, NONE, OBJECT | INFORM,
	 "00h: the first byte asked for that lies there"},
	{"device with the bytes behind the object's head failed", OSD_E_TAIL_FAILED, 0, NONE,
	 OBJECT | INFORM, "00h: the first byte asked for that lies there"},
	{"bytes on the device differ from their checksum", OSD_E_SUM, 0, NONE, OBJECT | INFORM,
	 "00h: first byte of the first damaged block"},
	{"device with the object's head is absent", OSD_E_HEAD_ABSENT, 0, NONE, OBJECT | INFORM,
	 "00h: the first byte asked for that lies there"},
	{"internal failure", OSD_E_INTERNAL, 0, NONE, OBJECT, NULL},
	{"out of memory or another resource", OSD_E_NO_MEMORY, 0, NONE, OBJECT, NULL},

	{"unfinished job stands in the way", OSD_E_JOB_IN_WAY, 0, NONE, OBJECT,
	 "00h, of REMOVE PARTITION: the job's object id"},
	{"idempotency key is in use with other content", OSD_E_JOB_KEY_CLASH, 0, NONE, OBJECT,
	 NULL},
	{"isolation level is not available on this host", OSD_E_ISOLATION, 0, NONE, OBJECT, NULL},
	{"byte-code is not allowed on this target", OSD_E_BYTECODE, 0, NONE, OBJECT, NULL},
	{"pool is not for this principal", OSD_E_POOL_ACCESS, 0, NONE, OBJECT, NULL},
	{"function is not active, or its code has changed since", OSD_E_FUNCTION_INACTIVE, 0, NONE,
	 OBJECT, NULL},
	{"engine is not available on this target", OSD_E_FUNCTION_ENGINE, 0, NONE, OBJECT, NULL},
	{"another active function of the partition has the alias", OSD_E_FUNCTION_ALIAS, 0, NONE,
	 OBJECT, NULL},
	{"policy requires a signature of the function", OSD_E_FUNCTION_UNSIGNED, 0, NONE, OBJECT,
	 NULL},
	{"signature of the function is damaged, or of other code or another manifest",
	 OSD_E_FUNCTION_SIGNATURE, 0, NONE, OBJECT, NULL},
	{"signer of the function is not listed, not for its engine, or not at this time",
	 OSD_E_FUNCTION_SIGNER, 0, NONE, OBJECT, NULL},
	{"code of the function is damaged, or encrypted to the key of another target",
	 OSD_E_FUNCTION_BOX, 0, NONE, OBJECT, NULL},
	{"code of the function cannot be compiled", OSD_E_FUNCTION_CODE, 0, NONE,
	 OBJECT | COMMAND | TEXT, "01h: reason of the failure; 80h: the compiler's text"},
	{"contract of functions does not permit the command, or contradicts itself", OSD_E_CONTRACT,
	 0, NONE, OBJECT | COMMAND,
	 "01h: 1 none there, 2 data too long, 3 change not possible, 4 no inverse, 5 scattered, 6 "
	 "no source, 7 made in a read-only view, 8 line too long, 9 result not kept, 10 names of a "
	 "read-only view, 11 attributes of a directory of a view"},
	{"function that the data pass through failed", OSD_E_STAGE, 0, NONE,
	 OBJECT | COMMAND | INFORM,
	 "00h: token, which the log has too; 01h: reason of the failure"},
	{"function that checks changes does not permit this, or cannot be asked", OSD_E_CHECK, 0,
	 NONE, OBJECT | COMMAND | INFORM | TEXT,
	 "01h: 0 it says no, else reason of its failure; 00h: token, which the log has too; 80h: "
	 "its text; none of them: it cannot be asked"},
	{"no active function has this name", OSD_E_NO_FUNCTION, 0, NONE, OBJECT, NULL},
	{"function is more than its signer may sign, or the zone of the call is not the signer's",
	 OSD_E_FUNCTION_CAPS, 0, NONE, OBJECT, NULL},
	{"calls of the function are under way", OSD_E_FUNCTION_IN_USE, 0, NONE,
	 OBJECT | INFORM | COMMAND,
	 "00h: object id of a call's job; 01h: its partition; neither if all calls are without a "
	 "record"},
	{"directory has no such name", OSD_E_NO_NAME, 0, NONE, OBJECT | INFORM,
	 "00h: which name of the path, from 0"},
	{"directory has this name already", OSD_E_NAME_EXISTS, 0, NONE, OBJECT | INFORM,
	 "00h: which name of the path, from 0"},
	{"name of the path is no directory", OSD_E_NOT_DIRECTORY, 0, NONE, OBJECT | INFORM,
	 "00h: which name of the path, from 0"},
	{"name is a directory's", OSD_E_IS_DIRECTORY, 0, NONE, OBJECT | INFORM,
	 "00h: which name of the path, from 0"},
	{"directory would move below itself", OSD_E_NAME_LOOP, 0, NONE, OBJECT | INFORM,
	 "00h: which name of the path, from 0"},
	{"name belongs to another object than the command wants", OSD_E_NAME_CHANGED, 0, NONE,
	 OBJECT | INFORM, "00h: which name of the path, from 0"},
	{"object cannot have the name", OSD_E_NAME_TARGET, 0, NONE, OBJECT | INFORM,
	 "00h: which name of the path, from 0"},
	{"wait ended before the job", OSD_E_STILL_RUNNING, 0, NONE, OBJECT, NULL},
	{"job ended: queue or hold", OSD_E_JOB_QUEUE, 0, NONE, OBJECT | COMMAND, "01h: reason 1xx"},
	{"job ended: script", OSD_E_JOB_SCRIPT, 0, NONE, OBJECT | COMMAND, "01h: reason 2xx"},
	{"job ended: limit", OSD_E_JOB_LIMIT, 0, NONE, OBJECT | COMMAND, "01h: reason 3xx"},
	{"job ended: sandbox or host", OSD_E_JOB_SANDBOX, 0, NONE, OBJECT | COMMAND,
	 "01h: reason 4xx"},
	{"job ended: storage", OSD_E_JOB_STORAGE, 0, NONE, OBJECT | COMMAND, "01h: reason 5xx"},
	{"job ended: security", OSD_E_JOB_SECURITY, 0, NONE, OBJECT | COMMAND, "01h: reason 6xx"},
	{"job ended: internal", OSD_E_JOB_INTERNAL, 0, NONE, OBJECT | COMMAND, "01h: reason 9xx"},

	{"client is expected to run the script sooner than the target", OSD_E_PUSHED_BACK, 0, NONE,
	 OBJECT | COMMAND | INFORM,
	 "00h: microseconds near the data; 01h: of the wait (upper half), and at the client (lower "
	 "half)"},

	{"deadline of the pool would pass before the job ended", OSD_E_LATE, 0, NONE,
	 OBJECT | COMMAND | INFORM,
	 "00h: microseconds near the data, 0: not known; 01h: of the wait (upper half), and "
	 "milliseconds of the deadline (lower half)"},

	{"queue of jobs is full", OSD_E_QUEUE_FULL, 0, NONE, OBJECT | COMMAND | INFORM,
	 "00h: jobs queued; 01h: milliseconds after which to try again"},
	{"command lost too many deadlocks", OSD_E_BUSY, 0, NONE, OBJECT,
	 "no sense data, unless the answer is proved"},
	{"task management function covered the command", OSD_E_TASK_ABORTED, 0, NONE, 0,
	 "no sense data, unless the answer is proved"},
};

const struct osd_sense_row *osd_sense_row(enum osd_status status, enum osd_object_type type)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(rows); i++)
		if (rows[i].status == status && (!rows[i].types || rows[i].types & type))
			return &rows[i];
	return NULL;
}

bool osd_sense_names_object(enum osd_status status)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(rows); i++)
		if (rows[i].status == status)
			return rows[i].descriptors & OBJECT;
	return true;
}

const struct osd_sense_row *osd_sense_row_at(size_t index)
{
	return index < OSD_ARRAY_SIZE(rows) ? &rows[index] : NULL;
}
