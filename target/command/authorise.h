/* SPDX-License-Identifier: GPL-2.0-or-later */
/* authorise.h -- may the command do what its CDB says, to every object it touches?  (osd2-wire 6.3 and 6.9
 * from step 7 on.)  The request has been admitted: its capability is genuine.
 *
 * The object that the CDB names must be what the capability names.  Objects that the command reaches
 * through it (members, objects listed) need the same policy access tag.  Further objects (a source, a
 * collection of matches), and members that the tag does not cover, may be permitted by extension
 * capabilities instead, which come in the continuation segment. */
#ifndef OSD_COMMAND_AUTHORISE_H
#define OSD_COMMAND_AUTHORISE_H

#include "command/context.h"

/* Decodes and verifies the extension capabilities; none is fine.  OSD_E_CDB_FIELD at 48. */
enum osd_status osd_authorise_extensions(const struct osd_checker *checker,
					 struct osd_request *request,
					 const struct osd_continuation *continuation);
/* The command on the object addressed.  No transaction is open.  OSD_E_RETRY: with nowait only. */
enum osd_status osd_authorise(struct osd_objects *objects, struct osd_request *request,
			      bool nowait);
/* What the attributes parameters need beyond that: SET_ATTR and GET_ATTR were checked as far as the CDB
 * tells, lists tell the rest.  nowait as above. */
enum osd_status osd_authorise_attributes(struct osd_objects *objects, struct osd_request *request,
					 bool nowait);

/* For command functions.  The object addressed is still the one that was authorised: */
enum osd_status osd_authorise_again(struct osd_request *request, struct osd_txn *txn);
/* Opens the object addressed, which is the one that was authorised; nowait: only from memory. */
enum osd_status osd_authorise_open(struct osd_command_context *ctx, bool nowait,
				   struct osd_object **ret_object);
/* A part of the data, where the CDB's own range says nothing of it. */
enum osd_status osd_authorise_range(struct osd_request *request, uint64_t start, uint64_t length);
/* Another object; it need not exist.  No transaction is open. */
enum osd_status osd_authorise_other(struct osd_command_context *ctx, struct osd_object_id id,
				    enum osd_object_type type, uint16_t permissions);
/* For QUERY: whether objects reached through the one addressed may have to be left out at all, and whether
 * one is to be. */
bool osd_authorise_limits(const struct osd_request *request);
bool osd_authorise_sees(void *request, const struct osd_object_facts *facts);
/* Whether an object that is reached through the one addressed may be touched; where not it is skipped. */
enum osd_status osd_authorise_inside(struct osd_request *request, struct osd_txn *txn,
				     struct osd_object_id id, uint16_t permissions,
				     bool *ret_permitted);

#endif
