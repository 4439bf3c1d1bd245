/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keyring.c -- see keys.h: opens and closes a keyring, and gives others its parts.  Keys in memory are in keys.c,
 * their changes in key_change.c, key exchanges in exchange.c, security policies in policy.c; these files do not
 * call this one. */
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"
#include "security/exchange.h"
#include "security/keys_impl.h"

/* ---- parts ----------------------------------------------------------------------------------- */

struct osd_exchanges *osd_keyring_exchanges(struct osd_keyring *keyring)
{
	return keyring->exchanges;
}

bool osd_keyring_is_open(const struct osd_keyring *keyring, uint64_t partition_id)
{
	return osd_policy_is_open(keyring->policies, partition_id);
}

static enum osd_status get_policy(struct osd_keyring *keyring, struct osd_txn *txn,
				  uint64_t partition_id, bool nowait, struct osd_policy *ret_policy)
{
	return txn ? osd_policy_get_in(keyring->policies, txn, partition_id, ret_policy)
		   : osd_keyring_policy(keyring, partition_id, nowait, ret_policy);
}

enum osd_status osd_keyring_policy_or_new(struct osd_keyring *keyring, struct osd_txn *txn,
					  uint64_t partition_id, bool nowait,
					  struct osd_policy *ret_policy)
{
	enum osd_status status = get_policy(keyring, txn, partition_id, nowait, ret_policy);

	if (status != OSD_E_NO_PARTITION)
		return status;
	status = get_policy(keyring, txn, 0, nowait, ret_policy);
	ret_policy->method = ret_policy->inside_method; /* that of a partition created now */
	return status;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void partition_gone(void *arg, uint64_t partition_id)
{
	osd_keyring_reload(arg, partition_id);
}

static struct osd_keyring *new_keyring(struct osd_objects *objects)
{
	struct osd_keyring *keyring = calloc(1, sizeof(*keyring));

	if (!keyring)
		return NULL;
	keyring->objects = objects;
	keyring->policies = osd_policies_new(objects);
	keyring->exchanges = osd_exchanges_new(keyring, OSD_EXCHANGE_SECONDS);
	if (osd_keys_init(keyring) && keyring->policies && keyring->exchanges)
		return keyring;
	osd_keyring_close(keyring);
	return NULL;
}

enum osd_status osd_keyring_open(struct osd_objects *objects, const char *master_key_file,
				 char message[256], struct osd_keyring **ret_keyring)
{
	struct osd_keyring *keyring = osd_crypto_init() ? new_keyring(objects) : NULL;
	enum osd_status status = OSD_E_NO_MEMORY;

	*message = '\0';
	if (keyring)
		status = osd_keyring_ready_seal(keyring, false);
	if (status == OSD_OK || status == OSD_E_NO_OBJECT)
		status = osd_keys_load(keyring, message);
	if (status == OSD_OK)
		status = osd_keyring_take_up(keyring, master_key_file, message);
	if (status != OSD_OK) {
		if (!*message)
			snprintf(message, 256, "cannot load the store's secret keys: %s",
				 osd_status_info(status)->meaning);
		osd_keyring_close(keyring);
		return status;
	}
	osd_objects_watch_partitions(objects, partition_gone, keyring);
	*ret_keyring = keyring;
	return OSD_OK;
}

void osd_keyring_close(struct osd_keyring *keyring)
{
	if (!keyring)
		return;
	osd_keys_release(keyring);
	osd_exchanges_free(keyring->exchanges);
	osd_policies_free(keyring->policies);
	free(keyring);
}
