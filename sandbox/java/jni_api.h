/* SPDX-License-Identifier: GPL-2.0-or-later */
/* jni_api.h -- the part of the Java Native Interface that the engine `java` uses: types, and the tables of
 * functions that the virtual machine provides, with the functions that the engine calls.  The places are those
 * of the specification, which only adds to the end; tests/sandbox/test_java.py compares them with jni.h. */
#ifndef OSD_SANDBOX_JNI_API_H
#define OSD_SANDBOX_JNI_API_H

#include <stdint.h>

#define JNI_VERSION_10	 0x000a0000
#define JNI_UNUSED(name) unused_##name __attribute__((unused)) /* a parameter */

typedef void *jobject; /* of any class; NULL: null */
typedef struct jni_id_ *jni_id; /* of a method */
typedef union {
	int32_t i;
	int64_t j;
	jobject l;
} jni_value;

typedef void (*jni_unused)(void);
typedef const struct jni_functions *jni_env;
typedef const struct jni_vm_functions *jni_vm;

typedef struct {
	const char *name, *signature;
	jni_unused function;
} jni_native;

struct jni_functions {
	jni_unused before_DefineClass[5];
	jobject (*DefineClass)(jni_env *env, const char *name, jobject loader, const int8_t *bytes,
			      int32_t length);
	jobject (*FindClass)(jni_env *env, const char *name);
	jni_unused before_Throw[6];
	int32_t (*Throw)(jni_env *env, jobject thrown);
	int32_t (*ThrowNew)(jni_env *env, jobject class, const char *message);
	jni_unused before_ExceptionClear[2];
	void (*ExceptionClear)(jni_env *env);
	jni_unused before_NewGlobalRef[3];
	jobject (*NewGlobalRef)(jni_env *env, jobject object);
	jni_unused before_DeleteLocalRef[1];
	void (*DeleteLocalRef)(jni_env *env, jobject object);
	jni_unused before_NewObjectA[6];
	jobject (*NewObjectA)(jni_env *env, jobject class, jni_id method,
			      const jni_value *values);
	jni_unused before_GetMethodID[2];
	jni_id (*GetMethodID)(jni_env *env, jobject class, const char *name,
			      const char *signature);
	jni_unused before_GetStaticMethodID[79];
	jni_id (*GetStaticMethodID)(jni_env *env, jobject class, const char *name,
			      const char *signature);
	jni_unused before_CallStaticVoidMethodA[29];
	void (*CallStaticVoidMethodA)(jni_env *env, jobject class, jni_id method,
			      const jni_value *values);
	jni_unused before_GetArrayLength[27];
	int32_t (*GetArrayLength)(jni_env *env, jobject array);
	jni_unused before_NewByteArray[4];
	jobject (*NewByteArray)(jni_env *env, int32_t length);
	jni_unused before_GetByteArrayRegion[23];
	void (*GetByteArrayRegion)(jni_env *env, jobject array, int32_t at,
			      int32_t length, void *to);
	jni_unused before_SetByteArrayRegion[7];
	void (*SetByteArrayRegion)(jni_env *env, jobject array, int32_t at, int32_t length,
			      const void *from);
	jni_unused before_RegisterNatives[6];
	int32_t (*RegisterNatives)(jni_env *env, jobject class, const jni_native *natives,
			      int32_t count);
	jni_unused before_ExceptionCheck[12];
	uint8_t (*ExceptionCheck)(jni_env *env);
};

struct jni_vm_functions {
	jni_unused before[5];
	int32_t (*DetachCurrentThread)(jni_vm *vm);
	jni_unused GetEnv;
	int32_t (*AttachCurrentThreadAsDaemon)(jni_vm *vm, jni_env **ret_env, void *arguments);
};

typedef struct {
	const char *text;
	jni_unused function; /* that `exit` and `abort` name */
} jni_option;

typedef struct {
	int32_t version, option_count;
	const jni_option *options;
	uint8_t ignore_unknown;
} jni_arguments;

typedef int32_t jni_create(jni_vm **ret_vm, jni_env **ret_env, const jni_arguments *arguments);

#endif
