/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wasmtime_api.c -- see wasmtime_api.h. */
#include "wasmtime_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct osd_wasmtime osd_wasmtime;

/* ISO C has no conversion from a data pointer to one of a function; POSIX guarantees their equal size. */
static bool find(void *library, const char *name, void *ret_function)
{
	void *found = dlsym(library, name);

	memcpy(ret_function, &found, sizeof(found));
	return found != NULL;
}

bool osd_wasmtime_load(int library_fd, char *text, size_t size)
{
	struct stat status;
	char path[32];
	void *library;

	if (fstat(library_fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		snprintf(text, size,
			 "engine wasm: this host has no Wasmtime: install the Python package "
			 "wasmtime==" OSD_WASMTIME_RELEASE ", or give iosd-sandboxd --wasmtime FILE");
		return false;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", library_fd);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(text, size, "engine wasm: cannot load Wasmtime: %s", dlerror());
		return false;
	}
#define X(type, name, parameters)                                                                  \
	if (!find(library, #name, &osd_wasmtime.name)) {                                           \
		snprintf(text, size,                                                               \
			 "engine wasm: the library has no " #name                                  \
			 ": it is not Wasmtime " OSD_WASMTIME_RELEASE);                            \
		return false;                                                                      \
	}
	OSD_WASMTIME_FUNCTIONS(X)
#undef X
	return true;
}
