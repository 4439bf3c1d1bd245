/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_key_threads.c -- many threads at once: keys that are read while they change and partitions go, and
 * nonces of which each is taken once. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/test.h"
#include "security/nonce.h"
#include "wire/cursor.h"

#define TAKERS	   4
#define NONCES	   2000
#define CHANGES	   60
#define PARTITIONS 3

static struct osd_objects *objects;
static struct osd_keyring *keyring;
static struct osd_nonces *nonces;
static _Atomic bool stop;
static _Atomic unsigned taken[NONCES];
static uint64_t now_ms, first_id;

/* ---- nonces ------------------------------------------------------------------------------ */

static void *take_all(void *arg)
{
	uint8_t nonce[OSD_NONCE_LENGTH];

	for (size_t i = 0; i < NONCES; i++) {
		size_t which = arg ? i : NONCES - 1 - i;

		osd_put_be(nonce, now_ms + which % 1500, 6); /* beyond what is covered, too */
		osd_put_be(nonce + 6, which, 6);
		if (osd_nonces_take(nonces, 0, nonce, now_ms, false) == OSD_OK)
			atomic_fetch_add(&taken[which], 1);
	}
	return NULL;
}

static void test_nonces(void)
{
	pthread_t threads[TAKERS];

	for (size_t i = 0; i < TAKERS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, take_all, (void *)(i % 2)), 0);
	for (size_t i = 0; i < TAKERS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < NONCES; i++)
		CHECK_EQ(atomic_load(&taken[i]), 1);
}

/* ---- keys -------------------------------------------------------------------------------- */

/* A key that is known is whole: it is one that was set. */
static bool is_one_of(const uint8_t key[OSD_MAC_LENGTH], uint8_t all[][OSD_MAC_LENGTH])
{
	for (size_t i = 0; i < 2; i++)
		if (osd_mac_equal(key, all[i]))
			return true;
	return false;
}

static enum osd_status set(enum osd_key_level level, uint64_t partition_id, uint8_t seed_byte)
{
	static const uint8_t identifier[OSD_KEY_IDENTIFIER];
	struct osd_key_name name = {level, partition_id, 0};
	uint8_t seed[OSD_SEED_LENGTH];
	enum osd_status status;

	memset(seed, seed_byte, sizeof(seed));
	for (unsigned i = 0; i <= OSD_TXN_RETRIES; i++) {
		struct osd_txn *txn;

		OK(osd_txn_begin(objects, OSD_TXN_INTERNAL, &txn));
		status = osd_keyring_set(keyring, txn, &name, OSD_HMAC_SHA256, identifier, seed);
		if (status == OSD_OK)
			status = osd_txn_commit(txn, OSD_COMMIT_PROCESS);
		else
			osd_txn_abort(txn);
		if (status != OSD_E_CONFLICT)
			break;
	}
	return status;
}

static uint8_t roots[2][OSD_MAC_LENGTH];

static void *read_keys(void *arg)
{
	uint64_t id = first_id + (uintptr_t)arg % PARTITIONS;
	struct osd_policy policy;
	struct osd_secret secret;

	while (!atomic_load(&stop)) {
		osd_keyring_secret(keyring, OSD_KEY_ROOT, 0, 0, &secret);
		CHECK(secret.known && is_one_of(secret.key, roots));
		osd_keyring_secret(keyring, OSD_KEY_PARTITION, id, 0, &secret);
		(void)osd_keyring_policy(keyring, id, false, &policy); /* it may be gone */
	}
	return NULL;
}

static void make_partition(uint64_t wanted, uint64_t *ret_id)
{
	struct osd_txn *txn;

	OK(osd_txn_begin(objects, OSD_TXN_INTERNAL, &txn));
	OK(osd_partition_create(txn, wanted, ret_id));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
}

static void remake_partition(uint64_t id)
{
	struct osd_txn *txn;

	OK(osd_txn_begin(objects, OSD_TXN_INTERNAL, &txn));
	OK(osd_partition_remove(txn, id, true));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	make_partition(id, &id);
}

static void *change_partitions(void *arg)
{
	struct osd_secret secret;

	(void)arg;
	for (unsigned i = 0; i < CHANGES; i++) {
		uint64_t id = first_id + i % PARTITIONS;

		OK(set(OSD_KEY_PARTITION, id, (uint8_t)i));
		remake_partition(id);
		osd_keyring_secret(keyring, OSD_KEY_PARTITION, id, 0, &secret);
		CHECK(!secret.known);
	}
	return NULL;
}

static void test_changes(void)
{
	pthread_t readers[3], changer;
	struct osd_secret secret;

	for (size_t i = 0; i < 2; i++) {
		OK(set(OSD_KEY_ROOT, 0, (uint8_t)i));
		osd_keyring_secret(keyring, OSD_KEY_ROOT, 0, 0, &secret);
		memcpy(roots[i], secret.key, OSD_MAC_LENGTH);
	}
	for (uint64_t i = 0, id = 0; i < PARTITIONS; i++) {
		make_partition(0, &id);
		first_id = id - i;
	}
	for (size_t i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&readers[i], NULL, read_keys, (void *)i), 0);
	CHECK_EQ(pthread_create(&changer, NULL, change_partitions, NULL), 0);
	for (unsigned i = 0; i < CHANGES; i++)
		OK(set(OSD_KEY_ROOT, 0, (uint8_t)(i % 2)));
	pthread_join(changer, NULL);
	atomic_store(&stop, true);
	for (size_t i = 0; i < 3; i++)
		pthread_join(readers[i], NULL);
}

static void put_master(void)
{
	static const uint8_t identifier[OSD_KEY_IDENTIFIER];
	static const struct osd_key_pair key = {{1}, {2}};
	struct osd_txn *txn;

	OK(osd_txn_begin(objects, OSD_TXN_INTERNAL, &txn));
	OK(osd_keyring_set_master(keyring, txn, identifier, &key));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
}

int main(void)
{
	struct osd_objects_config config = {0}; /* in memory */
	char message[256];

	osd_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), "test", OSD_LOG_WARNING);
	OK(osd_objects_open(&config, message, &objects));
	OK(osd_keyring_open(objects, NULL, message, &keyring));
	OK(osd_nonces_open(objects, keyring, &nonces));
	now_ms = osd_wall_msec();
	put_master();
	test_nonces();
	test_changes();
	osd_nonces_close(nonces);
	osd_keyring_close(keyring);
	osd_objects_close(objects);
	return 0;
}
