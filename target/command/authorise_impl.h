/* SPDX-License-Identifier: GPL-2.0-or-later */
/* authorise_impl.h -- what the three files behind authorise.h share. */
#ifndef OSD_COMMAND_AUTHORISE_IMPL_H
#define OSD_COMMAND_AUTHORISE_IMPL_H

#include "command/context.h"
#include "security/decide.h"

/* Nothing is compared with a capability, of objects in the partition addressed: that partition was asked
 * when the request was admitted, and takes NOSEC; or the command goes on in the background with what it
 * was permitted. */
static inline bool osd_authorise_is_open(const struct osd_request *request)
{
	return request->security.proof.grant.open || request->security.accepted;
}

static inline bool osd_authorise_tag_matters(const struct osd_request *request)
{
	return request->security.proof.grant.capability.policy_access_tag != 0;
}

#endif
