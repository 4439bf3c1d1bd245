/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osd.h -- what a function in C or C++ calls.  The same source is a function of the engine `wasm` (docs/wasm.md)
 * and of the engine `native` (docs/native.md).
 *
 * Objects are named by the ids of partition and object.  A call returns a number from 0 on, or a negative
 * error of enum osd_error. */
#ifndef OSD_H
#define OSD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define OSD_C extern "C"
extern "C" {
#else
#define OSD_C
#endif

#ifdef __wasm__
#define OSD_IMPORT(name) __attribute__((import_module("osd"), import_name(#name)))
#define OSD_EXPORT(name) __attribute__((export_name(#name)))
#else /* a library of the engine native; or a program, such as a test, that brings its own osd_read and the others */
#define OSD_IMPORT(name)
#define OSD_EXPORT(name) __attribute__((visibility("default")))
#endif

/* An entry point: OSD_FUNCTION(main) { ... return 0; }  Another value than 0 is a failure. */
#define OSD_FUNCTION(name) \
	OSD_C OSD_EXPORT(name) int osd_function_##name(void); \
	int osd_function_##name(void)

#ifndef __wasm__
/* Runde's form of an entry point: arguments in, result out.  A library that has no OSD_FUNCTION(main) runs it.  `in`
 * has in_length bytes, aligned to 16.  `out` is zeroed and has room bytes; *out_length of them are the result, at
 * first 0. */
OSD_EXPORT(start) int start(void *in, size_t in_length, void *out, size_t room, size_t *out_length);
#endif

enum osd_error {
	OSD_NOT_FOUND = -1,
	OSD_EXISTS = -2,
	OSD_PERMISSION = -3, /* outside the zone, or more than the access class allows */
	OSD_NO_SPACE = -4,
	OSD_INVALID = -5,
	OSD_STORAGE = -6,
	OSD_NOT_EMPTY = -7,
	OSD_CONFLICT = -8,
	OSD_STAGE = -9, /* a function that the data pass through has failed */
};

enum osd_stream { OSD_OUTPUT = 1, OSD_ERRORS = 2 };
enum osd_encoding { OSD_BYTES, OSD_JSON };
enum osd_zone_part { OSD_ZONE_PARTITION, OSD_ZONE_OBJECT, OSD_ZONE_TYPE };

/* Bytes read; fewer at the end of the object. */
OSD_IMPORT(read)
int64_t osd_read(uint64_t partition, uint64_t object, uint64_t offset, void *to, uint32_t length);
/* Bytes written. */
OSD_IMPORT(write)
int64_t osd_write(uint64_t partition, uint64_t object, uint64_t offset, const void *from,
		  uint32_t length);
/* Bytes of the object. */
OSD_IMPORT(length) int64_t osd_length(uint64_t partition, uint64_t object);
/* Bytes of the attribute, of which the first `room` are stored; 0: it is undefined. */
OSD_IMPORT(getattr)
int64_t osd_getattr(uint64_t partition, uint64_t object, uint32_t page, uint32_t number, void *to,
		    uint32_t room);
/* 0.  No bytes make the attribute undefined. */
OSD_IMPORT(setattr)
int64_t osd_setattr(uint64_t partition, uint64_t object, uint32_t page, uint32_t number,
		    const void *from, uint32_t length);
/* Bytes of the arguments, of which the first `room` are stored. */
OSD_IMPORT(args) int64_t osd_args(void *to, uint32_t room);
/* Those from an offset on: a function that needs one part at a time has no copy of all. */
OSD_IMPORT(args_from) int64_t osd_args_from(uint32_t offset, void *to, uint32_t room);
/* The zone of the call: the id of its partition or object, or its type. */
OSD_IMPORT(zone) int64_t osd_zone(enum osd_zone_part part);
/* 0.  Adds bytes to the result of the call. */
OSD_IMPORT(result)
int64_t osd_result(enum osd_encoding encoding, const void *from, uint32_t length);
/* 0.  Adds text to the output or the errors of the call. */
OSD_IMPORT(log) int64_t osd_log(enum osd_stream stream, const void *from, uint32_t length);
/* 0.  Thousandths done, -1: unknown; a text of 256 bytes at most. */
OSD_IMPORT(progress)
int64_t osd_progress(int32_t thousandths, const void *from, uint32_t length);

/* Memory of the call, zeroed, aligned to 16 bytes; NULL: there is no more.  All of it goes when the call
 * ends.  In the engine wasm, osd_free gives back the last allocation, and keeps others until then. */
void *osd_allocate(size_t size);
void osd_free(void *memory);

#ifdef __wasm__
/* From the kit's osd.c, which every module is linked with; compilers call them, too.  A native function has the C
 * library. */
void *memcpy(void *to, const void *from, size_t length);
void *memmove(void *to, const void *from, size_t length);
void *memset(void *to, int byte, size_t length);
int memcmp(const void *a, const void *b, size_t length);
size_t strlen(const char *text);
#endif

#ifdef __cplusplus
}
#endif
#ifndef __wasm__
#include <string.h>
#endif
#endif
