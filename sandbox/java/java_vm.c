/* SPDX-License-Identifier: GPL-2.0-or-later */
/* java_vm.c -- see java_vm.h. */
#include "java_vm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "java_classes.h" /* made by embed.cmake: osd_java_classes, osd_java_class_count */

#define MIB	     (UINT64_C(1) << 20)
#define LEAST_MEMORY (128 * MIB)
/* Code, stacks, classes and the machine's own data: memory of the process that is no heap. */
#define BESIDE_HEAP (96 * MIB)

static jni_create *create;

/* Those that a function may come to need, because the filter lets no library be mapped. */
static const char *const libraries[] = {"server/libjvm.so", "libverify.so", "libjava.so",
					"libjimage.so",	    "libzip.so",    "libnet.so",
					"libnio.so",	    "libextnet.so"};

static void *open_library(const char *name, char *text, size_t size)
{
	char path[256];
	void *library;

	snprintf(path, sizeof(path), OSD_JAVA_HOME "/lib/%s", name);
	library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!library)
		snprintf(text, size, "engine java: cannot load Java 17: %s", dlerror());
	return library;
}

bool osd_java_load(int library_fd, char *text, size_t size)
{
	void *found, *library;

	(void)library_fd;
	if (osd_java_class_count == 0) {
		snprintf(text, size,
			 "engine java: this build of iosd is without it: it was made on a host without "
			 "the Java compiler (openjdk-17-jdk-headless)");
		return false;
	}
	if (access(OSD_JAVA_HOME "/lib/server/libjvm.so", R_OK) < 0) {
		snprintf(text, size,
			 "engine java: this host has no Java 17: install openjdk-17-jre-headless");
		return false;
	}
	for (size_t i = 0; i < OSD_ARRAY_SIZE(libraries); i++) {
		library = open_library(libraries[i], text, size);
		if (!library)
			return false;
		if (i > 0)
			continue;
		found = dlsym(library, "JNI_CreateJavaVM");
		memcpy(&create, &found, sizeof(create)); /* ISO C has no such conversion */
	}
	return true;
}

/* All code memory is there from the start, because the filter gives no more.  One processor, so that the
 * number of threads does not follow the host's.  No shared memory, no dump, no signal but those it raises
 * itself: there is nobody to use them.  No warnings: they would be errors of the job, about the missing /proc. */
static const char *const options[] = {
	"-XX:+UseSerialGC",
	"-XX:ActiveProcessorCount=1",
	"-XX:CICompilerCount=2",
	"-XX:-UseDynamicNumberOfCompilerThreads",
	"-XX:-SegmentedCodeCache",
	"-XX:ReservedCodeCacheSize=24m",
	"-XX:InitialCodeCacheSize=24m",
	"-XX:CompressedClassSpaceSize=16m",
	"-XX:MaxMetaspaceSize=32m",
	"-XX:MaxDirectMemorySize=16m",
	"-XX:-UseContainerSupport",
	"-XX:-UsePerfData",
	"-XX:+DisableAttachMechanism",
	"-XX:-CreateCoredumpOnCrash",
	"-XX:-PrintWarnings",
	"-XX:+SuppressFatalErrorMessage",
	"-Xrs",
	"-Xms8m",
	"-Dfile.encoding=UTF-8",
	"-Djava.awt.headless=true",
	"-Djava.io.tmpdir=.",
	"-Djava.security.egd=file:/dev/urandom",
	"-Duser.home=.",
};

static int create_vm(const struct osd_java_start *start, jni_vm **ret_vm, jni_env **ret_env)
{
	enum { FIXED = OSD_ARRAY_SIZE(options), MORE = 3 };
	jni_option rows[FIXED + MORE] = {0};
	jni_arguments arguments = {
		.version = JNI_VERSION_10, .option_count = FIXED + MORE, .options = rows};
	char heap[32];

	snprintf(heap, sizeof(heap), "-Xmx%lluk",
		 (unsigned long long)((start->memory_bytes - BESIDE_HEAP) / 8 * 7 / 1024));
	for (size_t i = 0; i < FIXED; i++)
		rows[i].text = options[i];
	rows[FIXED].text = heap;
	rows[FIXED + 1] = (jni_option){"exit", start->exit};
	rows[FIXED + 2] = (jni_option){"abort", start->abort};
	return create(ret_vm, ret_env, &arguments) == 0 ? 0 : -ENOEXEC;
}

/* By the loader of the platform's own classes, which functions ask first: no JAR can replace them. */
static int define_classes(jni_env *env)
{
	for (size_t i = 0; i < osd_java_class_count; i++) {
		const struct osd_java_bytes *class = &osd_java_classes[i];

		if (!(*env)->DefineClass(env, NULL, NULL, class->bytes, (int32_t)class->length))
			return -ENOEXEC;
	}
	return 0;
}

int osd_java_start(const struct osd_java_start *start, jni_vm **ret_vm, jni_env **ret_env,
		   struct osd_step *step)
{
	int error;

	if (start->memory_bytes < LEAST_MEMORY)
		return osd_step_end(step, -ENOMEM,
				    "start Java in less than 128 MiB: raise limits.mem");
	error = create_vm(start, ret_vm, ret_env);
	if (!error)
		error = define_classes(*ret_env);
	return osd_step_end(step, error, "start Java");
}

jobject osd_java_class(jni_env *env, const char *name)
{
	char path[64];
	jobject class;

	snprintf(path, sizeof(path), "iosd/%s", name);
	class = (*env)->FindClass(env, path);
	return class ? (*env)->NewGlobalRef(env, class) : NULL;
}
