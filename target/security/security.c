/* SPDX-License-Identifier: GPL-2.0-or-later */
/* security.c -- see security.h. */
#include "security/security.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define AUDIT_BYTES (sizeof(((struct osd_capability *)NULL)->audit))
#define CUT_ROOM 5 /* osd_log_quote() cuts where fewer bytes than these would be left */

/* prefix and the quoted value into out. */
static void name(char out[OSD_PRINCIPAL_MAX], const char *prefix, const void *value, size_t length)
{
	size_t used = (size_t)snprintf(out, OSD_PRINCIPAL_MAX, "%s", prefix);

	osd_log_quote(out + used, OSD_PRINCIPAL_MAX - used, value, length);
}

/* False: the name was cut, so that another one might look the same. */
static bool verified(struct osd_principal *principal, const char *prefix, const void *value,
		     size_t length)
{
	principal->verified = true;
	name(principal->name, prefix, value, length);
	name(principal->key, prefix, value, length);
	return strlen(principal->key) + CUT_ROOM <= OSD_PRINCIPAL_MAX;
}

/* An AUDIT that is text is used as it is, any other in hexadecimal, which is longer than any text
 * can be. */
static bool name_by_audit(struct osd_principal *principal,
			  const uint8_t audit[AUDIT_BYTES], size_t length)
{
	char hex[2 * AUDIT_BYTES + 1];
	bool is_text = true;

	for (size_t i = 0; i < length; i++)
		is_text &= audit[i] >= ' ' && audit[i] <= '~';
	if (is_text)
		return verified(principal, "audit:", audit, length);
	for (size_t i = 0; i < AUDIT_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", audit[i]);
	return verified(principal, "audit:", hex, strlen(hex));
}

void osd_principal_derive(const struct osd_grant *grant, const char *chap_name,
			  const char *initiator_name, const char *address,
			  struct osd_principal *ret_principal)
{
	const uint8_t *audit = grant->capability.audit;
	size_t length = grant->verified ? sizeof(grant->capability.audit) : 0;

	while (length && !audit[length - 1])
		length--;
	if (length && name_by_audit(ret_principal, audit, length))
		return;
	if (!length && chap_name && *chap_name &&
	    verified(ret_principal, "chap:", chap_name, strlen(chap_name)))
		return;
	ret_principal->verified = false;
	name(ret_principal->name, "unverified:", initiator_name, strlen(initiator_name));
	name(ret_principal->key, "addr:", address, strlen(address));
}

bool osd_principal_is_named(const char *key)
{
	return strncmp(key, "audit:", strlen("audit:")) == 0;
}
