/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_security.c -- principals: who is believed, and how it is written. */
#include "security/security.h"

#include <fcntl.h>

#include "base/log.h"
#include "base/test.h"

static void test_principals(void)
{
	struct osd_grant nobody = {.capability = {.audit = "alice"}}, alice = nobody;
	struct osd_principal principal;
	char longest[2 * OSD_PRINCIPAL_MAX];

	osd_principal_derive(&nobody, "alice", "iqn.2026-01.org.example:a", "127.0.0.1", &principal);
	CHECK(principal.verified && !strcmp(principal.name, "chap:alice") &&
	      !strcmp(principal.key, "chap:alice"));
	osd_principal_derive(&nobody, NULL, "iqn.a\n", "127.0.0.1", &principal);
	CHECK(!principal.verified && !strcmp(principal.name, "unverified:iqn.a\\x0a") &&
	      !strcmp(principal.key, "addr:127.0.0.1"));
	osd_principal_derive(&nobody, "", "", "", &principal);
	CHECK(!principal.verified && !strcmp(principal.key, "addr:"));
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	osd_principal_derive(&nobody, longest, "", "10.0.0.1", &principal);
	CHECK(strlen(principal.key) < OSD_PRINCIPAL_MAX);
	CHECK(!principal.verified && !strcmp(principal.key, "addr:10.0.0.1"));
	longest[OSD_PRINCIPAL_MAX - 20] = '\0'; /* fits, so it proves who it is */
	osd_principal_derive(&nobody, longest, "", "10.0.0.1", &principal);
	CHECK(principal.verified && strlen(principal.key) == OSD_PRINCIPAL_MAX - 15);

	alice.verified = true;
	osd_principal_derive(&alice, "bob", "iqn.b", "127.0.0.1", &principal);
	CHECK(principal.verified && !strcmp(principal.key, "audit:alice") &&
	      !strcmp(principal.name, principal.key));
	memset(alice.capability.audit, 0xff, sizeof(alice.capability.audit));
	osd_principal_derive(&alice, "bob", "iqn.b", "127.0.0.1", &principal);
	CHECK(!strcmp(principal.key, "audit:ffffffffffffffffffffffffffffffffffffffff"));
	memset(alice.capability.audit, 0, sizeof(alice.capability.audit));
	osd_principal_derive(&alice, "bob", "iqn.b", "127.0.0.1", &principal);
	CHECK(!strcmp(principal.key, "chap:bob"));
}

int main(void)
{
	osd_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), "test_security", OSD_LOG_WARNING);
	test_principals();
	return 0;
}
