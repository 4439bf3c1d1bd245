/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keys.c -- secret keys in memory (keys_impl.h).  Memory holds the authentication keys only; generation keys are read when a
 * key is derived.  After a commit that changed keys, or removed a partition, the keys of the
 * partition are read again, by one reader at a time.  So after two concurrent changes, the second
 * reader sees both.  Locks: keyring->loading, held while records are read; then keyring->lock, for
 * a few instructions. */
#include "security/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/util.h"
#include "security/keys_impl.h"
#include "security/secret.h"

#define CHUNK_BYTES   (64u << 10)
#define CHUNK_HOLDERS (CHUNK_BYTES / sizeof(struct holder))

/* The index of a key in its holder: master and root are in the holder for the whole store, the
 * others in that of their partition. */
enum { SLOT_MASTER = 0, SLOT_ROOT = 1, SLOT_PARTITION = 2, SLOT_WORKING = 3 };
#define SLOTS (SLOT_WORKING + OSD_KEY_VERSIONS)

struct holder {
	struct holder *next; /* in its bucket, or unused */
	uint64_t partition_id;
	uint32_t known; /* bit n: slot n */
	uint16_t frozen;
	uint8_t keys[SLOTS][OSD_MAC_LENGTH];
};

struct chunk {
	struct chunk *next;
	struct holder *holders; /* owned: CHUNK_BYTES of secret memory */
};

/* ---- holders ----------------------------------------------------------------------------- */

static struct holder **bucket_of(struct osd_keyring *keyring, uint64_t partition_id)
{
	return &keyring->buckets[(partition_id * UINT64_C(0x9e3779b97f4a7c15) >> 32) %
				 OSD_KEY_BUCKETS];
}

static bool add_chunk(struct osd_keyring *keyring)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk));

	if (!chunk)
		return false;
	chunk->holders = osd_secret_alloc(CHUNK_BYTES);
	if (!chunk->holders) {
		free(chunk);
		return false;
	}
	for (size_t i = 0; i < CHUNK_HOLDERS; i++) {
		chunk->holders[i].next = keyring->unused;
		keyring->unused = &chunk->holders[i];
	}
	chunk->next = keyring->chunks;
	keyring->chunks = chunk;
	return true;
}

/* Under loading.  NULL: out of memory. */
static struct holder *new_holder(struct osd_keyring *keyring, uint64_t partition_id)
{
	struct holder *holder;

	if (!keyring->unused && !add_chunk(keyring))
		return NULL;
	holder = keyring->unused;
	keyring->unused = holder->next;
	*holder = (struct holder){.partition_id = partition_id};
	return holder;
}

/* Under loading; NULL is fine. */
static void free_holder(struct osd_keyring *keyring, struct holder *holder)
{
	if (!holder)
		return;
	explicit_bzero(holder, sizeof(*holder));
	holder->next = keyring->unused;
	keyring->unused = holder;
}

/* keyring->lock is held, except while the keyring is being opened. */
static struct holder *find(struct osd_keyring *keyring, uint64_t partition_id)
{
	struct holder *holder = *bucket_of(keyring, partition_id);

	while (holder && holder->partition_id != partition_id)
		holder = holder->next;
	return holder;
}

/* Under loading.  Replaces the present holder of the partition; holder NULL: only removes it. */
static void replace(struct osd_keyring *keyring, uint64_t partition_id, struct holder *holder)
{
	struct holder **link = bucket_of(keyring, partition_id), *old;

	osd_write_lock(&keyring->lock);
	while (*link && (*link)->partition_id != partition_id)
		link = &(*link)->next;
	old = *link;
	if (old)
		*link = old->next;
	if (holder) {
		holder->frozen = old ? old->frozen : 0;
		holder->next = *bucket_of(keyring, partition_id);
		*bucket_of(keyring, partition_id) = holder;
	}
	osd_rw_unlock(&keyring->lock);
	free_holder(keyring, old);
}

/* ---- from records to memory -------------------------------------------------------------- */

static unsigned slot_of(enum osd_key_level level, unsigned version)
{
	switch (level) {
	case OSD_KEY_MASTER:
		return SLOT_MASTER;
	case OSD_KEY_ROOT:
		return SLOT_ROOT;
	case OSD_KEY_PARTITION:
		return SLOT_PARTITION;
	default:
		return SLOT_WORKING + version % OSD_KEY_VERSIONS;
	}
}

uint64_t osd_keys_holder(enum osd_key_level level, uint64_t partition_id)
{
	return level == OSD_KEY_MASTER || level == OSD_KEY_ROOT ? OSD_KEYS_ABOVE : partition_id;
}

static enum osd_status keep(struct osd_keyring *keyring, struct holder *holder,
			    const struct osd_key_name *name, const struct osd_key_record *record)
{
	unsigned slot = slot_of(name->level, name->version);
	struct osd_key_pair key;
	enum osd_status status =
		keyring->seal ? osd_key_unseal(keyring->seal, name, record, &key) : OSD_E_MEDIUM;

	if (status != OSD_OK)
		return status;
	memcpy(holder->keys[slot], key.authentication, OSD_MAC_LENGTH);
	holder->known |= 1u << slot;
	explicit_bzero(&key, sizeof(key));
	return OSD_OK;
}

static enum osd_status load_one(struct osd_keyring *keyring, struct osd_txn *txn,
				struct holder *holder, enum osd_key_level level, uint8_t version)
{
	bool all = holder->partition_id == OSD_KEYS_ABOVE;
	struct osd_key_name name = {level, all ? 0 : holder->partition_id, version};
	struct osd_key_record record;
	enum osd_status status = osd_key_record_get(txn, &name, &record);

	if (status == OSD_OK)
		status = keep(keyring, holder, &name, &record);
	return osd_status_is_gone(status) ? OSD_OK : status;
}

static enum osd_status load_keys(struct osd_keyring *keyring, struct holder *holder)
{
	OSD_CLEANUP(osd_txn_abortp) struct osd_txn *txn = NULL;
	bool all = holder->partition_id == OSD_KEYS_ABOVE;
	enum osd_status status =
		osd_txn_begin(keyring->objects, OSD_TXN_READ_ONLY | OSD_TXN_NO_TIMESTAMPS, &txn);

	if (status == OSD_OK)
		status =
			load_one(keyring, txn, holder, all ? OSD_KEY_MASTER : OSD_KEY_PARTITION, 0);
	if (status == OSD_OK && all)
		status = load_one(keyring, txn, holder, OSD_KEY_ROOT, 0);
	for (uint8_t i = 0; status == OSD_OK && !all && i < OSD_KEY_VERSIONS; i++)
		status = load_one(keyring, txn, holder, OSD_KEY_WORKING, i);
	return status;
}

/* Under loading. */
static enum osd_status read_anew(struct osd_keyring *keyring, uint64_t partition_id,
				 struct holder **ret_holder)
{
	struct holder *holder = new_holder(keyring, partition_id);
	enum osd_status status = holder ? load_keys(keyring, holder) : OSD_E_NO_MEMORY;

	if (status != OSD_OK || !holder->known) {
		free_holder(keyring, holder);
		holder = NULL;
	}
	*ret_holder = holder;
	return status;
}

/* Keys that cannot be read, even at the third try, count as absent: every request that needs them
 * is refused. */
static void reload(struct osd_keyring *keyring, uint64_t partition_id)
{
	struct holder *holder = NULL;
	enum osd_status status = OSD_E_CONFLICT;

	osd_lock(&keyring->loading);
	for (unsigned i = 0; status != OSD_OK && i < 3; i++)
		status = read_anew(keyring, partition_id, &holder);
	replace(keyring, partition_id, holder);
	osd_unlock(&keyring->loading);
	if (status != OSD_OK)
		osd_error("cannot read secret keys: %s", osd_status_info(status)->meaning);
}

/* The lowest partition id from `from` on in a bucket; false: there is none. */
static bool next_in(struct osd_keyring *keyring, size_t bucket, uint64_t from, uint64_t *ret_id)
{
	bool found = false;

	osd_read_lock(&keyring->lock);
	for (struct holder *holder = keyring->buckets[bucket]; holder; holder = holder->next) {
		if (holder->partition_id < from || (found && holder->partition_id > *ret_id))
			continue;
		*ret_id = holder->partition_id;
		found = true;
	}
	osd_rw_unlock(&keyring->lock);
	return found;
}

/* Reloads all partitions that have keys in memory. */
static void reload_all(struct osd_keyring *keyring)
{
	for (size_t i = 0; i < OSD_KEY_BUCKETS; i++) {
		uint64_t id = 0;

		for (uint64_t from = 0; next_in(keyring, i, from, &id) && id != OSD_KEYS_ABOVE;
		     from = id + 1)
			reload(keyring, id);
	}
	reload(keyring, OSD_KEYS_ABOVE);
}

void osd_keyring_reload(struct osd_keyring *keyring, uint64_t partition_id)
{
	if (partition_id == OSD_KEYS_ABOVE)
		reload_all(keyring);
	else
		reload(keyring, partition_id);
}

/* ---- for those who check ----------------------------------------------------------------- */

void osd_keyring_secret(struct osd_keyring *keyring, enum osd_key_level level,
			uint64_t partition_id, unsigned version, struct osd_secret *ret_secret)
{
	unsigned slot = slot_of(level, version);
	const struct holder *holder;
	uint8_t mask;

	osd_read_lock(&keyring->lock);
	holder = find(keyring, osd_keys_holder(level, partition_id));
	if (!holder)
		holder = keyring->nobody;
	ret_secret->known = holder->known >> slot & (version < OSD_KEY_VERSIONS);
	ret_secret->frozen = level == OSD_KEY_WORKING && holder->frozen >> version % 16 & 1;
	mask = (uint8_t)-ret_secret->known;
	for (size_t i = 0; i < OSD_MAC_LENGTH; i++)
		ret_secret->key[i] = (holder->keys[slot][i] & mask) |
				     (keyring->nobody->keys[slot][i] & (uint8_t)~mask);
	osd_rw_unlock(&keyring->lock);
}

enum osd_status osd_keyring_policy(struct osd_keyring *keyring, uint64_t partition_id, bool nowait,
				   struct osd_policy *ret_policy)
{
	enum osd_status status =
		osd_policy_get(keyring->policies, partition_id, nowait, ret_policy);
	struct holder *holder;
	bool stale;

	if (status != OSD_OK)
		return status;
	osd_read_lock(&keyring->lock);
	holder = find(keyring, partition_id);
	stale = holder && holder->frozen != ret_policy->frozen;
	osd_rw_unlock(&keyring->lock);
	if (!stale)
		return OSD_OK;
	osd_write_lock(&keyring->lock);
	holder = find(keyring, partition_id);
	if (holder)
		holder->frozen = ret_policy->frozen;
	osd_rw_unlock(&keyring->lock);
	return OSD_OK;
}

/* ---- opening and closing ----------------------------------------------------------------- */

enum osd_status osd_keyring_ready_seal(struct osd_keyring *keyring, bool create)
{
	uint8_t seal[OSD_SEAL_BYTES];
	enum osd_status status;

	if (keyring->seal)
		return OSD_OK;
	status = osd_objects_seal(keyring->objects, create, seal);
	if (status != OSD_OK)
		return status;
	keyring->seal = osd_secret_alloc(sizeof(seal));
	if (keyring->seal)
		memcpy(keyring->seal, seal, sizeof(seal));
	explicit_bzero(seal, sizeof(seal));
	return keyring->seal ? OSD_OK : OSD_E_NO_MEMORY;
}

struct loading {
	struct osd_keyring *keyring;
	enum osd_status status;
};

static bool load(void *arg, const struct osd_key_name *name, const struct osd_key_record *record)
{
	struct loading *loading = arg;
	struct osd_keyring *keyring = loading->keyring;
	uint64_t id = osd_keys_holder(name->level, name->partition_id);
	struct holder *holder = find(keyring, id);

	if (!holder) {
		holder = new_holder(keyring, id);
		if (holder)
			replace(keyring, id, holder);
	}
	loading->status = holder ? keep(keyring, holder, name, record) : OSD_E_NO_MEMORY;
	return loading->status == OSD_OK;
}

enum osd_status osd_keys_load(struct osd_keyring *keyring, char message[256])
{
	OSD_CLEANUP(osd_txn_abortp) struct osd_txn *txn = NULL;
	struct loading loading = {keyring, OSD_OK};
	enum osd_status status =
		osd_txn_begin(keyring->objects, OSD_TXN_READ_ONLY | OSD_TXN_NO_TIMESTAMPS, &txn);

	if (status == OSD_OK)
		status = osd_key_record_each(txn, load, &loading);
	if (status != OSD_OK)
		return status;
	if (loading.status == OSD_E_MEDIUM)
		snprintf(message, 256,
			 "the store's secret keys do not open with its file 'seal' "
			 "(mode 0600): restore the file");
	return loading.status;
}

bool osd_keys_init(struct osd_keyring *keyring)
{
	osd_lock_init(&keyring->loading, OSD_RANK_KEYS_LOADING);
	osd_rwlock_init(&keyring->lock, OSD_RANK_KEYRING);
	keyring->nobody = new_holder(keyring, OSD_KEYS_ABOVE);
	if (keyring->nobody)
		osd_random_bytes(keyring->nobody->keys, sizeof(keyring->nobody->keys));
	return keyring->nobody;
}

void osd_keys_release(struct osd_keyring *keyring)
{
	while (keyring->chunks) {
		struct chunk *chunk = keyring->chunks;

		keyring->chunks = chunk->next;
		osd_secret_free(chunk->holders, CHUNK_BYTES);
		free(chunk);
	}
	osd_secret_free(keyring->seal, OSD_SEAL_BYTES);
	osd_rwlock_destroy(&keyring->lock);
	osd_lock_destroy(&keyring->loading);
}
