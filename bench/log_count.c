/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_count.c -- the demo's log job (examples/demo/log.py) in C with PCRE2, for figure 6 of the iOSD paper: a
 * module that the zygote loads, since nothing can be started behind a sandbox's filter.  What a job
 * calls of it runs in the job's own sandbox.
 *
 * start(jit) forgets everything; feed(bytes) takes the log piece by piece; finish() returns
 * ({user: requests}, {operation: requests}).  One log at a time, lines of at most LOG_LINE_MAX bytes. */
#define PY_SSIZE_T_CLEAN
#define PCRE2_CODE_UNIT_WIDTH 8
#include <Python.h>
#include <pcre2.h>
#include <stdbool.h>
#include <string.h>

#define LOG_LINE_MAX 4096
#define KEYS	     4096 /* a power of 2 */
#define KEY_MAX	     32

static const char request[] =
	"\\S+ \\S+ \\S+ [UT] C3 [0-9a-f]+ [0-9a-f]+ (\\w+) .* euid ([0-9a-f]+) egid ";

struct count {
	uint8_t key[KEY_MAX];
	size_t length; /* 0: free */
	unsigned long long number;
};

enum { OPERATION, USER, TABLES };

static struct count tables[TABLES][KEYS];
static uint8_t line_begin[LOG_LINE_MAX]; /* of a line that the next piece ends */
static size_t begun;
static pcre2_code *interpreted, *machine_code, *code;
static pcre2_match_data *match;

/* False: the table is full, or the key too long. */
static bool add(struct count *table, const uint8_t *key, size_t length)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a */

	if (length == 0 || length > KEY_MAX)
		return false;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ key[i]) * 1099511628211u;
	for (size_t i = 0; i < KEYS; i++) {
		struct count *at = &table[(hash + i) & (KEYS - 1)];

		if (!at->length) {
			memcpy(at->key, key, length);
			at->length = length;
		}
		if (at->length == length && memcmp(at->key, key, length) == 0) {
			at->number++;
			return true;
		}
	}
	return false;
}

static bool take_line(const uint8_t *line, size_t length)
{
	int found = pcre2_match(code, line, length, 0, 0, match, NULL);
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(match);

	if (found == PCRE2_ERROR_NOMATCH)
		return true;
	return found == TABLES + 1 && add(tables[OPERATION], line + at[2], at[3] - at[2]) &&
	       add(tables[USER], line + at[4], at[5] - at[4]);
}

static bool take_begun(const uint8_t *more, size_t length)
{
	if (length > LOG_LINE_MAX - begun)
		return false;
	memcpy(line_begin + begun, more, length);
	begun += length;
	return true;
}

static bool take(const uint8_t *bytes, size_t length)
{
	const uint8_t *end = bytes + length;

	while (bytes < end) {
		const uint8_t *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		const uint8_t *next = newline ? newline + 1 : end;
		size_t count = (size_t)(next - bytes);

		if (begun || !newline) {
			if (!take_begun(bytes, count))
				return false;
			if (newline && !take_line(line_begin, begun))
				return false;
			begun = newline ? 0 : begun;
		} else if (!take_line(bytes, count)) {
			return false;
		}
		bytes = next;
	}
	return true;
}

/* ---- for Python -------------------------------------------------------------------------------- */

static PyObject *start(PyObject *module, PyObject *jit)
{
	int truth = PyObject_IsTrue(jit);

	(void)module;
	if (truth < 0)
		return NULL;
	code = truth ? machine_code : interpreted;
	memset(tables, 0, sizeof(tables));
	begun = 0;
	Py_RETURN_NONE;
}

static PyObject *feed(PyObject *module, PyObject *bytes)
{
	Py_buffer view;
	bool fine;

	(void)module;
	if (!code || PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) < 0)
		return code ? NULL : PyErr_Format(PyExc_RuntimeError, "start() comes first");
	fine = take(view.buf, (size_t)view.len);
	PyBuffer_Release(&view);
	if (!fine)
		return PyErr_Format(PyExc_ValueError, "a line that this cannot take");
	Py_RETURN_NONE;
}

static PyObject *counts(const struct count *table)
{
	PyObject *found = PyDict_New();

	for (size_t i = 0; found && i < KEYS; i++) {
		PyObject *key, *number;

		if (!table[i].length)
			continue;
		key = PyBytes_FromStringAndSize((const char *)table[i].key,
						(Py_ssize_t)table[i].length);
		number = PyLong_FromUnsignedLongLong(table[i].number);
		if (!key || !number || PyDict_SetItem(found, key, number) < 0)
			Py_CLEAR(found);
		Py_XDECREF(key);
		Py_XDECREF(number);
	}
	return found;
}

static PyObject *finish(PyObject *module, PyObject *none)
{
	(void)module;
	(void)none;
	if (begun && !take_line(line_begin, begun))
		return PyErr_Format(PyExc_ValueError, "a line that this cannot take");
	begun = 0;
	return Py_BuildValue("(NN)", counts(tables[USER]), counts(tables[OPERATION]));
}

static pcre2_code *compile(bool jit)
{
	PCRE2_SIZE where;
	int error;
	pcre2_code *made = pcre2_compile((PCRE2_SPTR)request, PCRE2_ZERO_TERMINATED, PCRE2_ANCHORED,
					 &error, &where, NULL);

	if (made && jit && pcre2_jit_compile(made, PCRE2_JIT_COMPLETE) != 0) {
		pcre2_code_free(made);
		return NULL;
	}
	return made;
}

static PyMethodDef methods[] = {
	{"start", start, METH_O, NULL},
	{"feed", feed, METH_O, NULL},
	{"finish", finish, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "iosd_log_count",
	.m_size = -1,
	.m_methods = methods,
};

PyMODINIT_FUNC PyInit_iosd_log_count(void)
{
	interpreted = compile(false);
	machine_code = compile(true);
	match = interpreted ? pcre2_match_data_create_from_pattern(interpreted, NULL) : NULL;
	if (!interpreted || !machine_code || !match)
		return PyErr_Format(PyExc_ImportError, "PCRE2 does not compile the pattern");
	return PyModule_Create(&definition);
}
