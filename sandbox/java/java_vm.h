/* SPDX-License-Identifier: GPL-2.0-or-later */
/* java_vm.h -- finds Java 17 as Debian installs it, and starts its virtual machine.  A process can start one,
 * once.  The classes of the package iosd (iosd/) are part of this program, compiled when it is built. */
#ifndef OSD_SANDBOX_JAVA_VM_H
#define OSD_SANDBOX_JAVA_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jni_api.h"
#include "step.h"

#if defined(__aarch64__)
#define OSD_JAVA_HOME "/usr/lib/jvm/java-17-openjdk-arm64"
#else
#define OSD_JAVA_HOME "/usr/lib/jvm/java-17-openjdk-amd64"
#endif
#define OSD_JAVA_SETTINGS "/etc/java-17-openjdk" /* links in OSD_JAVA_HOME lead there */

/* Threads that the virtual machine has beside those of the job, at most. */
#define OSD_JAVA_THREADS 24u

/* Called in the zygote: maps the libraries, so that sandboxes share them and need not map executable files.
 * Starts no thread.  False: text says what is missing. */
bool osd_java_load(int library_fd, char *text, size_t size);

struct osd_java_start {
	uint64_t memory_bytes; /* limit of the process: the heap gets what the rest does not need */
	jni_unused exit, abort; /* void (*)(int32_t code): System.exit; void (*)(void): it has failed */
};

/* Starts the virtual machine, whose thread `main` is the caller, and defines the classes.  0, or -errno. */
int osd_java_start(const struct osd_java_start *start, jni_vm **ret_vm, jni_env **ret_env,
		   struct osd_step *step);

/* A reference to a class of the package iosd, without the package's name; global, never released. */
jobject osd_java_class(jni_env *env, const char *name);

#endif
