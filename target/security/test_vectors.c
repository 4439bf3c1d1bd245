/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_vectors.c -- check values and keys against those of tests/security/vectors.py. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "security/dh.h"
#include "security/keys.h"

struct vector {
	char name[64];
	uint8_t bytes[1024];
	size_t length;
};

static struct vector vectors[128];
static size_t vector_count;

static uint8_t digit(char c)
{
	return (uint8_t)(isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10);
}

static void read_vectors(void)
{
	FILE *file = fopen(OSD_VECTORS_FILE, "r");
	char line[4096];

	CHECK(file != NULL);
	while (fgets(line, sizeof(line), file)) {
		struct vector *vector = &vectors[vector_count++];
		const char *at = strchr(line, ' ');

		CHECK(at && vector_count < 128 && (size_t)(at - line) < sizeof(vector->name));
		memcpy(vector->name, line, (size_t)(at - line));
		for (at++; isxdigit((unsigned char)*at); at += 2)
			vector->bytes[vector->length++] =
				(uint8_t)(digit(at[0]) << 4 | digit(at[1]));
	}
	fclose(file);
}

static const struct vector *find(const char *prefix, const char *name)
{
	char whole[64];

	snprintf(whole, sizeof(whole), "%s%s", prefix, name);
	for (size_t i = 0; i < vector_count; i++)
		if (!strcmp(vectors[i].name, whole))
			return &vectors[i];
	fprintf(stderr, "no vector %s\n", whole);
	exit(1);
}

static void check_tail(const char *prefix, const char *name, const uint8_t value[OSD_MAC_LENGTH])
{
	const struct vector *wanted = find(prefix, name);

	CHECK(wanted->length >= OSD_MAC_LENGTH);
	CHECK_BYTES(value, OSD_MAC_LENGTH, wanted->bytes + wanted->length - OSD_MAC_LENGTH,
		    OSD_MAC_LENGTH);
}

/* The check value over these vectors, one after the other; "!" is the status CHECK CONDITION, "0" GOOD. */
static void check_mac(enum osd_mac_algorithm algorithm, const char *prefix, const char *key,
		      const char *name, const char *const parts[])
{
	uint8_t value[OSD_MAC_LENGTH];
	struct osd_mac mac;

	osd_mac_init(&mac, algorithm, find(prefix, key)->bytes);
	for (; *parts; parts++) {
		if (!strcmp(*parts, "0") || !strcmp(*parts, "!")) {
			osd_mac_update(&mac, **parts == '!' ? "\2" : "\0", 1);
		} else if (!strcmp(*parts, "lengths")) { /* what comes before the value */
			const struct vector *whole = find(prefix, name);

			osd_mac_update(&mac, whole->bytes, whole->length - OSD_MAC_LENGTH);
		} else {
			const struct vector *part =
				find(strcmp(*parts, "cdb") ? "" : prefix, *parts);

			osd_mac_update(&mac, part->bytes, part->length);
		}
	}
	osd_mac_final(&mac, value);
	check_tail(prefix, name, value);
}

static void test_check_values(enum osd_mac_algorithm algorithm, const char *prefix)
{
	static const struct {
		const char *key, *name, *parts[6];
	} all[] = {
		{"capkey.capability_key", "capkey.request", {"token"}},
		{"capability_key", "request", {"cdb"}},
		{"capability_key", "continuation", {"nonce", "continuation"}},
		{"capability_key",
		 "data_out",
		 {"nonce", "data", "set_list", "get_list", "lengths"}},
		{"capability_key", "data_in", {"nonce", "data", "retrieved", "lengths"}},
		{"capability_key", "response_good", {"nonce", "0", "page"}},
		{"capability_key", "response_sense", {"nonce", "!", "sense"}},
	};
	uint8_t key[OSD_MAC_LENGTH];

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		check_mac(algorithm, prefix, all[i].key, all[i].name, all[i].parts);
	osd_capability_key(algorithm, find("", "secret")->bytes, find(prefix, "capability")->bytes,
			   find("", "system_id")->bytes, key);
	check_tail(prefix, "capability_key", key);
	CHECK_EQ(find(prefix, "cdb")->length, 236);
}

static struct osd_mac_input input(const struct vector *vector)
{
	return (struct osd_mac_input){vector->bytes, vector->length};
}

static void check_derived(enum osd_mac_algorithm algorithm, const char *prefix, const char *name,
			  struct osd_mac_input seed, struct osd_mac_input suffix)
{
	struct osd_key_pair key;
	char whole[64];

	osd_key_derive(algorithm, find("", "parent_generation")->bytes, seed, suffix, &key);
	snprintf(whole, sizeof(whole), "%s.generation", name);
	check_tail(prefix, whole, key.generation);
	snprintf(whole, sizeof(whole), "%s.authentication", name);
	check_tail(prefix, whole, key.authentication);
}

static void test_group(unsigned group)
{
	uint8_t ours[OSD_DH_MAX], shared[OSD_DH_MAX], degenerate[OSD_DH_MAX];
	const struct vector *y = find("", "dh_y"), *theirs, *prime;
	size_t length = osd_dh_length(group);
	char prefix[16];

	snprintf(prefix, sizeof(prefix), "dh_%u.", group);
	theirs = find(prefix, "theirs");
	prime = find(prefix, "prime");
	CHECK_EQ(theirs->length, length);
	CHECK_EQ(osd_dh_answer(group, y->bytes, y->length, theirs->bytes, ours, shared), OSD_OK);
	CHECK_BYTES(ours, length, find(prefix, "ours")->bytes, length);
	CHECK_BYTES(shared, length, find(prefix, "shared")->bytes, length);

	memcpy(degenerate, prime->bytes, length);
	for (unsigned below = 0; below < 2; below++) { /* p, p - 1 */
		degenerate[length - 1] = (uint8_t)(prime->bytes[length - 1] - below);
		CHECK_EQ(osd_dh_answer(group, y->bytes, y->length, degenerate, ours, shared),
			 OSD_E_PARAM_FIELD);
	}
	degenerate[length - 1] = (uint8_t)(prime->bytes[length - 1] - 2);
	CHECK_EQ(osd_dh_answer(group, y->bytes, y->length, degenerate, ours, shared), OSD_OK);
	for (unsigned i = 0; i < 2; i++) {
		memset(degenerate, 0, length);
		degenerate[length - 1] = (uint8_t)i;
		CHECK_EQ(osd_dh_answer(group, y->bytes, y->length, degenerate, ours, shared),
			 OSD_E_PARAM_FIELD);
	}
}

int main(void)
{
	static const char *const prefixes[OSD_MAC_ALGORITHMS] = {"sha256.", "sha1."};
	struct osd_mac_input none = {"", 0};

	read_vectors();
	test_group(14);
	test_group(15);
	CHECK_EQ(osd_dh_length(13), 0);
	for (unsigned i = 0; i < OSD_MAC_ALGORITHMS; i++) {
		enum osd_mac_algorithm algorithm = (enum osd_mac_algorithm)i;
		struct osd_mac_input id = input(find("", "system_id"));

		test_check_values(algorithm, prefixes[i]);
		check_derived(algorithm, prefixes[i], "key", input(find("", "seed")), none);
		check_derived(algorithm, prefixes[i], "master_14", input(find("dh_14.", "shared")),
			      id);
		check_derived(algorithm, prefixes[i], "master_15", input(find("dh_15.", "shared")),
			      id);
	}
	return 0;
}
