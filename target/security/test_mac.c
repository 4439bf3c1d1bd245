/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_mac.c -- check values against RFC 4231 and RFC 2202, piece by piece and several at a time. */
#include "security/mac.h"

#include <pthread.h>
#include <string.h>

#include "base/test.h"

/* RFC 4231 test case 1, RFC 2202 test case 1: key of 20 bytes 0Bh, "Hi There". */
static const uint8_t sha256_hi[] = {0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53,
				    0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b, 0xf1, 0x2b,
				    0x88, 0x1d, 0xc2, 0x00, 0xc9, 0x83, 0x3d, 0xa7,
				    0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32, 0xcf, 0xf7};
static const uint8_t sha1_hi[] = {0xb6, 0x17, 0x31, 0x86, 0x55, 0x05, 0x72, 0x64, 0xe2, 0x8b,
				  0xc0, 0xb6, 0xfb, 0x37, 0x8c, 0x8e, 0xf1, 0x46, 0xbe};

static void fill_key(uint8_t key[OSD_MAC_LENGTH])
{
	memset(key, 0, OSD_MAC_LENGTH);
	memset(key, 0x0b, 20);
}

static void test_known(void)
{
	uint8_t key[OSD_MAC_LENGTH], value[OSD_MAC_LENGTH];
	struct osd_mac a, b;

	fill_key(key);
	osd_mac_init(&a, OSD_HMAC_SHA256, key);
	osd_mac_init(&b, OSD_HMAC_SHA1, key);
	for (const char *at = "Hi There"; *at; at++) {
		osd_mac_update(&a, at, 1);
		osd_mac_update(&b, at, 1);
		osd_mac_update(&b, "", 0);
	}
	osd_mac_final(&a, value);
	CHECK(!memcmp(value, sha256_hi, sizeof(sha256_hi)));
	osd_mac_final(&b, value);
	CHECK(!memcmp(value, sha1_hi, sizeof(sha1_hi)));
	for (size_t i = 20; i < sizeof(value); i++)
		CHECK_EQ(value[i], 0);
	for (size_t i = 0; i < sizeof(a); i++) /* nothing of the key is left */
		CHECK_EQ(((const uint8_t *)&a)[i], 0);
}

static void test_equal(void)
{
	uint8_t a[OSD_MAC_LENGTH] = {0}, b[OSD_MAC_LENGTH] = {0};

	CHECK(osd_mac_equal(a, b));
	for (size_t bit = 0; bit < 8 * sizeof(b); bit++) {
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK(!osd_mac_equal(a, b));
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void *hash_often(void *arg)
{
	uint8_t key[OSD_MAC_LENGTH], value[OSD_MAC_LENGTH];
	struct osd_mac mac;

	(void)arg;
	fill_key(key);
	for (unsigned i = 0; i < 2000; i++) {
		osd_mac_init(&mac, OSD_HMAC_SHA256, key);
		osd_mac_update(&mac, "Hi There", 8);
		osd_mac_final(&mac, value);
		CHECK(!memcmp(value, sha256_hi, sizeof(sha256_hi)));
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[4];

	for (size_t i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, hash_often, NULL), 0);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	CHECK(osd_crypto_init());
	test_known();
	test_equal();
	test_threads();
	return 0;
}
