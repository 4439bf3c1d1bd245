/* SPDX-License-Identifier: GPL-2.0-or-later */
/* security.c -- the check the dispatcher calls, and whose job it is. */
#include "security/security.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"

#define METHOD_FIELD 82 /* CDB byte of the capability's security method */

static const char *method_name(uint8_t method)
{
	switch (method) {
	case OSD_CAPKEY:
		return "CAPKEY";
	case OSD_CMDRSP:
		return "CMDRSP";
	case OSD_ALLDATA:
		return "ALLDATA";
	default:
		return "an unknown method";
	}
}

/* One line a second explains it; an initiator that keeps asking must not fill the log. */
static void explain_refusal(const struct osd_capability *capability,
			    const struct osd_access *access)
{
	static time_t last;
	time_t now = time(NULL);

	if (__atomic_exchange_n(&last, now, __ATOMIC_RELAXED) == now)
		return;
	osd_warning("refused: the capability asks for %s (method %u) on object 0x%" PRIx64
		    "/0x%" PRIx64
		    ", permissions %04x; this target offers NOSEC only, so send security method 0",
		    method_name(capability->security_method), capability->security_method,
		    access->object.partition_id, access->object.object_id, access->permissions);
}

enum osd_status osd_security_check(const struct osd_capability *capability,
				   const struct osd_access *access, uint16_t *ret_field)
{
	if (capability->security_method == OSD_NOSEC)
		return OSD_OK;
	explain_refusal(capability, access);
	*ret_field = METHOD_FIELD;
	return OSD_E_CDB_FIELD;
}

/* prefix and the quoted value into out. */
static void name(char out[OSD_PRINCIPAL_MAX], const char *prefix, const char *value)
{
	size_t used = (size_t)snprintf(out, OSD_PRINCIPAL_MAX, "%s", prefix);

	osd_log_quote(out + used, OSD_PRINCIPAL_MAX - used, value, strlen(value));
}

void osd_principal_derive(const char *chap_name, const char *initiator_name, const char *address,
			  struct osd_principal *ret_principal)
{
	ret_principal->verified = chap_name && *chap_name;
	if (ret_principal->verified) {
		name(ret_principal->name, "chap:", chap_name);
		name(ret_principal->key, "chap:", chap_name);
	} else {
		name(ret_principal->name, "unverified:", initiator_name);
		name(ret_principal->key, "addr:", address);
	}
}
