/* SPDX-License-Identifier: GPL-2.0-or-later */
/* library.h -- loads a shared library that lies in memory (docs/native.md): segments, symbols, relocations.
 *
 * dlopen(3) is not used: it needs a file that can be mapped executable, which a sandbox does not have, and it runs
 * functions of the library before the engine can remove its own permission to make memory executable. */
#ifndef OSD_SANDBOX_NATIVE_LIBRARY_H
#define OSD_SANDBOX_NATIVE_LIBRARY_H

#include "image.h"

/* The address of a symbol that a library imports; NULL: there is none. */
typedef void *osd_library_import(const char *name);

struct osd_library {
	struct osd_image image;
	uint64_t symbols, symbol_count; /* address of the table, and the end of the exported ones */
	uint64_t strings, string_bytes;
	uint64_t init, init_array, init_array_bytes; /* init 0: none */
};

/* Loads it; nothing of it runs.  False: why, and ret_library->image.no_memory. */
bool osd_library_load(const uint8_t *file, size_t length, osd_library_import *find,
		      struct osd_library *ret_library, char why[OSD_IMAGE_WHY]);

/* A function that the library exports; NULL: there is none of this name. */
void *osd_library_function(const struct osd_library *library, const char *name);

/* Runs its constructors.  False: why; an address is outside its code. */
bool osd_library_start(const struct osd_library *library, char why[OSD_IMAGE_WHY]);

#endif
