/* SPDX-License-Identifier: GPL-2.0-or-later */
/* authorise.h -- whether the command may do what its CDB requests, to every object that it touches
 * (osd2-wire 6.3 and 6.9 from step 7 on).  The request has been admitted: its capability is
 * genuine, and its method is sufficient for the partition addressed.  security/decide.h answers
 * each question.  The capability must name the object that the CDB names.  Objects reached through
 * it (members, listed objects) need the same policy access tag.  Extension capabilities, which come
 * in the continuation segment, may permit further objects (a source, a collection of matches), and
 * members with another tag. */
#ifndef OSD_COMMAND_AUTHORISE_H
#define OSD_COMMAND_AUTHORISE_H

#include "command/context.h"

/* Decodes and verifies the extension capabilities, if any, and loads the attributes that they may
 * touch.  No transaction is open.  OSD_E_CDB_FIELD at 48. */
enum osd_status osd_authorise_extensions(const struct osd_checker *checker,
					 struct osd_command_context *ctx);
/* Frees them. */
void osd_authorise_release(struct osd_request_security *security);
/* The command on the object addressed; fills ctx->facts.  No transaction is open.
 * OSD_E_WOULD_BLOCK: with OSD_DATA_NOWAIT only. */
enum osd_status osd_authorise(struct osd_command_context *ctx);
/* Checks the attributes parameters further: SET_ATTR and GET_ATTR were checked by the CDB alone,
 * this checks the contents of the lists.  OSD_E_WOULD_BLOCK as above. */
enum osd_status osd_authorise_attributes(struct osd_command_context *ctx);
/* Checks the objects whose data or names attributes to set would make others see. */
enum osd_status osd_authorise_sources(struct osd_command_context *ctx);

/* In ctx->txn: checks that the object addressed is still the one that was authorised. */
enum osd_status osd_authorise_again(struct osd_command_context *ctx);
/* Whether a command that may have pieces is authorised without its range, which osd_authorise_range compares
 * later: also one whose segment has no list of pieces. */
static inline bool osd_authorise_by_pieces(const struct osd_cdb *cdb)
{
	return cdb->continuation_length || cdb->data_distribution;
}
/* Checks a part of the data that the CDB's own range does not give. */
enum osd_status osd_authorise_range(struct osd_command_context *ctx, uint64_t start,
				    uint64_t length);

/* How a command uses attributes of an object other than the addressed one. */
enum osd_uses {
	OSD_USES_NONE,
	OSD_USES_LISTS, /* those in the command's lists */
	OSD_USES_ALL,	/* any */
};
/* Checks another object.  OSD_E_NO_OBJECT: it would be permitted, but there is none; one that is made meanwhile was not
 * checked.  A user object with id 0 stands for all in the partition.  If it is in another partition, that partition's
 * least method applies, even without a capability.  No transaction is open.  ret_object: NULL, or it receives a
 * reference to the user object that was checked, also if the check fails. */
enum osd_status osd_authorise_other(struct osd_command_context *ctx, struct osd_object_id id,
				    enum osd_object_type type, uint16_t permissions,
				    enum osd_uses uses, struct osd_object **ret_object);
/* An attribute that the command touches although no list names it, such as one in criteria:
 * checks that the CDB's capability may touch it.  No transaction is open. */
enum osd_status osd_authorise_touched(struct osd_objects *objects, struct osd_request *request,
				      uint32_t page, uint32_t number);
/* The access that the set list needs on each member that it is applied to. */
struct osd_access osd_authorise_sets_access(const struct osd_request *request);

/* For QUERY: whether tags are compared; and, unless the grant is open, whether one match is visible,
 * inside the transaction that found it. */
bool osd_authorise_by_tag(const struct osd_request *request);
enum osd_status osd_authorise_sees(void *request, struct osd_txn *txn,
				   const struct osd_object_facts *facts, bool *ret_sees);
/* Whether the command may touch an object of the addressed partition that it reaches through the
 * addressed object; otherwise it skips the object. */
enum osd_status osd_authorise_inside(struct osd_request *request, struct osd_txn *txn,
				     struct osd_object_id id, struct osd_access access,
				     bool *ret_permitted);
/* LIST with attributes: whether the attributes of a listed object may be returned.  The object may
 * be another partition, with its own least method. */
enum osd_status osd_authorise_listed(struct osd_command_context *ctx, struct osd_object_id id,
				     bool *ret_permitted);

#endif
