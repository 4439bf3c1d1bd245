/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_security.c -- NOSEC accepts what real initiators send; stronger methods are refused;
 * principals. */
#include "security/security.h"

#include <fcntl.h>

#include "base/log.h"
#include "base/test.h"

static void test_methods(void)
{
	struct osd_access access = {.type = OSD_USER_OBJECT, .object = {0x10000, 0x10001},
				    .permissions = OSD_PERM_WRITE};
	struct osd_capability capability = {0};
	uint16_t field = 0;

	CHECK_EQ(osd_security_check(&capability, &access, &field), OSD_OK); /* zeros, as OSC's */
	capability.format = OSD_CAPABILITY_OSD1; /* as Linux's, for another object */
	capability.allowed_partition_id = 99;
	CHECK_EQ(osd_security_check(&capability, &access, &field), OSD_OK);
	CHECK_EQ(field, 0);
	for (uint8_t method = OSD_CAPKEY; method < 16; method++) {
		capability.security_method = method;
		CHECK_EQ(osd_security_check(&capability, &access, &field), OSD_E_CDB_FIELD);
		CHECK_EQ(field, 82);
	}
}

static void test_principals(void)
{
	struct osd_principal principal;
	char longest[2 * OSD_PRINCIPAL_MAX];

	osd_principal_derive("alice", "iqn.2026-01.org.example:a", "127.0.0.1", &principal);
	CHECK(principal.verified && !strcmp(principal.name, "chap:alice") &&
	      !strcmp(principal.key, "chap:alice"));
	osd_principal_derive(NULL, "iqn.a\n", "127.0.0.1", &principal);
	CHECK(!principal.verified && !strcmp(principal.name, "unverified:iqn.a\\x0a") &&
	      !strcmp(principal.key, "addr:127.0.0.1"));
	osd_principal_derive("", "", "", &principal);
	CHECK(!principal.verified && !strcmp(principal.key, "addr:"));
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	osd_principal_derive(longest, "", "", &principal);
	CHECK(strlen(principal.key) < OSD_PRINCIPAL_MAX);
}

int main(void)
{
	osd_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), "test_security", OSD_LOG_WARNING);
	test_methods();
	test_principals();
	return 0;
}
