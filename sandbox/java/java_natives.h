/* SPDX-License-Identifier: GPL-2.0-or-later */
/* java_natives.h -- the native methods of iosd.Osd and iosd.Output (iosd/Osd.java): what a call can do outside
 * its own memory.  Every array and range is checked.
 *
 * Locking: any thread of the virtual machine may call them.  One lock is held while the proxy serves a call.
 * Under it no function of the virtual machine is called, because that may wait for ever once System.exit has
 * stopped all threads. */
#ifndef OSD_SANDBOX_JAVA_NATIVES_H
#define OSD_SANDBOX_JAVA_NATIVES_H

#include <stdbool.h>

#include "engine.h"
#include "jni_api.h"

/* Connects the methods, once.  False: an exception is pending. */
bool osd_java_natives_connect(jni_env *env);

/* A byte[] of these bytes.  NULL: an exception is pending. */
jobject osd_java_array(jni_env *env, const void *bytes, size_t length);

/* Before the call: the job whose calls are served; borrowed for good. */
void osd_java_natives_begin(const struct osd_engine_job *job);

/* Called in a signal handler: from now on each method throws ThreadDeath. */
void osd_java_natives_end(void);

/* The call is over: waits for the method that is being served, and serves no other. */
void osd_java_natives_close(void);

#endif
