/* SPDX-License-Identifier: GPL-2.0-or-later */
/* session_type.c -- class pyosd._core.Session over session.h.  Types: ../_core.pyi.
 * Lives here: arguments, buffers and their references, the GIL, exceptions.  No protocol. */
#include "core.h"

#include "base/util.h"
#include "session.h"

struct session_object {
	PyObject_HEAD struct iscsi_session *session; /* owned; NULL after close() */
	bool busy; /* a thread is inside service() without the GIL */
};

/* The Python objects that a task keeps alive. */
struct owner {
	Py_buffer data_out, data_in; /* data_in.obj NULL: bytes_in is ours */
	PyObject *result; /* what receives Data-In: bytes or the caller's buffer; or NULL */
};

static void owner_free(struct owner *owner)
{
	if (!owner)
		return;
	PyBuffer_Release(&owner->data_out);
	PyBuffer_Release(&owner->data_in);
	Py_XDECREF(owner->result);
	free(owner);
}

static void task_release(struct iscsi_task *task)
{
	if (task)
		owner_free(task->owner);
	iscsi_task_free(task);
}

OSD_DEFINE_CLEANUP(struct iscsi_task *, task_release)

/* First line of every method: open, and no other thread inside. */
static struct iscsi_session *check(struct session_object *self)
{
	if (self->busy) {
		PyErr_SetString(PyExc_RuntimeError, "the session is in use by another thread");
		return NULL;
	}
	if (!self->session)
		PyErr_SetString(PyExc_ValueError, "the session is closed");
	return self->session;
}

/* Sets the exception a failed session means. */
static PyObject *raise_failure(PyObject *object, const struct iscsi_session *s)
{
	struct core_state *state = PyType_GetModuleState(Py_TYPE(object));

	if (!s->violation && s->error_number)
		return PyErr_Format(PyExc_ConnectionError, "%s: %s", s->error,
				    strerror(s->error_number));
	return PyErr_Format(s->violation ? state->protocol_violation : PyExc_ConnectionError, "%s",
			    s->error);
}

/* ---- making and closing ------------------------------------------------------------------- */

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct session_object *self;
	unsigned int max_recv_segment;
	int fd;

	if (kwargs)
		return PyErr_Format(PyExc_TypeError, "Session() takes no keyword arguments");
	if (!PyArg_ParseTuple(args, "iI", &fd, &max_recv_segment))
		return NULL;
	if (max_recv_segment < 512 || max_recv_segment > ISCSI_SEGMENT_MAX || max_recv_segment % 4)
		return PyErr_Format(PyExc_ValueError,
				    "max_recv_segment must be a multiple of 4 in 512-16777212");
	self = (struct session_object *)alloc(type, 0);
	if (!self)
		return NULL;
	self->session = malloc(sizeof(*self->session));
	if (!self->session) {
		Py_DECREF(self);
		return PyErr_NoMemory();
	}
	iscsi_init(self->session, fd, max_recv_segment);
	return (PyObject *)self;
}

static void close_session(struct session_object *self)
{
	struct iscsi_session *s = self->session;
	struct iscsi_task *task;

	self->session = NULL;
	if (!s)
		return;
	iscsi_release(s);
	while ((task = iscsi_next_done(s)))
		task_release(task);
	free(s);
}

static void session_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);

	close_session((struct session_object *)object);
	free_object(object);
	Py_DECREF(type);
}

PyDoc_STRVAR(fail_doc,
	     "fail()\n--\n\nGive up the session: every command comes out of done() unanswered.");

static PyObject *session_fail(PyObject *object, PyObject *Py_UNUSED(ignored))
{
	struct iscsi_session *s = check((struct session_object *)object);

	if (!s)
		return NULL;
	iscsi_fail(s, false, "session closed", 0);
	Py_RETURN_NONE;
}

/* ---- what a driver needs ------------------------------------------------------------------ */

PyDoc_STRVAR(fileno_doc, "fileno()\n--\n\nThe socket's descriptor.");

static PyObject *session_fileno(PyObject *object, PyObject *Py_UNUSED(ignored))
{
	struct iscsi_session *s = check((struct session_object *)object);

	return s ? PyLong_FromLong(s->fd) : NULL;
}

PyDoc_STRVAR(events_doc, "events()\n--\n\nPoll events to wait for; 0 once the session has failed.");

static PyObject *session_events(PyObject *object, PyObject *Py_UNUSED(ignored))
{
	struct iscsi_session *s = check((struct session_object *)object);

	return s ? PyLong_FromLong(iscsi_events(s)) : NULL;
}

PyDoc_STRVAR(
	service_doc,
	"service()\n--\n\nSend and receive what the socket takes and has, without blocking.\n\n"
	"Raises: ProtocolViolation: the target broke the protocol; ConnectionError: it is gone.");

static PyObject *session_service(PyObject *object, PyObject *Py_UNUSED(ignored))
{
	struct session_object *self = (struct session_object *)object;
	struct iscsi_session *s = check(self);
	bool ok;

	if (!s)
		return NULL;
	self->busy = true;
	Py_BEGIN_ALLOW_THREADS ok = iscsi_service(s);
	Py_END_ALLOW_THREADS self->busy = false;
	if (!ok)
		return raise_failure(object, s);
	Py_RETURN_NONE;
}

PyDoc_STRVAR(start_doc, "start(max_send_segment, max_burst, first_burst, immediate_data, "
			"initial_r2t, header_digest)\n--\n\n"
			"Login is over: go to full feature phase with what was negotiated.");

static PyObject *session_start(PyObject *object, PyObject *args)
{
	struct iscsi_session *s = check((struct session_object *)object);
	unsigned int max_send_segment, max_burst, first_burst;
	int immediate_data, initial_r2t, header_digest;
	struct iscsi_params params;

	if (!s || !PyArg_ParseTuple(args, "IIIppp", &max_send_segment, &max_burst, &first_burst,
				    &immediate_data, &initial_r2t, &header_digest))
		return NULL;
	if (max_send_segment < 512 || max_send_segment > ISCSI_SEGMENT_MAX || max_burst < 512 ||
	    max_burst > ISCSI_SEGMENT_MAX || first_burst < 512 || first_burst > max_burst)
		return PyErr_Format(PyExc_ValueError, "a negotiated length is out of range");
	if (s->phase != ISCSI_PHASE_LOGIN)
		return PyErr_Format(PyExc_ValueError, "the session is past its login");
	params = (struct iscsi_params){
		.max_send_segment = max_send_segment,
		.max_recv_segment = s->params.max_recv_segment,
		.max_burst = max_burst,
		.first_burst = first_burst,
		.immediate_data = immediate_data,
		.initial_r2t = initial_r2t,
		.header_digest = header_digest,
	};
	iscsi_start(s, &params);
	Py_RETURN_NONE;
}

/* ---- requests ----------------------------------------------------------------------------- */

/* Hands the task to the session; on failure frees it and raises. */
static PyObject *submit_task(PyObject *object, struct iscsi_session *s, struct iscsi_task *task)
{
	if (iscsi_submit(s, task))
		return PyLong_FromUnsignedLong(task->tag);
	task_release(task);
	if (s->phase == ISCSI_PHASE_FAILED)
		return raise_failure(object, s);
	if (s->task_count == ISCSI_TASKS_MAX)
		return PyErr_Format(PyExc_BlockingIOError, "too many commands under way");
	return PyErr_Format(PyExc_ValueError, "not in this phase of the session");
}

static struct iscsi_task *task_new(void)
{
	struct iscsi_task *task = calloc(1, sizeof(*task));

	if (task)
		task->owner = calloc(1, sizeof(struct owner));
	if (task && task->owner)
		return task;
	free(task);
	PyErr_NoMemory();
	return NULL;
}

/* Data-In goes into buffer, or, when that is None, into a new bytearray: scripts may change the blocks they get. */
static bool set_data_in(struct iscsi_task *task, PyObject *buffer, Py_ssize_t length)
{
	struct owner *owner = task->owner;

	if (length < 0 || length > INT32_MAX) {
		PyErr_SetString(PyExc_ValueError, "data_in_length out of range");
		return false;
	}
	task->data_in_capacity = (uint32_t)length;
	if (buffer == Py_None) {
		owner->result = PyByteArray_FromStringAndSize(NULL, length);
		task->data_in =
			owner->result ? (uint8_t *)PyByteArray_AsString(owner->result) : NULL;
		return owner->result != NULL;
	}
	if (PyObject_GetBuffer(buffer, &owner->data_in, PyBUF_WRITABLE) < 0)
		return false;
	if (owner->data_in.len < length) {
		PyErr_SetString(PyExc_ValueError, "data_in is shorter than data_in_length");
		return false;
	}
	task->data_in = owner->data_in.buf;
	owner->result = Py_NewRef(buffer);
	return true;
}

PyDoc_STRVAR(submit_doc,
	     "submit(lun, cdb, data_out, data_in, data_in_length)\n--\n\n"
	     "Queue a SCSI command; returns its tag.  data_in: a writable buffer, or None.");

static PyObject *session_submit(PyObject *object, PyObject *args)
{
	struct iscsi_session *s = check((struct session_object *)object);
	OSD_CLEANUP(task_releasep) struct iscsi_task *task = s ? task_new() : NULL;
	OSD_CLEANUP(PyBuffer_Release) Py_buffer cdb = {0};
	struct owner *owner = task ? task->owner : NULL;
	PyObject *buffer;
	Py_ssize_t length;
	unsigned short lun;

	if (!task ||
	    !PyArg_ParseTuple(args, "Hy*y*On", &lun, &cdb, &owner->data_out, &buffer, &length))
		return NULL;
	task->opcode = ISCSI_SCSI_COMMAND;
	task->lun = lun;
	if (cdb.len < 1 || cdb.len > (Py_ssize_t)ISCSI_CDB_MAX || lun > 16383 ||
	    owner->data_out.len > INT32_MAX)
		return PyErr_Format(PyExc_ValueError, "lun, cdb or data_out out of range");
	task->cdb_length = (uint16_t)cdb.len;
	memcpy(task->cdb, cdb.buf, (size_t)cdb.len);
	task->data_out = owner->data_out.buf;
	task->data_out_length = (uint32_t)owner->data_out.len;
	return set_data_in(task, buffer, length) ? submit_task(object, s, OSD_STEAL(task)) : NULL;
}

PyDoc_STRVAR(request_doc,
	     "request(opcode, header, data, immediate)\n--\n\n"
	     "Queue a login, text, NOP-Out, logout or task management request; returns its tag.\n\n"
	     "header: 48 bytes; opcode, tag, sequence numbers and lengths in it are filled in.");

static PyObject *session_request(PyObject *object, PyObject *args)
{
	struct iscsi_session *s = check((struct session_object *)object);
	OSD_CLEANUP(task_releasep) struct iscsi_task *task = s ? task_new() : NULL;
	OSD_CLEANUP(PyBuffer_Release) Py_buffer header = {0};
	struct owner *owner = task ? task->owner : NULL;
	unsigned char opcode;
	int immediate;

	if (!task ||
	    !PyArg_ParseTuple(args, "by*y*p", &opcode, &header, &owner->data_out, &immediate))
		return NULL;
	if (header.len != ISCSI_BHS_LENGTH || opcode > ISCSI_LOGOUT ||
	    opcode == ISCSI_SCSI_COMMAND || opcode == ISCSI_DATA_OUT ||
	    (size_t)owner->data_out.len > s->params.max_send_segment)
		return PyErr_Format(PyExc_ValueError, "opcode, header or data out of range");
	task->opcode = opcode;
	task->immediate = immediate;
	memcpy(task->request, header.buf, ISCSI_BHS_LENGTH);
	task->request[BHS_AHS_WORDS] = 0;
	task->data_out = owner->data_out.buf;
	task->data_out_length = (uint32_t)owner->data_out.len;
	return submit_task(object, s, OSD_STEAL(task));
}

PyDoc_STRVAR(
	command_number_doc,
	"command_number(tag)\n--\n\nCmdSN of a command under way, None when it has not been sent.");

static PyObject *session_command_number(PyObject *object, PyObject *args)
{
	struct iscsi_session *s = check((struct session_object *)object);
	struct iscsi_task *task;
	unsigned int tag;

	if (!s || !PyArg_ParseTuple(args, "I", &tag))
		return NULL;
	task = iscsi_find_task(s, tag);
	if (!task)
		Py_RETURN_NONE;
	return PyLong_FromUnsignedLong(task->cmd_sn);
}

/* ---- answers ------------------------------------------------------------------------------ */

/* Expected less transferred bytes, from the flags and count of one direction. */
static int64_t residual(const uint8_t *bhs, uint8_t under, uint8_t over, size_t count_at)
{
	int64_t count = bhs_word(bhs, count_at);

	if (bhs[BHS_FLAGS] & under)
		return count;
	return bhs[BHS_FLAGS] & over ? -count : 0;
}

/* Sense data inside a SCSI Response's data segment, whose first two bytes give their length. */
static PyObject *sense_of(const struct iscsi_task *task)
{
	static const uint8_t none[1];
	struct osd_rd r = osd_rd_init(task->control ? task->control : none, task->control_length);
	size_t length = (size_t)osd_rd_be(&r, 2);

	if (length > osd_rd_left(&r))
		length = osd_rd_left(&r);
	return PyBytes_FromStringAndSize((const char *)r.at, (Py_ssize_t)length);
}

static PyObject *scsi_answer(const struct iscsi_task *task)
{
	const struct owner *owner = task->owner;
	const uint8_t *bhs = task->response;
	bool bidi = task->data_out_length && task->data_in_capacity;
	int64_t first = residual(bhs, ISCSI_UNDERFLOW, ISCSI_OVERFLOW, BHS_WORD44), in = 0, out = 0;
	bool status_in_data = (bhs[BHS_OPCODE] & ISCSI_OPCODE_MASK) == ISCSI_DATA_IN;
	/* Byte 2 is reserved in a Data-In; in a response nonzero means "target failure". */
	int status = bhs[BHS_RESPONSE] && !status_in_data ? -1 : bhs[BHS_STATUS];
	PyObject *sense = status_in_data ? PyBytes_FromStringAndSize("", 0) : sense_of(task);

	if (!sense)
		return NULL;
	if (bidi)
		in = residual(bhs, ISCSI_BIDI_UNDERFLOW, ISCSI_BIDI_OVERFLOW, BHS_BUFFER_OFFSET);
	if (bidi || task->data_out_length)
		out = first;
	else
		in = first;
	return Py_BuildValue("(iNOnLL)", status, sense, owner->result,
			     (Py_ssize_t)task->data_in_received, (long long)in, (long long)out);
}

static PyObject *answer_of(const struct iscsi_task *task)
{
	if (!task->answered)
		return Py_NewRef(Py_None);
	if (task->opcode == ISCSI_SCSI_COMMAND)
		return scsi_answer(task);
	return Py_BuildValue("(y#y#)", (const char *)task->response, (Py_ssize_t)ISCSI_BHS_LENGTH,
			     task->control ? (const char *)task->control : "",
			     (Py_ssize_t)task->control_length);
}

PyDoc_STRVAR(
	done_doc,
	"done()\n--\n\nWhat has finished since the last call: a list of (tag, answer).\n\n"
	"answer: None: the session failed first; of a SCSI command (status, sense, data_in, "
	"received,\n"
	"residual_in, residual_out), status -1: target failure; of other requests (header, data).");

static PyObject *session_done(PyObject *object, PyObject *Py_UNUSED(ignored))
{
	struct iscsi_session *s = check((struct session_object *)object);
	PyObject *list = s ? PyList_New(0) : NULL;
	struct iscsi_task *task;

	while (list && (task = iscsi_next_done(s))) {
		PyObject *answer = answer_of(task);
		PyObject *pair =
			answer ? Py_BuildValue("(kN)", (unsigned long)task->tag, answer) : NULL;

		if (!pair || PyList_Append(list, pair) < 0)
			Py_CLEAR(list);
		Py_XDECREF(pair);
		task_release(task);
	}
	return list;
}

PyDoc_STRVAR(messages_doc, "messages()\n--\n\nAsynchronous messages and rejects since the last "
			   "call: [(header, data)].");

static PyObject *session_messages(PyObject *object, PyObject *Py_UNUSED(ignored))
{
	struct iscsi_session *s = check((struct session_object *)object);
	PyObject *list = s ? PyList_New(0) : NULL;

	for (uint32_t i = 0; list && i < s->event_count; i++) {
		struct iscsi_event *event = &s->events[i];
		PyObject *pair = Py_BuildValue("(y#y#)", (const char *)event->bhs,
					       (Py_ssize_t)ISCSI_BHS_LENGTH,
					       event->data ? (const char *)event->data : "",
					       (Py_ssize_t)event->data_length);

		if (!pair || PyList_Append(list, pair) < 0)
			Py_CLEAR(list);
		Py_XDECREF(pair);
	}
	while (list && s->event_count)
		free(s->events[--s->event_count].data);
	return list;
}

/* ---- figures ------------------------------------------------------------------------------ */

static PyObject *get_bytes_sent(PyObject *object, void *Py_UNUSED(closure))
{
	const struct iscsi_session *s = ((struct session_object *)object)->session;

	return PyLong_FromUnsignedLongLong(s ? s->bytes_sent : 0);
}

static PyObject *get_bytes_received(PyObject *object, void *Py_UNUSED(closure))
{
	const struct iscsi_session *s = ((struct session_object *)object)->session;

	return PyLong_FromUnsignedLongLong(s ? s->bytes_received : 0);
}

static PyObject *get_outstanding(PyObject *object, void *Py_UNUSED(closure))
{
	const struct iscsi_session *s = ((struct session_object *)object)->session;

	return PyLong_FromUnsignedLong(s ? s->task_count : 0);
}

static PyGetSetDef session_getset[] = {
	{"bytes_sent", get_bytes_sent, NULL, "bytes this session put on its socket", NULL},
	{"bytes_received", get_bytes_received, NULL, "bytes this session took from its socket",
	 NULL},
	{"outstanding", get_outstanding, NULL, "requests without an answer", NULL},
	{0},
};

static PyMethodDef session_methods[] = {
	{"fileno", session_fileno, METH_NOARGS, fileno_doc},
	{"events", session_events, METH_NOARGS, events_doc},
	{"service", session_service, METH_NOARGS, service_doc},
	{"start", session_start, METH_VARARGS, start_doc},
	{"submit", session_submit, METH_VARARGS, submit_doc},
	{"request", session_request, METH_VARARGS, request_doc},
	{"command_number", session_command_number, METH_VARARGS, command_number_doc},
	{"done", session_done, METH_NOARGS, done_doc},
	{"messages", session_messages, METH_NOARGS, messages_doc},
	{"fail", session_fail, METH_NOARGS, fail_doc},
	{0},
};

PyDoc_STRVAR(session_doc,
	     "Session(fd, max_recv_segment, /)\n--\n\n"
	     "An iSCSI session over a connected socket, whose descriptor is borrowed.");

static PyType_Slot session_slots[] = {
	{Py_tp_doc, (void *)session_doc}, {Py_tp_new, session_new},
	{Py_tp_dealloc, session_dealloc}, {Py_tp_methods, session_methods},
	{Py_tp_getset, session_getset},	  {0, NULL},
};

PyType_Spec core_session_spec = {
	.name = "pyosd._core.Session",
	.basicsize = sizeof(struct session_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = session_slots,
};
