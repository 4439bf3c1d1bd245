/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kernel.h -- the parts of class pyosd._core.KernelDevice: kernel_type.c is the class, kernel_answers.c
 * answers requests, kernel_node.c knows the nodes that they are about.
 * Thread rule: all hold the GIL. */
#ifndef PYOSD_KERNEL_H
#define PYOSD_KERNEL_H

#include "core.h"

#include <linux/fuse.h>
#include <stdbool.h>

#define KERNEL_NS_PER_S 1000000000ll

/* Attributes of nodes, their facts, their stat and what is new, in the order of core_node_names. */
enum kernel_name {
	NAME_SHOWN,
	NAME_NEW,
	NAME_WRITER,
	NAME_ASKED,
	NAME_CHANGED,
	NAME_FRESH,
	NAME_INODE,
	NAME_TOLD,
	NAME_FACTS,
	NAME_XATTRS,
	NAME_STAT,
	NAME_NAMES,
	NAME_OPENS,
	NAME_HIDDEN,
	NAME_HEAD,
	NAME_STORING,
	NAME_DATA,
	NAME_OF_STAT, /* the first of its own */
};

enum kernel_stat_field {
	STAT_MODE,
	STAT_LINKS,
	STAT_UID,
	STAT_GID,
	STAT_SIZE,
	STAT_MODIFIED,
	STAT_CHANGED,
	STAT_TOLD, /* those before this one are what the kernel remembers */
	STAT_ACCESSED = STAT_TOLD,
	STAT_DEVICE,
	STAT_FIELDS,
};

struct device_object {
	PyObject_HEAD int fd, others; /* borrowed; others: readable if the loop is to run */
	bool others_ready;
	uint64_t handled;  /* a bit for each operation that next() hands out */
	uint64_t new_most; /* bytes that a new file holds */
	double kept;	   /* seconds that attributes are used for */
	PyObject *nodes;   /* dict: id -> node */
	PyObject *request; /* class of what next() returns */
	PyObject *buffer;  /* bytes that nobody else has: the next request */
	Py_ssize_t length; /* of buffer */
	PyObject *const *names;
};

enum kernel_outcome { HANDED_OUT, ANSWERED };

/* ---- kernel_node.c ------------------------------------------------------------------------ */

double kernel_now_s(void);

/* An attribute of an object, which may be NULL.  The caller owns the result; NULL: an exception is
 * set, now or before. */
PyObject *kernel_get(const struct device_object *self, PyObject *object, unsigned int name);

/* 1, 0, or -1: an exception is set. */
int kernel_is_true(const struct device_object *self, PyObject *object, enum kernel_name name);
int kernel_is_none(const struct device_object *self, PyObject *object, enum kernel_name name);

/* How long the kernel may use the attributes, in seconds; negative: the target must be asked, or an
 * exception is set. */
double kernel_left(const struct device_object *self, PyObject *node);

/* Fills in the attributes, and notes in the node that the kernel has them.  False: an exception is
 * set, or a value is too large for this. */
bool kernel_fill(const struct device_object *self, PyObject *node, struct fuse_attr *attr);

/* Puts data into a file that the target does not have yet.  HANDED_OUT: it is none, they do not
 * fit, or an exception is set. */
enum kernel_outcome kernel_write_new(const struct device_object *self, PyObject *node,
				     uint64_t start, const void *data, uint32_t length);

/* The data of such a file, a bytearray that the caller owns; NULL: it is none, or an exception is
 * set. */
PyObject *kernel_new_data(const struct device_object *self, PyObject *node);

/* One open file less.  HANDED_OUT: there is something to do, or an exception is set. */
enum kernel_outcome kernel_release(const struct device_object *self, PyObject *node);

/* ---- kernel_answers.c --------------------------------------------------------------------- */

ssize_t kernel_put(const struct device_object *self, uint64_t unique, int error, const void *data,
		   size_t length);

/* Answers a request, if that needs nothing from others.  HANDED_OUT also if that fails: Python finds
 * out why, and tells the caller.  No exception is set. */
enum kernel_outcome kernel_answer(const struct device_object *self,
				  const struct fuse_in_header *in);

#endif
