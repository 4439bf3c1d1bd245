/* SPDX-License-Identifier: GPL-2.0-or-later */
/* python_engine.c -- the engine `python` (engine.h).  Its Python half is the package osd: warm.py
 * imports the modules of all sandboxes, host.py runs the code and writes the traceback.  This file has
 * the functions that must work even if a script breaks that half. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "fork_pages.h"
#include "osdcore_module.h"

#define END_SIGNAL	SIGTERM /* its Python handler raises osd.Ended */
#define EXIT_NOT_FORKED 125
#define REHEARSALS	4 /* after this many scripts the next one allocates no new pages */

/* osd._engine.host.run and keep, osd._engine.hygiene.clean, osd._engine.forks.forked; owned for good */
static PyObject *host_run, *host_keep, *host_clean, *host_forked;
static PyObject *kept[OSD_CODE_SLOTS]; /* owned: from host_keep; NULL: none */
static int forks_with_all; /* a module has registered work to be done before or after a fork */
static PyObject *report;   /* owned: of the last job; its result borrows texts of it, or of the exception */

/* ---- prepare --------------------------------------------------------------------------------- */

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

/* Paths are given: a search would look for files outside the root. */
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
	"    import osd._engine.forks\n"
	"    osd._engine.forks.watch()\n"
	"    spec.loader.exec_module(module)\n"
	"    import osd._engine.warm\n"
	"    return osd._engine.warm.prepare\n";

static PyObject *load_osd(const char *directory)
{
	PyObject *namespace = PyDict_New(), *done = NULL, *found = NULL;

	if (namespace && PyDict_SetItemString(namespace, "__builtins__", PyEval_GetBuiltins()) == 0)
		done = PyRun_String(load_package, Py_file_input, namespace, namespace);
	if (done)
		found = PyObject_CallFunction(PyDict_GetItemString(namespace, "load"), "s",
					      directory);
	Py_XDECREF(done);
	Py_XDECREF(namespace);
	return found;
}

/* prepare(pool, folder, set, preload, statm) of warm.py returns run, keep, clean, forked, whether a fork needs
 * the interpreter's own preparations, and the set's bytes. */
static bool warm_up(PyObject *prepare_osd, const struct osd_engine_setup *setup,
		    uint64_t *ret_set_bytes)
{
	PyObject *all = PyObject_CallFunction(prepare_osd, "ssssi", setup->pool, setup->folder,
					      setup->set ? setup->set : "", setup->preload,
					      setup->statm_fd);
	unsigned long long bytes;

	/* the references are kept for good */
	if (!all || !PyArg_ParseTuple(all, "OOOOpK", &host_run, &host_keep, &host_clean,
				      &host_forked, &forks_with_all, &bytes))
		return false;
	*ret_set_bytes = bytes;
	return true;
}

/* ---- run ------------------------------------------------------------------------------------ */

/* The code that is kept in the job's slot, borrowed.  Code that cannot be compiled is not kept: run() will say why. */
static PyObject *kept_code(const struct osd_engine_job *job)
{
	PyObject **place = kept + job->run.code_slot - 1;

	if (job->run.code_slot == 0)
		return NULL;
	if (job->run.code_kept)
		return *place;
	Py_CLEAR(*place);
	if (job->run.code_form == 0)
		*place = PyObject_CallFunction(host_keep, "y#s#", job->code,
					       (Py_ssize_t)job->run.code_bytes, job->name,
					       (Py_ssize_t)job->run.name_bytes);
	PyErr_Clear();
	if (*place == Py_None)
		Py_CLEAR(*place);
	return *place;
}

/* Data that pass through are not copied: those in the shared memory stay readable, as text that the sandbox keeps does. */
static PyObject *args_of(const struct osd_engine_job *job)
{
	Py_ssize_t length = (Py_ssize_t)job->run.args_bytes;
	PyObject *copy, *view;

	if (job->run.stage && !job->run.in_memfd)
		return PyMemoryView_FromMemory((char *)job->args, length, PyBUF_READ);
	copy = PyBytes_FromStringAndSize(job->args, length);
	if (!copy || !job->run.stage)
		return copy;
	view = PyMemoryView_FromObject(copy);
	Py_DECREF(copy);
	return view;
}

/* run(code, kept, form, name, method, args encoding, args, zone type, zone ids, job ids, place in an array) of
 * host.py */
static PyObject *call_run(const struct osd_engine_job *job, PyObject *code)
{
	const struct osd_job_run *run = &job->run;
	PyObject *args = args_of(job);

	if (!args)
		return NULL;
	return PyObject_CallFunction(
		host_run, "y#OIs#s#INI(KK)(KK)(II)", code ? NULL : job->code,
		(Py_ssize_t)run->code_bytes, code ? code : Py_None, (unsigned)run->code_form, job->name, (Py_ssize_t)run->name_bytes,
		job->method, (Py_ssize_t)run->method_bytes,
		(unsigned)run->args_encoding, args,
		(unsigned)run->zone_type, (unsigned long long)run->zone_partition,
		(unsigned long long)run->zone_object, (unsigned long long)run->job_partition,
		(unsigned long long)run->job_object, (unsigned)run->array_before,
		(unsigned)run->array_index);
}

/* Run a trivial script the way jobs run, so that the first job finds its pages in memory. */
static bool rehearse(void)
{
	static const char code[] = "def f(x):\n    return x\nf(1)\nprint(end='')\n";
	const struct osd_engine_job job = {
		.run = {.zone_type = 1, .code_bytes = sizeof(code) - 1, .name_bytes = 7},
		.name = "prewarm",
		.method = "",
		.args = "",
		.code = code,
	};
	PyObject *done = call_run(&job, NULL);
	bool fine = done != NULL;

	osd_core_script(false);
	Py_XDECREF(done);
	if (!fine)
		PyErr_Print();
	return fine;
}

/* ---- zygote ---------------------------------------------------------------------------------- */

static bool prepare(const struct osd_engine_setup *setup, uint64_t *ret_bytes, char *text, size_t size)
{
	PyObject *prepare_osd;

	if (PyImport_AppendInittab("_osdcore", osd_core_init) < 0) {
		snprintf(text, size, "register the module _osdcore");
		return false;
	}
	osd_fork_pages_prepare();
	if (!start_interpreter(text, size))
		return false;
	PyGC_Disable(); /* until warm.py has imported everything: collections would find next to nothing */
	prepare_osd = load_osd(setup->support);
	if (!prepare_osd)
		return failed(text, size, "cannot load the package osd");
	if (!warm_up(prepare_osd, setup, ret_bytes))
		return failed(text, size, "cannot prepare sandboxes");
	osd_fork_pages_gather();
	for (int i = 0; i < REHEARSALS; i++)
		if (!rehearse()) {
			snprintf(text, size, "cannot run a first script");
			return false;
		}
	osd_fork_pages_settle();
	return true;
}

/* A process of one thread needs none of the interpreter's preparations, unless a module has registered
 * some (forks.py). */
static pid_t fork_interpreter(void)
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
		/* otherwise it would get the same random numbers as other sandboxes */
		_exit(EXIT_NOT_FORKED);
	return pid < 0 ? -error : pid;
}

/* ---- result ---------------------------------------------------------------------------------- */

/* host.run itself raised an exception: the script broke the function that writes tracebacks, or
 * osd.Ended, or memory ran out there again.  Report the known facts without running any Python. */
static void result_without_report(struct osd_engine_result *result)
{
	PyObject *type = PyErr_Occurred();

	*result = (struct osd_engine_result){.exit_code = 1, .kind = OSD_FINISH_EXCEPTION};
	if (type && PyErr_GivenExceptionMatches(type, PyExc_MemoryError)) {
		result->kind = OSD_FINISH_MEMORY;
		result->line = "MemoryError";
	} else if (type && osd_core_is_ended(type)) {
		result->kind = OSD_FINISH_ENDED;
		result->line = "ended on request";
	} else {
		result->line = type && PyExceptionClass_Check(type) ? PyExceptionClass_Name(type)
								    : "the report itself failed";
	}
	result->line_bytes = strlen(result->line);
}

static void read_report(struct osd_engine_result *result)
{
	Py_ssize_t report_bytes, line_bytes, result_bytes;
	unsigned long long code;
	size_t placed_bytes;
	const void *placed = osd_core_take_placed(&placed_bytes);
	int kind, form;

	*result = (struct osd_engine_result){0};
	if (!report || !PyTuple_Check(report) ||
	    !PyArg_ParseTuple(report, "Kiy#y#iy#", &code, &kind, &result->report,
			      &report_bytes, &result->line, &line_bytes, &form, &result->result,
			      &result_bytes) ||
	    form < 0 || form > 2 || result_bytes > (Py_ssize_t)OSD_FINISH_RESULT_MAX) {
		result_without_report(result);
		return;
	}
	result->exit_code = code;
	result->kind = (enum osd_finish_kind)kind;
	result->report_bytes = (size_t)report_bytes;
	result->line_bytes = (size_t)line_bytes;
	result->form = (uint8_t)form;
	result->result_bytes = (size_t)result_bytes;
	if (placed && form && result_bytes == 0) {
		result->result = placed;
		result->result_bytes = placed_bytes;
	}
}

static void call(const struct osd_engine_job *job, struct osd_engine_result *ret_result)
{
	PyObject *code = kept_code(job);

	report = call_run(job, code);
	osd_core_script(false);
	read_report(ret_result);
	ret_result->kept_code = code != NULL;
}

static bool clean_up(PyObject *lightly)
{
	PyObject *cleaned;
	bool fine;

	PyErr_Clear();
	Py_CLEAR(report);
	cleaned = PyObject_CallOneArg(host_clean, lightly);
	fine = cleaned == Py_True;
	PyErr_Clear();
	Py_XDECREF(cleaned);
	return fine;
}

static bool clean(void)
{
	return clean_up(Py_False);
}

static bool clean_lightly(void)
{
	return clean_up(Py_True);
}

/* The interpreter runs the handler between two bytecodes. */
static void interrupt(void)
{
	if (!osd_core_has_ended())
		PyErr_SetInterruptEx(END_SIGNAL);
}

const struct osd_engine osd_engine_python = {
	.name = "python",
	.package_sets = true,
	.folders = {OSD_PYTHON_STDLIB},
	.prepare = prepare,
	.fork = fork_interpreter,
	.begin = rehearse,
	.call = call,
	.clean = clean,
	.clean_lightly = clean_lightly,
	.interrupt = interrupt,
};
