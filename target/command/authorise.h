/* SPDX-License-Identifier: GPL-2.0-or-later */
/* authorise.h -- may the command do what its CDB says, to every object it touches?  (osd2-wire 6.3 and 6.9
 * from step 7 on.)  The request has been admitted: its capability is genuine, and its method enough for the
 * partition addressed.  Each question is put to security/decide.h.
 *
 * The object that the CDB names must be what the capability names.  Objects that the command reaches
 * through it (members, objects listed) need the same policy access tag.  Further objects (a source, a
 * collection of matches), and members that the tag does not cover, may be permitted by extension
 * capabilities instead, which come in the continuation segment. */
#ifndef OSD_COMMAND_AUTHORISE_H
#define OSD_COMMAND_AUTHORISE_H

#include "command/context.h"

/* Decodes and verifies the extension capabilities, and loads what attributes they may touch; none is
 * fine.  No transaction is open.  OSD_E_CDB_FIELD at 48. */
enum osd_status osd_authorise_extensions(const struct osd_checker *checker,
					 struct osd_objects *objects, struct osd_request *request,
					 const struct osd_continuation *continuation);
/* Frees them. */
void osd_authorise_release(struct osd_request_security *security);
/* The command on the object addressed.  No transaction is open.  OSD_E_WOULD_BLOCK: with nowait only. */
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

/* What a command does with attributes of an object that is not the one addressed. */
enum osd_uses {
	OSD_USES_NONE,
	OSD_USES_LISTS, /* those in the command's lists */
	OSD_USES_ALL,	/* any */
};
/* Another object; it need not exist.  The least method of its partition is asked where that is not the
 * one addressed, without a capability too.  No transaction is open. */
enum osd_status osd_authorise_other(struct osd_command_context *ctx, struct osd_object_id id,
				    enum osd_object_type type, uint16_t permissions,
				    enum osd_uses uses);
/* Attributes that the command touches and no list of it names, such as those in criteria: are they among
 * those that the CDB's capability may touch?  No transaction is open. */
struct osd_touched {
	uint32_t page, number;
};
enum osd_status osd_authorise_touched(struct osd_objects *objects, struct osd_request *request,
				      const struct osd_touched *touched, size_t count);
/* What the set list needs of each member that it is applied to. */
struct osd_access osd_authorise_sets_access(const struct osd_request *request);
/* Whether all that the lists name is among what a capability may touch. */
struct osd_allowed;
bool osd_authorise_lists(const struct osd_request *request, const struct osd_allowed *allowed);

/* For QUERY: whether matches may have to be left out at all; whether tags are compared; and whether one
 * is seen, inside the transaction that found it. */
bool osd_authorise_limits(const struct osd_request *request);
bool osd_authorise_by_tag(const struct osd_request *request);
enum osd_status osd_authorise_sees(void *request, struct osd_txn *txn,
				   const struct osd_object_facts *facts, bool *ret_sees);
/* Whether an object of the partition addressed that is reached through the one addressed may be touched;
 * where not it is skipped. */
enum osd_status osd_authorise_inside(struct osd_request *request, struct osd_txn *txn,
				     struct osd_object_id id, struct osd_access access,
				     bool *ret_permitted);
/* LIST with attributes: whether those of an object listed may be told, which may be another partition
 * with a least method of its own. */
enum osd_status osd_authorise_listed(struct osd_command_context *ctx, struct osd_object_id id,
				     bool *ret_permitted);

#endif
