/* SPDX-License-Identifier: GPL-2.0-or-later */
/* submission.h -- what EXEC and EXECUTE FUNCTION have in common: the parameters of a job, and its way to exec/.  At the
 * end of a synchronous job they become command data and sense. */
#ifndef OSD_COMMAND_SUBMISSION_H
#define OSD_COMMAND_SUBMISSION_H

#include "command/context.h"
#include "exec/exec.h"
#include "function/function.h"
#include "wire/exec_param.h"

/* Decodes the descriptor EXEC PARAMETERS; *params is zeroed without one. */
enum osd_status osd_submission_params(struct osd_command_context *ctx,
				      struct osd_exec_params *params);
/* Puts the parameters into the submission, which borrows from them. */
void osd_submission_fill(struct osd_exec_submission *submission,
			 const struct osd_exec_params *params);
/* Puts in what a call of the function takes from it: its id and signer, engine, pool and name unless there are others,
 * and limits, its own and its signer's, where they are less.  The submission borrows from the function. */
void osd_submission_call(struct osd_exec_submission *submission,
			 const struct osd_function *function);
/* Submits the job on behalf of the command; the command returns what this returns.  The submission has everything but
 * zone, grant, principal, done. */
enum osd_status osd_submission_send(struct osd_command_context *ctx,
				    struct osd_exec_submission *submission);
/* The same if an earlier job answers without waiting, else OSD_E_WOULD_BLOCK (osd_exec_answer_at_once). */
enum osd_status osd_submission_at_once(struct osd_command_context *ctx,
				       struct osd_exec_submission *submission);

/* A plain call by the target itself, on data or a change of the zone: it takes its arguments as bytes, and has no access.
 * wall_usec: the most that it runs; its own limits count, too.  0: these alone.  Borrows from function and code. */
struct osd_exec_submission osd_submission_own(const struct osd_function *function,
					      struct osd_function_code *code, const char *method,
					      struct osd_object_id zone, uint64_t wall_usec);
/* Submits it.  fault: informed about a full queue; NULL: none. */
enum osd_status osd_submission_send_own(struct osd_exec *exec,
					const struct osd_exec_submission *submission,
					struct osd_fault *fault);
/* How a function of a command itself has ended.  The removal of its partition ends it: the answer is then that of a command
 * which comes after the removal. */
enum osd_status osd_submission_outcome(const struct osd_exec_outcome *outcome);

/* The principal that is charged for functions on data of a client with this key (struct osd_principal). NULL:
 * clients without a capability cannot be distinguished, and would wait for each other. */
const char *osd_submission_payer(const char *key);

#endif
