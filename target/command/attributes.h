/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attributes.h -- the get and set attributes parameters of a command: all three formats (CDBFMT
 * 1, 2, 3), set and get in one command, the Current Command page, all-attributes requests,
 * truncation.
 *
 * osd_attributes_load copies the lists out of Data-Out, which an initiator may change while a
 * command runs, and checks their form; only then anything is executed.  Set and get run inside
 * the caller's transaction and may run again after OSD_E_CONFLICT: get starts afresh each time. */
#ifndef OSD_COMMAND_ATTRIBUTES_H
#define OSD_COMMAND_ATTRIBUTES_H

#include "base/status.h"
#include "command/request.h"
#include "object/object.h"
#include "wire/attr_list.h"

struct osd_page_provider;

struct osd_attr_params {
	uint8_t format; /* OSD_CDBFMT_SET_ONE, _PAGE or _LIST */
	bool sets, gets;
	bool wants_capacity_change;    /* the get half asks for the Current Command page */
	bool current_only;	       /* all it asks for is that page: no transaction is needed */
	bool walks;		       /* too long for a thread that must not wait */
	/* Answers the get list from memory, object by object; NULL: read records.  Commands about
	 * many objects set it. */
	const struct osd_page_provider *peeks;
	bool only_peeks; /* OSD_E_WOULD_BLOCK instead of reading a record */
	struct osd_attr_list set_list; /* LIST; over copy */
	struct osd_attr set_one;       /* PAGE and SET_ONE; over copy or the decoded CDB */
	struct osd_attr_list get_list; /* LIST; over copy */
	uint32_t get_page;	       /* PAGE */
	/* What the set half names as the source of data (authorise.h), and when it was made; 0: anything. */
	struct osd_object_id source;
	uint64_t source_created_ms;
	uint8_t *copy;		       /* owned */
};

/* *ret_params NULL: the command has no attributes to set or get. */
enum osd_status osd_attributes_load(struct osd_request *request,
				    struct osd_attr_params **ret_params);
void osd_attributes_free(struct osd_attr_params *params);
/* Frees those of the request, which is finished, or will be dispatched from the start. */
void osd_attributes_forget(struct osd_request *request);

/* The attributes that a command sets, or gets, one after the other; OSD_NUMBER_ALL: a whole page.  params NULL: none. */
struct osd_attr_walk {
	struct osd_attr_list list;
	struct osd_attr one;
	bool has_one; /* it comes first */
};
struct osd_attr_walk osd_attributes_to_set(const struct osd_attr_params *params);
struct osd_attr_walk osd_attributes_to_get(const struct osd_attr_params *params);
bool osd_attr_walk_next(struct osd_attr_walk *walk, struct osd_attr *ret_attr);

/* Whether the set half names the attribute.  params NULL: no. */
bool osd_attributes_sets(const struct osd_attr_params *params, uint32_t page, uint32_t number);
/* Whether the entry gives an object or a partition a source. */
bool osd_attr_names_source(const struct osd_attr *attr);
/* One entry of the set half, applied to one object, which is no unfinished surrogate. */
enum osd_status osd_attributes_set_one(struct osd_request *request, struct osd_txn *txn,
				       struct osd_object_id id, const struct osd_attr *attr);
/* Makes the failure that of an attribute of the set half. */
enum osd_status osd_attributes_set_failed(struct osd_request *request, enum osd_status status,
					  const struct osd_attr *attr);
/* The set half, applied to one object.  unfinished: the object is an unfinished surrogate, which
 * takes the job control page only (OSD_E_JOB_IN_WAY for others). */
enum osd_status osd_attributes_set(struct osd_request *request, struct osd_txn *txn,
				   struct osd_object_id id, bool unfinished);
/* If all that is requested is a page that can be read from memory now (page_provider.h), returns it;
 * false: nothing is done. */
bool osd_attributes_peek(struct osd_request *request, const struct osd_objects *objects);
/* The get half, about one object, into the retrieved attributes segment of Data-In. */
enum osd_status osd_attributes_get(struct osd_request *request, struct osd_txn *txn,
				   struct osd_object_id id);

/* The same for the rest of the set half. */
enum osd_status osd_attributes_set_rest(struct osd_request *request, struct osd_txn *txn,
					struct osd_object_id id, bool unfinished,
					struct osd_attr_walk rest);

/* A retrieved list, of a type such as OSD_LIST_SET.  The command adds entries to it itself, and the requested ones
 * with osd_attributes_collect. */
void osd_attributes_list_begin(struct osd_request *request, uint8_t type,
			       struct osd_attr_writer *ret_writer);
void osd_attributes_list_end(struct osd_request *request, struct osd_attr_writer *writer);

/* For commands about many objects: a retrieved list with one group for each, type Eh. */
void osd_attributes_groups_begin(struct osd_request *request, struct osd_attr_writer *ret_writer);
enum osd_status osd_attributes_group(struct osd_request *request, struct osd_txn *txn,
				     struct osd_object_id id, struct osd_attr_writer *writer);

/* Accepts entries of a get list by their page. */
struct osd_page_filter {
	bool (*accepts)(enum osd_object_type type, uint32_t page);
	enum osd_object_type type;
};
/* The entries of the get list that the filter accepts, about one object, through an open
 * writer.  For LIST with attributes; filter NULL: all. */
enum osd_status osd_attributes_collect(struct osd_request *request, struct osd_txn *txn,
				       struct osd_object_id id,
				       const struct osd_page_filter *filter,
				       struct osd_attr_writer *writer);
/* A retrieved list (type 9) of the entries the filter accepts, in the retrieved attributes
 * segment. */
enum osd_status osd_attributes_get_filtered(struct osd_request *request, struct osd_txn *txn,
					    struct osd_object_id id,
					    const struct osd_page_filter *filter);

#endif
