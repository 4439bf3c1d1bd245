/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_sshsig.c -- signatures of ssh-keygen: known answers, armour, and every change of them. */
#include "security/sshsig.h"

#include "wire/base64.h"
#include "wire/test_golden.h"

static const char statement[] =
	"iosd-function 1\n"
	"sha256 0000000000000000000000000000000000000000000000000000000000000000\n";
static const char *const names[] = {"sshsig.ed25519", "sshsig.p256", "sshsig.p384", "sshsig.rsa"};

static struct osd_span span_of(const void *bytes, size_t length)
{
	return (struct osd_span){bytes, length};
}

static bool is_good(struct osd_span text, struct osd_span message)
{
	uint8_t buffer[OSD_SSHSIG_MAX];
	struct osd_sshsig signature;

	return osd_sshsig_parse(text, buffer, &signature) && osd_sshsig_verify(&signature, message);
}

static void test_known_answers(void)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct golden frame = golden(names[i]);
		struct osd_span text = span_of(frame.bytes, frame.length);

		CHECK(is_good(text, span_of(statement, sizeof(statement) - 1)));
		CHECK(!is_good(text, span_of(statement, sizeof(statement) - 2)));
	}
}

/* Whatever byte changes: the form is wrong, the signature is, or it is for another namespace or hash. */
static void test_every_byte_counts(void)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct golden frame = golden(names[i]);

		for (size_t at = 0; at < frame.length; at++) {
			frame.bytes[at] ^= 0x01;
			CHECK(!is_good(span_of(frame.bytes, frame.length),
				       span_of(statement, sizeof(statement) - 1)));
			frame.bytes[at] ^= 0x01;
			CHECK(!is_good(span_of(frame.bytes, at),
				       span_of(statement, sizeof(statement) - 1)));
		}
		frame.bytes[frame.length] = 0;
		CHECK(!is_good(span_of(frame.bytes, frame.length + 1),
			       span_of(statement, sizeof(statement) - 1)));
	}
}

static size_t armour(const struct golden *frame, char text[OSD_SSHSIG_MAX])
{
	static const char begin[] = "-----BEGIN SSH SIGNATURE-----\n";
	char base64[OSD_BASE64_SIZE(GOLDEN_MAX)];
	size_t used = sizeof(begin) - 1, length;

	memcpy(text, begin, used);
	osd_base64_encode(frame->bytes, frame->length, base64);
	length = strlen(base64);
	while (length % 4)
		base64[length++] = '=';
	for (size_t at = 0; at < length; at += 70)
		used += (size_t)snprintf(text + used, OSD_SSHSIG_MAX - used, "%.*s\n",
					 (int)(length - at < 70 ? length - at : 70), base64 + at);
	return used + (size_t)snprintf(text + used, OSD_SSHSIG_MAX - used,
				       "-----END SSH SIGNATURE-----\n");
}

static void test_armour(void)
{
	char text[OSD_SSHSIG_MAX];
	struct golden frame = golden("sshsig.rsa");
	size_t length = armour(&frame, text);
	struct osd_span message = span_of(statement, sizeof(statement) - 1);

	CHECK(is_good(span_of(text, length), message));
	CHECK(is_good(span_of(text, length - 1), message)); /* the last newline may be missing */
	for (size_t at = 0; at + 1 < length; at++)
		CHECK(!is_good(span_of(text, at), message));
	text[length - 1] = 'x';
	CHECK(!is_good(span_of(text, length), message));
}

static void test_fingerprint(void)
{
	uint8_t buffer[OSD_SSHSIG_MAX];
	struct golden frame = golden("sshsig.ed25519");
	struct osd_sshsig signature;
	char text[OSD_FINGERPRINT_SIZE];

	CHECK(osd_sshsig_parse(span_of(frame.bytes, frame.length), buffer, &signature));
	osd_ssh_fingerprint(signature.blob, text);
	CHECK(!strcmp(text, "SHA256:uoOk2ajqXMN8ZLv+WnvNzjPbMEBF4EGR7kSHeESCNpI"));
}

static void test_base64(void)
{
	static const char *const bad[] = {"A", "AA", "AAA", "A===", "AB==", "AAB=", "AA-A", "AA A", "=AAA"};
	uint8_t bytes[4];
	size_t length;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!osd_base64_decode((const uint8_t *)bad[i], strlen(bad[i]), bytes, 4, &length));
	CHECK(osd_base64_decode((const uint8_t *)"Zm9vYg==", 8, bytes, 4, &length));
	CHECK_BYTES(bytes, length, "foob", 4);
	CHECK(!osd_base64_decode((const uint8_t *)"Zm9vYmE=", 8, bytes, 4, &length));
}

int main(void)
{
	test_known_answers();
	test_every_byte_counts();
	test_armour();
	test_fingerprint();
	test_base64();
	return 0;
}
