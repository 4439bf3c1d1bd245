/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_store.h -- a store in a folder of its own, with a keyring, for tests of keys. */
#ifndef OSD_SECURITY_TEST_STORE_H
#define OSD_SECURITY_TEST_STORE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/test.h"
#include "object/test_support.h"
#include "security/keys.h"
#include "security/local_keys.h"
#include "wire/capability.h"

struct store {
	char directory[64], master[96], local[96];
	struct osd_objects *objects;
	struct osd_keyring *keyring;
	uint8_t method;
};

/* local: with keys of the local administrator. */
static inline void open_store(struct store *store, bool local)
{
	struct osd_objects_config config = {
		.directory = store->directory, .method = store->method};
	char message[256];

	OK(osd_objects_open(&config, message, &store->objects));
	OK(osd_keyring_open(store->objects, store->master, message, &store->keyring));
	if (local)
		OK(osd_local_keys_open(store->keyring, store->local, message));
}

static inline void close_store(struct store *store)
{
	osd_keyring_close(store->keyring);
	osd_objects_close(store->objects);
}

static inline void reopen(struct store *store, bool local)
{
	close_store(store);
	open_store(store, local);
}

static inline void make_store_of(struct store *store, uint8_t method, bool local)
{
	store->method = method;
	test_folder(store->directory, sizeof(store->directory));
	snprintf(store->master, sizeof(store->master), "%s/master.key", store->directory);
	snprintf(store->local, sizeof(store->local), "%s/local.key", store->directory);
	open_store(store, local);
}

static inline void remove_store(struct store *store)
{
	close_store(store);
	test_folder_remove(store->directory);
}

static inline struct osd_txn *begin(struct store *store)
{
	struct osd_txn *txn;

	OK(osd_txn_begin(store->objects, OSD_TXN_INTERNAL, &txn));
	return txn;
}

#endif
