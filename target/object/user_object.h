/* SPDX-License-Identifier: GPL-2.0-or-later */
/* user_object.h -- data of user objects: a part of object.h, which has the rules of these calls.  They take no
 * transaction. */
#ifndef OSD_OBJECT_USER_OBJECT_H
#define OSD_OBJECT_USER_OBJECT_H

#include "object/object.h"

#define OSD_JOB_RESERVE_BYTES (64u << 10)

enum osd_data_flags {
	OSD_DATA_NO_TIMESTAMPS = 1,
	OSD_DATA_FUA = 2, /* durable before return */
	OSD_DATA_NOWAIT =
		4, /* read only: OSD_E_WOULD_BLOCK instead of waiting for a lock or a disk */
	/* Output of surrogates: the first OSD_JOB_RESERVE_BYTES may come from the job reserve,
	 * whatever quotas say. */
	OSD_DATA_RESERVE = 8,
	OSD_DATA_CHECKED = 16, /* the checks of the object were asked (hooks.h) */
};

/* A reference to the user object, which the caller puts; it stays good when the object is removed, and
 * then is answered OSD_E_NO_OBJECT. */
enum osd_status osd_object_get(struct osd_objects *objects, struct osd_object_id id,
			       struct osd_object **ret_object);
/* The same if the object is in memory, else OSD_E_WOULD_BLOCK: never waits for a disk. */
enum osd_status osd_object_get_cached(struct osd_objects *objects, struct osd_object_id id,
				      struct osd_object **ret_object);
/* osd_surrogate_marked, as committed, of an open object: no client may change it. */
bool osd_object_is_unfinished(struct osd_object *object);
void osd_object_put(struct osd_object *object); /* NULL is fine */

/* The properties that capabilities are compared with. */
struct osd_object_facts {
	struct osd_object_id id;
	enum osd_object_type type;
	uint32_t tag;	     /* policy access tag; 0 of the root */
	uint64_t created_ms; /* 0 of the root, and of what is to be made */
	uint16_t boot_epoch; /* the store's */
	bool surrogate;	     /* it was made as that of a job */
	bool to_be_made;     /* as it will be */
	bool missing;	     /* there is none: type may be several or'ed, the rest means nothing */
};
/* Of an open object, from memory; tag as without with_tag below. */
void osd_object_facts(struct osd_object *object, struct osd_object_facts *ret_facts);
/* The same by id, from memory, or from the record if necessary.  Not inside a transaction, as osd_object_get.
 * with_tag: read the tag even if it is not in memory.  It is not for partitions, and for objects in a
 * store of the first release; without with_tag it is 0 there.  ret_object may be NULL; for a user object
 * it receives a reference. */
enum osd_status osd_objects_find(struct osd_objects *objects, struct osd_object_id id,
				 bool with_tag, struct osd_object **ret_object,
				 struct osd_object_facts *ret_facts);
static inline enum osd_status osd_objects_facts(struct osd_objects *objects,
						struct osd_object_id id, bool with_tag,
						struct osd_object_facts *ret_facts)
{
	return osd_objects_find(objects, id, with_tag, NULL, ret_facts);
}
/* As of the transaction. */
enum osd_status osd_txn_facts(struct osd_txn *txn, struct osd_object_id id, bool with_tag,
			      struct osd_object_facts *ret_facts);
/* OSD_E_NO_OBJECT: what has the id was not created then; 0: any may have it. */
enum osd_status osd_txn_same(struct osd_txn *txn, struct osd_object_id id, uint64_t created_ms);
/* Of an object that is about to be made in the partition; OSD_E_NO_PARTITION. */
enum osd_status osd_objects_facts_made(struct osd_objects *objects, enum osd_object_type type,
				       struct osd_object_id id, struct osd_object_facts *ret_facts);
OSD_DEFINE_CLEANUP(struct osd_object *, osd_object_put)
/* Reads up to length bytes; *ret_read < length where the object ends.  OSD_OK either way. */
enum osd_status osd_object_read(struct osd_object *object, uint64_t offset, void *buffer,
				size_t length, unsigned flags, size_t *ret_read);
/* The version that data are read with.  OSD_E_VERSION: it is not the wanted one, and nothing is read. */
struct osd_version_check {
	const struct osd_data_version *wanted; /* borrowed; NULL: any */
	struct osd_data_version found;	       /* of the bytes read */
	uint64_t length;		       /* of the object then */
};
enum osd_status osd_object_read_with(struct osd_object *object, uint64_t offset, void *buffer,
				     size_t length, unsigned flags, struct osd_version_check *check,
				     size_t *ret_read);
/* A range of the object.  In the buffer, the bytes of a piece follow those of the piece before. */
struct osd_piece {
	uint64_t offset, length;
};
/* Reads all pieces as of one moment.  Each piece has its slot in the buffer, with zeros after the end
 * of the object.  Slots beyond capacity are left out.  *ret_available: the number of bytes of all
 * pieces that the object has.  check may be NULL. */
enum osd_status osd_object_read_pieces(struct osd_object *object, const struct osd_piece *pieces,
				       size_t count, void *buffer, size_t capacity, unsigned flags,
				       struct osd_version_check *check, uint64_t *ret_available);
/* Changes.  Offsets and lengths are in bytes, flags are of enum osd_data_flags.  Each change is atomic.
 * truncate: cuts or extends. */
enum osd_status osd_object_write(struct osd_object *object, uint64_t offset, const void *data,
				 size_t length, unsigned flags);
enum osd_status osd_object_truncate(struct osd_object *object, uint64_t length, unsigned flags);
/* Callbacks of a long PUNCH, before each piece that it moves. */
struct osd_change_steps {
	/* bytes: the size of the next piece.  False: the change ends with OSD_E_TASK_ABORTED, and the
	 * object is unchanged. */
	bool (*go_on)(void *arg, uint64_t bytes);
	/* Called before a wait for the disk; may be NULL. */
	void (*rest)(void *arg);
	void *arg;
};

/* The description of a change.  It is atomic, whatever its size and the number of its pieces. */
enum osd_change_kind {
	OSD_CHANGE_WRITE,  /* pieces, data */
	OSD_CHANGE_APPEND, /* data, length */
	OSD_CHANGE_CLEAR,  /* offset, length: zeros; extends an object that ends before them */
	/* offset, length: takes the range out; the bytes after it move up.  OSD_E_BEYOND_END: offset > length of
	 * the object */
	OSD_CHANGE_PUNCH,
	/* data, length: all bytes are replaced.  After a crash, the object has the old ones or the new ones. */
	OSD_CHANGE_REPLACE,
};
struct osd_change {
	enum osd_change_kind kind;
	unsigned flags; /* enum osd_data_flags */
	uint64_t offset, length;
	const struct osd_piece *pieces; /* borrowed, in the order in which they are written */
	size_t piece_count;
	const void *data; /* borrowed; the pieces' bytes back to back */
	const struct osd_change_steps *steps; /* borrowed; NULL: it runs through */
	/* The version that the data must have, else OSD_E_VERSION and no change; borrowed; NULL: any.
	 * A new length that is about to take effect is another version. */
	const struct osd_data_version *wanted;
	uint64_t least; /* bytes that the object must have, else the same */
	/* Results */
	uint64_t start; /* where APPEND began */
	int64_t growth; /* of the length */
	bool changed;			 /* false: there was nothing to do */
	struct osd_data_version before, version; /* before and after it, if changed */
};
enum osd_status osd_object_change(struct osd_object *object, struct osd_change *change);
/* osd_object_truncate to change->length, with change->flags and the results changed, before and version. */
enum osd_status osd_object_truncate_with(struct osd_object *object, struct osd_change *change);

/* A change of data together with changes of records (NULL: of none), atomic as a whole. fn is called in txn before the
 * data changes (done false): it sets attributes, and checks whether the attributes to get can be read.
 * It is called again after the change (done true) and gets them.  If fn or the change fails, nothing
 * has changed.  Both calls may be repeated after OSD_E_CONFLICT. */
struct osd_change_with {
	unsigned txn_flags;
	enum osd_status (*fn)(void *arg, struct osd_txn *txn, bool done);
	void *arg;
};
enum osd_status osd_object_change_with(struct osd_object *object, struct osd_change *change,
				       const struct osd_change_with *with);
/* The head size: bytes from here on are in the tail.  UINT64_MAX: there is no tail. */
uint64_t osd_object_head_bytes(struct osd_object *object);
enum osd_status osd_object_length(struct osd_object *object, uint64_t *ret_length);
/* The length and the version of one moment: waits for changes under way. */
enum osd_status osd_object_state(struct osd_object *object, uint64_t *ret_length,
				 struct osd_data_version *ret_version);
/* The same; OSD_E_WOULD_BLOCK: a change is under way. */
enum osd_status osd_object_state_at_once(struct osd_object *object, uint64_t *ret_length,
					 struct osd_data_version *ret_version);
enum osd_map_type {
	OSD_MAP_ALL = 0x0000, /* asked for only */
	OSD_MAP_DATA = 0x0001,
	OSD_MAP_HOLE = 0x0002,
	OSD_MAP_DAMAGED_DATA = 0x0003,
	OSD_MAP_DAMAGED_ATTRIBUTES = 0x8000,
};
struct osd_extent {
	enum osd_map_type type;
	uint64_t offset, length;
};
/* False ends the walk.  It must not call this layer. */
typedef bool osd_map_fn(void *arg, const struct osd_extent *extent);
/* Calls fn for data, holes and known damage from offset to the end, in order.  No write changes the
 * object meanwhile.  Damaged attributes have length 0.  OSD_E_BEYOND_END: offset is beyond the end of
 * the object. */
enum osd_status osd_object_map(struct osd_object *object, uint64_t offset, osd_map_fn *fn,
			       void *arg);
/* Its data may be those of its source. */
enum osd_status osd_object_flush(struct osd_object *object);
/* Everything in the partition (or, id (0,0), in the store): data, directories, log. */
enum osd_status osd_objects_flush(struct osd_objects *objects, struct osd_object_id id);

/* ---- descriptors for sandboxes ------------------------------------------------------------- */

/* Read-only descriptors for a sandbox.  The caller owns and closes the descriptors. */
struct osd_share {
	int head_fd;	/* bytes [0, head_bytes); -1: the object has no data yet */
	int tail_fd;	/* bytes [head_bytes, ...), or -1 */
	/* 4 KiB memfd with native 64-bit numbers.  At 0: the version, odd while a write runs.  At 8: the
	 * logical length.  At 16: nonzero once the object is removed.  At 24: the generation of the
	 * files; once it changes, these files are no longer the object's, and holders ask again. */
	int version_fd;
	uint64_t head_bytes; /* UINT64_MAX: everything is in the head file */
	uint64_t length;
	struct osd_data_version data_version; /* of the data now */
};
/* The number of bytes of a tail that are read ahead into the kernel's cache. */
#define OSD_SHARE_AHEAD_BYTES (16 << 20)
/* OSD_E_UNSUPPORTED: this store has no descriptors (in memory); read through osd_object_read. */
enum osd_status osd_object_share(struct osd_object *object, struct osd_share *ret_share);
/* Ends an osd_object_share. */
void osd_object_unshare(struct osd_object *object);

#endif
