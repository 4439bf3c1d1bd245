/* SPDX-License-Identifier: GPL-2.0-or-later */
/* py_host.c -- see py_host.h.  The Python half is osd/_host.py: it imports the allowed modules,
 * runs the code and words the traceback; here is what must hold even if that half breaks. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "py_host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "fork_pages.h"
#include "manage.h"
#include "osdcore_module.h"
#include "proxy_client.h"

#define TRACEBACK_MAX	(60u << 10) /* what the payload page keeps (design D13) */
#define LINE_MAX_	512u
#define EXIT_NOT_FORKED 125
#define REHEARSALS	4 /* until what a job allocates is where the next one finds it */

/* osd._host.run, osd._hygiene.clean, osd._forks.forked; owned for good */
static PyObject *host_run, *host_clean, *host_forked;
static int forks_with_all; /* somebody wants the interpreter's own preparations for a fork */

struct finish {
	uint64_t exit_code;
	enum osd_finish_kind kind;
	const char *traceback, *line; /* borrowed from `report`, or literals */
	Py_ssize_t traceback_bytes, line_bytes;
	PyObject *report;
};

/* ---- up -------------------------------------------------------------------------------------- */

static bool failed(char *text, size_t size, const char *what)
{
	PyObject *type, *value, *trace, *words = NULL;
	const char *utf8 = NULL;

	PyErr_Fetch(&type, &value, &trace);
	if (value)
		words = PyObject_Str(value);
	if (words)
		utf8 = PyUnicode_AsUTF8(words);
	snprintf(text, size, "%s: %s", what, utf8 ? utf8 : "unknown error");
	Py_XDECREF(words);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	PyErr_Clear();
	return false;
}

/* Paths are given, not searched for: the search would look for files outside the root. */
static PyStatus set_paths(PyConfig *config)
{
	PyStatus status;

	config->module_search_paths_set = 1;
	status = PyWideStringList_Append(&config->module_search_paths, L"" OSD_PYTHON_STDLIB);
	if (!PyStatus_Exception(status))
		status = PyWideStringList_Append(&config->module_search_paths,
						 L"" OSD_PYTHON_STDLIB "/lib-dynload");
	if (!PyStatus_Exception(status))
		status = PyConfig_SetString(config, &config->executable, L"");
	if (!PyStatus_Exception(status))
		status = PyConfig_SetString(config, &config->prefix, L"/usr");
	if (!PyStatus_Exception(status))
		status = PyConfig_SetString(config, &config->exec_prefix, L"/usr");
	if (!PyStatus_Exception(status))
		status = PyConfig_SetString(config, &config->base_prefix, L"/usr");
	if (!PyStatus_Exception(status))
		status = PyConfig_SetString(config, &config->base_exec_prefix, L"/usr");
	return status;
}

static bool start_interpreter(char *text, size_t size)
{
	PyPreConfig preconfig;
	PyConfig config;
	PyStatus status;

	PyPreConfig_InitIsolatedConfig(&preconfig);
	preconfig.utf8_mode = 1;
	status = Py_PreInitialize(&preconfig);
	PyConfig_InitIsolatedConfig(&config);
	config.site_import = 0; /* 25 ms, and paths of the host */
	config.write_bytecode = 0;
	config.pathconfig_warnings = 0;
	if (!PyStatus_Exception(status))
		status = set_paths(&config);
	if (!PyStatus_Exception(status))
		status = Py_InitializeFromConfig(&config);
	PyConfig_Clear(&config);
	if (PyStatus_Exception(status)) {
		snprintf(text, size, "start the interpreter: %s",
			 status.err_msg ? status.err_msg : "failed");
		return false;
	}
	return true;
}

/* The package is loaded from its directory by name, so that its neighbours there are not
 * importable. */
static const char load_package[] =
	"def load(directory):\n"
	"    import importlib.util, sys\n"
	"    spec = importlib.util.spec_from_file_location('osd', directory + '/__init__.py',\n"
	"        submodule_search_locations=[directory])\n"
	"    module = sys.modules['osd'] = importlib.util.module_from_spec(spec)\n"
	"    import osd._forks\n"
	"    osd._forks.watch()\n"
	"    spec.loader.exec_module(module)\n"
	"    import osd._warm\n"
	"    return osd._warm.prepare\n";

static PyObject *load_osd(const char *directory)
{
	PyObject *namespace = PyDict_New(), *done = NULL, *prepare = NULL;

	if (namespace && PyDict_SetItemString(namespace, "__builtins__", PyEval_GetBuiltins()) == 0)
		done = PyRun_String(load_package, Py_file_input, namespace, namespace);
	if (done)
		prepare = PyObject_CallFunction(PyDict_GetItemString(namespace, "load"), "s",
						directory);
	Py_XDECREF(done);
	Py_XDECREF(namespace);
	return prepare;
}

/* prepare(pool, folder, set, preload, statm) of _warm.py gives run, clean, forked, whether all
 * preparations for forks are needed, and the set's bytes. */
static bool warm_up(PyObject *prepare, const struct osd_host_packages *packages,
		    uint64_t *ret_set_bytes)
{
	PyObject *all = PyObject_CallFunction(prepare, "ssssi", packages->pool, packages->folder,
					      packages->set ? packages->set : "", packages->preload,
					      packages->statm_fd);
	unsigned long long bytes;

	/* with the reference to them */
	if (!all || !PyArg_ParseTuple(all, "OOOpK", &host_run, &host_clean, &host_forked,
				      &forks_with_all, &bytes))
		return false;
	*ret_set_bytes = bytes;
	return true;
}

bool osd_host_start(const struct osd_host_packages *packages, uint64_t *ret_set_bytes, char *text,
		    size_t size)
{
	PyObject *prepare;

	if (PyImport_AppendInittab("_osdcore", osd_core_init) < 0) {
		snprintf(text, size, "register the module _osdcore");
		return false;
	}
	osd_fork_pages_prepare();
	if (!start_interpreter(text, size))
		return false;
	prepare = load_osd(packages->osd);
	if (!prepare)
		return failed(text, size, "cannot load the package osd");
	if (!warm_up(prepare, packages, ret_set_bytes))
		return failed(text, size, "cannot prepare sandboxes");
	osd_fork_pages_gather();
	for (int i = 0; i < REHEARSALS; i++)
		if (!osd_host_prewarm()) {
			snprintf(text, size, "cannot run a first script");
			return false;
		}
	osd_fork_pages_settle();
	return true;
}

/* With one thread the child's interpreter is as good as the parent's (_forks.py). */
pid_t osd_host_fork(void)
{
	pid_t pid;
	int error;

	if (forks_with_all)
		PyOS_BeforeFork();
	pid = fork();
	error = errno;
	if (forks_with_all && pid == 0)
		PyOS_AfterFork_Child();
	else if (forks_with_all)
		PyOS_AfterFork_Parent();
	if (pid == 0 && !PyObject_CallNoArgs(host_forked))
		_exit(EXIT_NOT_FORKED); /* it would share its random numbers with others */
	return pid < 0 ? -error : pid;
}

/* ---- run ------------------------------------------------------------------------------------- */

/* run(code, form, name, args encoding, args, zone type, zone ids, job ids, place in an array) of
 * _host.py */
static PyObject *call_run(const struct osd_host_job *job)
{
	const struct osd_job_run *run = &job->run;

	return PyObject_CallFunction(
		host_run, "y#Is#Iy#I(KK)(KK)(II)", job->code, (Py_ssize_t)run->code_bytes,
		(unsigned)run->code_form, job->name, (Py_ssize_t)run->name_bytes,
		(unsigned)run->args_encoding, job->args, (Py_ssize_t)run->args_bytes,
		(unsigned)run->zone_type, (unsigned long long)run->zone_partition,
		(unsigned long long)run->zone_object, (unsigned long long)run->job_partition,
		(unsigned long long)run->job_object, (unsigned)run->array_before,
		(unsigned)run->array_index);
}

/* An exception came out of _host.run itself: the script broke what words tracebacks, or
 * osd.Ended, or memory ran out again there.  Say what can be said without running any Python. */
static void finish_without_host(struct finish *finish)
{
	PyObject *type = PyErr_Occurred();

	*finish = (struct finish){.exit_code = 1, .kind = OSD_FINISH_EXCEPTION};
	if (type && PyErr_GivenExceptionMatches(type, PyExc_MemoryError)) {
		finish->kind = OSD_FINISH_MEMORY;
		finish->line = "MemoryError";
	} else if (type && osd_core_is_ended(type)) {
		finish->kind = OSD_FINISH_ENDED;
		finish->line = "ended on request";
	} else {
		finish->line = type && PyExceptionClass_Check(type) ? PyExceptionClass_Name(type)
								    : "the report itself failed";
	}
	finish->line_bytes = (Py_ssize_t)strlen(finish->line);
}

static void read_report(PyObject *report, struct finish *finish)
{
	unsigned long long code;
	int kind;

	*finish = (struct finish){.report = report};
	if (!report || !PyTuple_Check(report) ||
	    !PyArg_ParseTuple(report, "Kiy#y#", &code, &kind, &finish->traceback,
			      &finish->traceback_bytes, &finish->line, &finish->line_bytes)) {
		finish_without_host(finish);
		finish->report = report;
		return;
	}
	finish->exit_code = code;
	finish->kind = (enum osd_finish_kind)kind;
}

/* FINISH: be32 n, traceback, one line for people.  True: another job may follow. */
static bool send_finish(const struct finish *finish)
{
	static uint8_t body[4 + TRACEBACK_MAX + LINE_MAX_];
	size_t traceback = OSD_MIN((size_t)finish->traceback_bytes, (size_t)TRACEBACK_MAX);
	size_t line = OSD_MIN((size_t)finish->line_bytes, (size_t)LINE_MAX_);
	struct osd_wr w = osd_wr_init(body, sizeof(body));
	struct osd_call call = {.op = OSD_CALL_FINISH, .a = finish->exit_code, .b = finish->kind};
	struct osd_answer answer;
	const uint8_t *unused;

	osd_wr_be(&w, traceback, 4);
	osd_wr_bytes(&w, finish->traceback, traceback);
	osd_wr_bytes(&w, finish->line, line);
	call.body_bytes = (uint32_t)osd_wr_used(&w);
	osd_manage_sample();
	return osd_proxy_call(&call, body, &answer, &unused) && answer.a == 1;
}

bool osd_host_run(const struct osd_host_job *job, int *ret_code)
{
	struct finish finish;
	PyObject *report;
	bool another;

	osd_proxy_open(true);
	report = call_run(job);
	osd_core_script(false);
	read_report(report, &finish);
	PyErr_Clear();
	another = send_finish(&finish);
	osd_proxy_open(false);
	*ret_code = (int)(finish.exit_code & 0xff);
	Py_XDECREF(report);
	return another;
}

bool osd_host_clean(void)
{
	PyObject *clean = PyObject_CallNoArgs(host_clean);
	bool fine = clean == Py_True;

	PyErr_Clear();
	Py_XDECREF(clean);
	return fine;
}

bool osd_host_prewarm(void)
{
	static const char code[] = "def f(x):\n    return x\nf(1)\nprint(end='')\n";
	const struct osd_host_job job = {
		.run = {.zone_type = 1, .code_bytes = sizeof(code) - 1, .name_bytes = 7},
		.name = "prewarm",
		.args = "",
		.code = code,
	};
	PyObject *report = call_run(&job);
	bool fine = report != NULL;

	osd_core_script(false);
	Py_XDECREF(report);
	if (!fine)
		PyErr_Print();
	return fine;
}
