/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_sha256.c -- the examples of FIPS 180-4, whole and in pieces. */
#include "security/mac.h"

#include <string.h>

#include "base/test.h"
#include "base/util.h"

static void check(const char *text, size_t length, size_t piece, const char *hex)
{
	struct osd_sha256 sha;
	uint8_t digest[32];
	char got[65];

	osd_sha256_init(&sha);
	for (size_t at = 0; at < length; at += piece)
		osd_sha256_add(&sha, text + at, OSD_MIN(piece, length - at));
	osd_sha256_end(&sha, digest);
	for (size_t i = 0; i < 32; i++)
		snprintf(got + 2 * i, 3, "%02x", digest[i]);
	CHECK(strcmp(got, hex) == 0);
}

int main(void)
{
	static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	static char million[1000000];

	memset(million, 'a', sizeof(million));
	check("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check("abc", 3, 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	for (size_t piece = 1; piece <= 56; piece++)
		check(two_blocks, 56, piece,
		      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check(million, sizeof(million), 4099,
	      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	return 0;
}
