/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exchange.c -- see exchange.h. */
#include "security/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/util.h"
#include "security/secret.h"

#define EXCHANGES 8 /* at a time; a new one replaces the oldest */

struct exchange {
	uint64_t nexus, deadline_usec; /* monotonic; 0: free */
	unsigned group;
	uint8_t theirs[OSD_DH_MAX], ours[OSD_DH_MAX];
	struct osd_key_pair key;
};

struct osd_exchanges {
	struct osd_keyring *keyring;
	uint64_t limit_usec;
	struct osd_lock lock;
	struct exchange *list; /* under lock; EXCHANGES in secret memory */
};

struct osd_exchanges *osd_exchanges_new(struct osd_keyring *keyring, unsigned seconds)
{
	struct osd_exchanges *exchanges = calloc(1, sizeof(*exchanges));

	if (!exchanges)
		return NULL;
	exchanges->keyring = keyring;
	exchanges->limit_usec = seconds * UINT64_C(1000000);
	exchanges->list = osd_secret_alloc(EXCHANGES * sizeof(*exchanges->list));
	if (!exchanges->list) {
		free(exchanges);
		return NULL;
	}
	osd_lock_init(&exchanges->lock, OSD_RANK_EXCHANGES);
	return exchanges;
}

void osd_exchanges_free(struct osd_exchanges *exchanges)
{
	if (!exchanges)
		return;
	osd_secret_free(exchanges->list, EXCHANGES * sizeof(*exchanges->list));
	osd_lock_destroy(&exchanges->lock);
	free(exchanges);
}

/* Under lock, as all below.  Wipes the exchanges that have timed out. */
static struct exchange *find(struct osd_exchanges *exchanges, uint64_t nexus)
{
	uint64_t now = osd_monotonic_usec();
	struct exchange *found = NULL;

	osd_assert_held(&exchanges->lock);
	for (size_t i = 0; i < EXCHANGES; i++) {
		struct exchange *exchange = &exchanges->list[i];

		if (exchange->deadline_usec && exchange->deadline_usec <= now)
			explicit_bzero(exchange, sizeof(*exchange));
		if (exchange->deadline_usec && exchange->nexus == nexus)
			found = exchange;
	}
	return found;
}

/* The exchange of the nexus, else a free one, whose deadline is 0, else the oldest. */
static struct exchange *place_for(struct osd_exchanges *exchanges, uint64_t nexus)
{
	struct exchange *place = find(exchanges, nexus);

	if (place)
		return place;
	place = &exchanges->list[0];
	for (size_t i = 1; i < EXCHANGES; i++)
		if (exchanges->list[i].deadline_usec < place->deadline_usec)
			place = &exchanges->list[i];
	return place;
}

/* The exponent and the shared secret, in secret memory while they are needed. */
struct work {
	uint8_t exponent[OSD_DH_EXPONENT], shared[OSD_DH_MAX];
	struct osd_key_pair key;
};

enum osd_status osd_exchange_begin(struct osd_exchanges *exchanges, struct osd_txn *txn,
				   uint64_t nexus, unsigned group, enum osd_mac_algorithm algorithm,
				   const uint8_t *theirs, uint8_t *ours)
{
	size_t length = osd_dh_length(group);
	struct work *work = osd_secret_alloc(sizeof(*work));
	struct exchange *exchange;
	enum osd_status status;

	if (!work)
		return OSD_E_NO_MEMORY;
	osd_random_bytes(work->exponent, sizeof(work->exponent));
	status = osd_dh_answer(group, work->exponent, sizeof(work->exponent), theirs, ours,
			       work->shared);
	if (status == OSD_OK)
		status = osd_keyring_next_master(exchanges->keyring, txn, algorithm,
						 (struct osd_mac_input){work->shared, length},
						 &work->key);
	if (status == OSD_OK) {
		osd_lock(&exchanges->lock);
		exchange = place_for(exchanges, nexus);
		exchange->nexus = nexus;
		exchange->deadline_usec = osd_monotonic_usec() + exchanges->limit_usec;
		exchange->group = group;
		memcpy(exchange->theirs, theirs, length);
		memcpy(exchange->ours, ours, length);
		exchange->key = work->key;
		osd_unlock(&exchanges->lock);
	}
	osd_secret_free(work, sizeof(*work));
	return status;
}

bool osd_exchange_pending(struct osd_exchanges *exchanges, uint64_t nexus,
			  struct osd_secret *ret_secret)
{
	struct exchange *exchange;

	osd_lock(&exchanges->lock);
	exchange = find(exchanges, nexus);
	*ret_secret = (struct osd_secret){.known = exchange != NULL};
	if (exchange)
		memcpy(ret_secret->key, exchange->key.authentication, sizeof(ret_secret->key));
	osd_unlock(&exchanges->lock);
	return ret_secret->known;
}

struct ended {
	struct osd_exchanges *exchanges;
	uint64_t nexus;
};

static void ended(void *arg, bool committed)
{
	struct ended *end = arg;
	struct exchange *exchange;

	osd_lock(&end->exchanges->lock);
	exchange = committed ? find(end->exchanges, end->nexus) : NULL;
	if (exchange)
		explicit_bzero(exchange, sizeof(*exchange));
	osd_unlock(&end->exchanges->lock);
	free(end);
}

static enum osd_status forget_at_end(struct osd_exchanges *exchanges, struct osd_txn *txn,
				     uint64_t nexus)
{
	struct ended *end = malloc(sizeof(*end));

	if (!end)
		return OSD_E_NO_MEMORY;
	*end = (struct ended){exchanges, nexus};
	return osd_txn_on_end(txn, ended, end);
}

enum osd_status osd_exchange_end(struct osd_exchanges *exchanges, struct osd_txn *txn,
				 uint64_t nexus, unsigned group, const uint8_t *theirs,
				 const uint8_t *ours, const uint8_t identifier[OSD_KEY_IDENTIFIER])
{
	size_t length = osd_dh_length(group);
	enum osd_status status = OSD_OK;
	struct exchange *exchange;
	struct osd_key_pair key;

	osd_lock(&exchanges->lock);
	exchange = find(exchanges, nexus);
	if (!exchange)
		status = OSD_E_SEQUENCE;
	else if (exchange->group != group || memcmp(exchange->theirs, theirs, length) != 0 ||
		 memcmp(exchange->ours, ours, length) != 0)
		status = OSD_E_PARAM_FIELD;
	else
		key = exchange->key;
	osd_unlock(&exchanges->lock);
	if (status != OSD_OK)
		return status;
	status = osd_keyring_set_master(exchanges->keyring, txn, identifier, &key);
	explicit_bzero(&key, sizeof(key));
	return status == OSD_OK ? forget_at_end(exchanges, txn, nexus) : status;
}
