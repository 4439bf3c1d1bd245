/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_keys.c -- the keyring: what a new key makes invalid, partitions that go and come, restarts, the
 * first master key, and memory that core files leave out. */
#include "security/keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/test.h"
#include "security/exchange.h"
#include "security/test_store.h"
#include "testing/stores.h"

static const uint8_t seeds[2][OSD_SEED_LENGTH] = {"a seed of twenty by.", "another of twenty b."};
static const uint8_t names[2][OSD_KEY_IDENTIFIER] = {"first..", "second."};

static unsigned callocs_left; /* the last of them fails; 0: none does */

/* In place of the library's. */
void *calloc(size_t count, size_t size)
{
	void *bytes = callocs_left && --callocs_left == 0 ? NULL : malloc(count * size);

	return bytes ? memset(bytes, 0, count * size) : NULL;
}

static void make_store(struct store *store)
{
	make_store_of(store, OSD_NOSEC, false);
}

/* ---- steps ------------------------------------------------------------------------------- */

static uint64_t make_partition(struct store *store, uint64_t wanted)
{
	uint64_t id;

	OK(test_partition(store->objects, wanted, &id));
	return id;
}

static void remove_partition(struct store *store, uint64_t id)
{
	enum osd_status status;

	do {
		struct osd_txn *txn = begin(store);

		status = test_end(txn, osd_partition_remove(txn, id, true));
	} while (status == OSD_E_CONFLICT);
	OK(status);
}

static enum osd_status set(struct store *store, enum osd_key_level level, uint64_t partition_id,
			   uint8_t version, unsigned seed)
{
	struct osd_key_name name = {level, partition_id, version};
	enum osd_status status;

	do {
		struct osd_txn *txn = begin(store);

		status = test_end(txn, osd_keyring_set(store->keyring, txn, &name, OSD_HMAC_SHA256,
						       names[seed], seeds[seed]));
	} while (status == OSD_E_CONFLICT);
	return status;
}

static bool known(struct store *store, enum osd_key_level level, uint64_t partition_id,
		  unsigned version)
{
	struct osd_secret secret;

	osd_keyring_secret(store->keyring, level, partition_id, version, &secret);
	return secret.known;
}

/* Length of a key identifier, whose first byte is checked. */
static size_t identifier(struct store *store, uint64_t partition_id, uint32_t number, char first)
{
	uint32_t page = partition_id ? 0x30000005 : 0x90000005;
	struct osd_txn *txn;
	uint8_t value[16];
	size_t length;

	OK(osd_txn_begin(store->objects, OSD_TXN_READ_ONLY, &txn));
	OK(osd_attr_get(txn, (struct osd_object_id){partition_id, 0}, page, number, value,
			sizeof(value), &length));
	osd_txn_abort(txn);
	if (length)
		CHECK_EQ(value[0], first);
	return length;
}

static void set_all(struct store *store, uint64_t pid)
{
	OK(set(store, OSD_KEY_ROOT, 0, 0, 0));
	OK(set(store, OSD_KEY_PARTITION, 0, 0, 0));
	OK(set(store, OSD_KEY_PARTITION, pid, 0, 0));
	OK(set(store, OSD_KEY_WORKING, 0, 3, 0));
	for (uint8_t version = 0; version < OSD_KEY_VERSIONS; version++)
		OK(set(store, OSD_KEY_WORKING, pid, version, 0));
}

/* ---- tests ------------------------------------------------------------------------------- */

static void test_levels(struct store *store)
{
	uint64_t pid = make_partition(store, 0), other = make_partition(store, 0);
	struct osd_secret first, second;

	CHECK(known(store, OSD_KEY_MASTER, 0, 0));
	CHECK_EQ(identifier(store, 0, 0x7ffd, 'i'), 7);
	CHECK_EQ(set(store, OSD_KEY_PARTITION, pid, 0, 0), OSD_E_NO_OBJECT); /* no root key */
	set_all(store, pid);
	CHECK_EQ(set(store, OSD_KEY_WORKING, other, 0, 0), OSD_E_NO_OBJECT);
	CHECK_EQ(set(store, OSD_KEY_PARTITION, pid + 99, 0, 0), OSD_E_NO_PARTITION);
	CHECK(known(store, OSD_KEY_ROOT, 0, 0) && known(store, OSD_KEY_PARTITION, 0, 0));
	for (unsigned version = 0; version < OSD_KEY_VERSIONS; version++) {
		CHECK(known(store, OSD_KEY_WORKING, pid, version));
		CHECK_EQ(known(store, OSD_KEY_WORKING, 0, version), version == 3);
		CHECK(!known(store, OSD_KEY_WORKING, other, version));
		CHECK_EQ(identifier(store, pid, 0x8000 + version, 'f'), 7);
	}
	CHECK(!known(store, OSD_KEY_WORKING, pid, OSD_KEY_VERSIONS));
	CHECK_EQ(identifier(store, 0, 0x8003, 'f'), 7);
	CHECK_EQ(identifier(store, 0, 0x8004, 'f'), 0);

	/* The same seed gives the same key; a new one another, and nothing else changes. */
	osd_keyring_secret(store->keyring, OSD_KEY_WORKING, pid, 1, &first);
	OK(set(store, OSD_KEY_WORKING, pid, 1, 0));
	osd_keyring_secret(store->keyring, OSD_KEY_WORKING, pid, 1, &second);
	CHECK(osd_mac_equal(first.key, second.key));
	OK(set(store, OSD_KEY_WORKING, pid, 1, 1));
	osd_keyring_secret(store->keyring, OSD_KEY_WORKING, pid, 1, &second);
	CHECK(!osd_mac_equal(first.key, second.key) && known(store, OSD_KEY_WORKING, pid, 2));
	CHECK_EQ(identifier(store, pid, 0x8001, 's'), 7);

	/* A new partition key: its working keys are no more, those of others are. */
	OK(set(store, OSD_KEY_PARTITION, pid, 0, 1));
	CHECK(!known(store, OSD_KEY_WORKING, pid, 2) && known(store, OSD_KEY_PARTITION, pid, 0));
	CHECK_EQ(identifier(store, pid, 0x8002, 'f'), 0);
	CHECK(known(store, OSD_KEY_WORKING, 0, 3));
	OK(set(store, OSD_KEY_ROOT, 0, 0, 1));
	CHECK(!known(store, OSD_KEY_PARTITION, pid, 0) && !known(store, OSD_KEY_WORKING, 0, 3) &&
	      !known(store, OSD_KEY_PARTITION, 0, 0) && known(store, OSD_KEY_MASTER, 0, 0));
	CHECK_EQ(identifier(store, pid, 0x7fff, 's'), 0);
}

/* What nobody has is the same each time, and not zero. */
static void test_nobody(struct store *store)
{
	static const uint8_t zeros[OSD_MAC_LENGTH];
	struct osd_secret a, b;

	osd_keyring_secret(store->keyring, OSD_KEY_WORKING, 0x77777, 5, &a);
	osd_keyring_secret(store->keyring, OSD_KEY_WORKING, 0x88888, 5, &b);
	CHECK(!a.known && !b.known && osd_mac_equal(a.key, b.key));
	CHECK(!osd_mac_equal(a.key, zeros));
}

static void test_partitions_go(struct store *store)
{
	uint64_t pid = make_partition(store, 0);

	set_all(store, pid);
	remove_partition(store, pid);
	CHECK(!known(store, OSD_KEY_WORKING, pid, 0) && !known(store, OSD_KEY_PARTITION, pid, 0));
	CHECK_EQ(make_partition(store, pid), pid);
	CHECK(!known(store, OSD_KEY_WORKING, pid, 0));
	CHECK_EQ(identifier(store, pid, 0x8000, 'f'), 0);
	CHECK_EQ(set(store, OSD_KEY_WORKING, pid, 0, 0), OSD_E_NO_OBJECT);
	close_store(store);
	open_store(store, false);
	CHECK(!known(store, OSD_KEY_WORKING, pid, 0) && known(store, OSD_KEY_WORKING, 0, 3));
}

static void test_restart_and_format(struct store *store)
{
	uint64_t pid = make_partition(store, 0);
	struct osd_secret before, after;

	set_all(store, pid);
	osd_keyring_secret(store->keyring, OSD_KEY_WORKING, pid, 15, &before);
	close_store(store);
	unlink(store->master); /* once is enough */
	open_store(store, false);
	CHECK(access(store->master, F_OK) != 0);
	osd_keyring_secret(store->keyring, OSD_KEY_WORKING, pid, 15, &after);
	CHECK(after.known && osd_mac_equal(before.key, after.key));

	OK(osd_objects_format(store->objects, 0));
	CHECK(!known(store, OSD_KEY_WORKING, pid, 15) && !known(store, OSD_KEY_PARTITION, pid, 0));
	CHECK(known(store, OSD_KEY_MASTER, 0, 0) && known(store, OSD_KEY_ROOT, 0, 0) &&
	      known(store, OSD_KEY_PARTITION, 0, 0) && known(store, OSD_KEY_WORKING, 0, 3));
	CHECK_EQ(identifier(store, 0, 0x7ffe, 'f'), 7);
	close_store(store);
	open_store(store, false);
	CHECK(known(store, OSD_KEY_WORKING, 0, 3) && !known(store, OSD_KEY_WORKING, pid, 15));
}

static void test_master(struct store *store)
{
	static const struct osd_mac_input shared = {"what both computed", 18};
	struct osd_key_pair key;
	struct osd_secret secret;
	struct osd_txn *txn = begin(store);

	OK(osd_keyring_next_master(store->keyring, txn, OSD_HMAC_SHA256, shared, &key));
	OK(osd_keyring_set_master(store->keyring, txn, names[0], &key));
	osd_keyring_secret(store->keyring, OSD_KEY_MASTER, 0, 0, &secret);
	CHECK(!osd_mac_equal(secret.key, key.authentication)); /* not yet */
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	osd_keyring_secret(store->keyring, OSD_KEY_MASTER, 0, 0, &secret);
	CHECK(osd_mac_equal(secret.key, key.authentication));
	CHECK(!known(store, OSD_KEY_ROOT, 0, 0) && !known(store, OSD_KEY_WORKING, 0, 3));
	CHECK_EQ(identifier(store, 0, 0x7ffd, 'f'), 7);
}

/* ---- SET MASTER KEY ---------------------------------------------------------------------- */

static enum osd_status begin_exchange(struct store *store, uint64_t nexus, const uint8_t *theirs,
				      uint8_t ours[OSD_DH_MAX])
{
	struct osd_txn *txn = begin(store);
	enum osd_status status = osd_exchange_begin(osd_keyring_exchanges(store->keyring), txn,
						    nexus, 14, OSD_HMAC_SHA256, theirs, ours);

	osd_txn_abort(txn);
	return status;
}

static enum osd_status end_exchange(struct store *store, uint64_t nexus, unsigned group,
				    const uint8_t *theirs, const uint8_t *ours)
{
	struct osd_txn *txn = begin(store);
	enum osd_status status = osd_exchange_end(osd_keyring_exchanges(store->keyring), txn, nexus,
						  group, theirs, ours, names[1]);

	if (status == OSD_OK)
		return osd_txn_commit(txn, OSD_COMMIT_PROCESS);
	osd_txn_abort(txn);
	return status;
}

static void test_exchange(struct store *store)
{
	uint8_t theirs[OSD_DH_MAX] = {0}, ours[OSD_DH_MAX], other[OSD_DH_MAX];
	size_t length = osd_dh_length(14);
	struct osd_secret pending, secret;

	theirs[length - 1] = 1; /* degenerate, as is 0 */
	CHECK_EQ(begin_exchange(store, 1, theirs, ours), OSD_E_PARAM_FIELD);
	theirs[length - 1] = 0;
	CHECK_EQ(begin_exchange(store, 1, theirs, ours), OSD_E_PARAM_FIELD);
	memset(theirs, 0xff, sizeof(theirs)); /* more than p */
	CHECK_EQ(begin_exchange(store, 1, theirs, ours), OSD_E_PARAM_FIELD);
	CHECK(!osd_exchange_pending(osd_keyring_exchanges(store->keyring), 1, &pending));
	CHECK_EQ(end_exchange(store, 1, 14, theirs, ours), OSD_E_SEQUENCE);

	theirs[0] = 0x12;
	OK(begin_exchange(store, 1, theirs, other));
	OK(begin_exchange(store, 1, theirs, ours)); /* the first is void */
	CHECK(memcmp(other, ours, length) != 0);
	CHECK_EQ(end_exchange(store, 1, 14, theirs, other), OSD_E_PARAM_FIELD);
	CHECK_EQ(end_exchange(store, 1, 15, theirs, ours), OSD_E_PARAM_FIELD);
	CHECK_EQ(end_exchange(store, 2, 14, theirs, ours), OSD_E_SEQUENCE);
	CHECK(osd_exchange_pending(osd_keyring_exchanges(store->keyring), 1, &pending));
	OK(end_exchange(store, 1, 14, theirs, ours));
	osd_keyring_secret(store->keyring, OSD_KEY_MASTER, 0, 0, &secret);
	CHECK(osd_mac_equal(pending.key, secret.key));
	CHECK(!osd_exchange_pending(osd_keyring_exchanges(store->keyring), 1, &pending));
	CHECK_EQ(identifier(store, 0, 0x7ffd, 's'), 7);

	for (uint64_t nexus = 10; nexus < 30; nexus++) /* more than there is room for */
		OK(begin_exchange(store, nexus, theirs, ours));
	CHECK(!osd_exchange_pending(osd_keyring_exchanges(store->keyring), 10, &pending));
	OK(end_exchange(store, 29, 14, theirs, ours));
}

/* Whichever allocation fails, the key is as it was, and nothing is freed twice. */
static void test_no_memory(struct store *store)
{
	static const struct osd_key_name name = {OSD_KEY_ROOT, 0, 0};
	uint8_t theirs[OSD_DH_MAX] = {0x12}, ours[OSD_DH_MAX];
	enum osd_status status = OSD_E_NO_MEMORY;

	for (unsigned n = 1; status == OSD_E_NO_MEMORY; n++) {
		struct osd_txn *txn = begin(store);

		callocs_left = n;
		status = osd_keyring_set(store->keyring, txn, &name, OSD_HMAC_SHA256, names[1],
					 seeds[1]);
		callocs_left = 0;
		osd_txn_abort(txn);
	}
	OK(status);
	OK(begin_exchange(store, 1, theirs, ours));
	status = OSD_E_NO_MEMORY;
	for (unsigned n = 1; status == OSD_E_NO_MEMORY; n++) {
		struct osd_txn *txn = begin(store);

		callocs_left = n;
		status = osd_exchange_end(osd_keyring_exchanges(store->keyring), txn, 1, 14, theirs,
					  ours, names[1]);
		callocs_left = 0;
		osd_txn_abort(txn);
	}
	OK(status);
}

/* Of exchanges that may take no time at all. */
static void test_exchange_too_late(struct store *store)
{
	struct osd_exchanges *exchanges = osd_exchanges_new(store->keyring, 0);
	uint8_t theirs[OSD_DH_MAX] = {0x12}, ours[OSD_DH_MAX];
	struct osd_secret pending;
	struct osd_txn *txn = begin(store);

	OK(osd_exchange_begin(exchanges, txn, 1, 15, OSD_HMAC_SHA1, theirs, ours));
	CHECK(!osd_exchange_pending(exchanges, 1, &pending));
	CHECK_EQ(osd_exchange_end(exchanges, txn, 1, 15, theirs, ours, names[0]), OSD_E_SEQUENCE);
	osd_txn_abort(txn);
	osd_exchanges_free(exchanges);
}

static void test_frozen(struct store *store)
{
	uint64_t pid = make_partition(store, 0);
	struct osd_object_id partition = {pid, 0};
	struct osd_policy policy;
	struct osd_secret secret;
	struct osd_txn *txn;

	set_all(store, pid);
	OK(osd_keyring_policy(store->keyring, pid, false, &policy));
	CHECK_EQ(policy.frozen, 0);
	CHECK_EQ(policy.oldest_ms, 60000);
	OK(osd_keyring_policy(store->keyring, pid, true, &policy)); /* from memory */
	txn = begin(store);
	OK(osd_attr_set(txn, partition, 0x30000005, 5, (const uint8_t *)"\x80\x01", 2));
	OK(osd_attr_set(txn, partition, 0x30000005, 2, (const uint8_t *)"\0\0\0\0\x13\x88", 6));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	OK(osd_keyring_policy(store->keyring, pid, false, &policy));
	CHECK(policy.frozen == 0x8001 && policy.oldest_ms == 5000 && policy.newest_ms == 10000);
	for (unsigned version = 0; version < OSD_KEY_VERSIONS; version++) {
		osd_keyring_secret(store->keyring, OSD_KEY_WORKING, pid, version, &secret);
		CHECK_EQ(secret.frozen, version == 0 || version == 15);
	}
	txn = begin(store); /* the root bounds it */
	OK(osd_attr_set(txn, (struct osd_object_id){0, 0}, 0x90000005, 2,
			(const uint8_t *)"\0\0\0\0\x07\xd0", 6));
	CHECK_EQ(
		osd_attr_set(txn, partition, 0x30000005, 2, (const uint8_t *)"\0\0\0\0\x07\xd1", 6),
		OSD_E_PARAM_FIELD);
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	OK(osd_keyring_policy(store->keyring, pid, false, &policy));
	CHECK_EQ(policy.oldest_ms, 2000);
}

/* ---- a store that fails ------------------------------------------------------------------ */

/* What memory knows is what the store has, also where a call failed. */
static bool agree(struct store *store, enum osd_key_level level, uint64_t partition_id,
		  uint8_t version)
{
	struct osd_key_name name = {level, partition_id, version};
	struct osd_key_record record;
	enum osd_status status = OSD_E_INTERNAL;

	for (unsigned i = 0; i < 2 && status != OSD_OK && status != OSD_E_NO_OBJECT; i++) {
		struct osd_txn *txn;

		OK(osd_txn_begin(store->objects, OSD_TXN_READ_ONLY, &txn));
		status = osd_key_record_get(txn, &name, &record);
		osd_txn_abort(txn);
	}
	return known(store, level, partition_id, version) == (status == OSD_OK);
}

/* False: it got as far as the call that fails. */
static bool set_with_fault(uint64_t fault_at)
{
	const struct osd_test_stores faults = {.fault_at = fault_at};
	struct osd_objects_config config = {.test = &faults};
	static const struct osd_key_pair master = {{1}, {2}};
	struct store store = {0};
	char message[256];
	struct osd_txn *txn;
	uint64_t pid = 0;
	bool all = true;

	OK(osd_objects_open(&config, message, &store.objects));
	if (osd_keyring_open(store.objects, NULL, message, &store.keyring) != OSD_OK) {
		osd_objects_close(store.objects);
		return false;
	}
	txn = begin(&store);
	all = osd_keyring_set_master(store.keyring, txn, names[0], &master) == OSD_OK &&
	      osd_partition_create(txn, 0, &pid) == OSD_OK;
	if (all)
		all = osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK;
	else
		osd_txn_abort(txn);
	CHECK(agree(&store, OSD_KEY_MASTER, 0, 0));
	for (unsigned round = 0; all && round < 2; round++) {
		all = set(&store, OSD_KEY_ROOT, 0, 0, round) == OSD_OK && all;
		CHECK(agree(&store, OSD_KEY_ROOT, 0, 0));
		CHECK(agree(&store, OSD_KEY_WORKING, pid, 0));
		all = set(&store, OSD_KEY_PARTITION, pid, 0, round) == OSD_OK && all;
		CHECK(agree(&store, OSD_KEY_PARTITION, pid, 0));
		all = set(&store, OSD_KEY_WORKING, pid, 0, round) == OSD_OK && all;
		CHECK(agree(&store, OSD_KEY_WORKING, pid, 0));
	}
	close_store(&store);
	return all;
}

static void test_faults(void)
{
	uint64_t fault_at = 1;
	unsigned good = 0;

	while (good < 40 && fault_at < 1000) /* those that fail but are tried again count as good */
		good = set_with_fault(fault_at++) ? good + 1 : 0;
	CHECK(fault_at > 60 && fault_at < 1000);
}

/* ---- the first master key ---------------------------------------------------------------- */

static void check_refused(struct store *store, const char *why)
{
	struct osd_objects_config config = {0}; /* in memory: no master key */
	struct osd_keyring *keyring;
	struct osd_objects *objects;
	char message[256];

	OK(osd_objects_open(&config, message, &objects));
	CHECK(osd_keyring_open(objects, store->master, message, &keyring) != OSD_OK);
	if (!strstr(message, why))
		fprintf(stderr, "%s\n", message);
	CHECK(strstr(message, why) != NULL);
	osd_objects_close(objects);
}

static void test_bootstrap(struct store *store)
{
	struct stat st;
	int fd;

	OK(stat(store->master, &st));
	CHECK_EQ(st.st_mode & 0777, 0600);
	check_refused(store, "another store");
	chmod(store->master, 0640);
	check_refused(store, "mode 0600");
	chmod(store->master, 0600);
	OK(truncate(store->master, 100));
	check_refused(store, "needs the lines");
	fd = open(store->master, O_WRONLY | O_TRUNC);
	CHECK_EQ(write(fd, "hello\n", 6), 6);
	close(fd);
	check_refused(store, "does not begin");
	unlink(store->master);
	OK(symlink("/dev/zero", store->master));
	check_refused(store, "symbolic");
	unlink(store->master);
}

static void test_lost_seal(struct store *store)
{
	struct osd_objects_config config = {.directory = store->directory};
	struct osd_keyring *keyring;
	char message[256], seal[96];

	close_store(store);
	snprintf(seal, sizeof(seal), "%s/seal", store->directory);
	OK(rename(seal, store->master));
	OK(osd_objects_open(&config, message, &store->objects));
	CHECK_EQ(osd_keyring_open(store->objects, NULL, message, &keyring), OSD_E_MEDIUM);
	CHECK(strstr(message, "seal") != NULL);
	osd_objects_close(store->objects);
	OK(rename(store->master, seal));
	open_store(store, false);
}

int main(void)
{
	struct store store;

	osd_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), "test_keys", OSD_LOG_WARNING);
	make_store(&store);
	test_bootstrap(&store);
	test_levels(&store);
	test_nobody(&store);
	test_partitions_go(&store);
	test_restart_and_format(&store);
	test_frozen(&store);
	test_master(&store);
	test_exchange(&store);
	test_exchange_too_late(&store);
	test_no_memory(&store);
	test_lost_seal(&store);
	test_faults();
	remove_store(&store);
	return 0;
}
