/* SPDX-License-Identifier: GPL-2.0-or-later */
/* authorise_impl.h -- what the three files behind authorise.h share. */
#ifndef OSD_COMMAND_AUTHORISE_IMPL_H
#define OSD_COMMAND_AUTHORISE_IMPL_H

#include "command/context.h"
#include "security/decide.h"

/* Whether objects in the addressed partition need no check against a capability.  Either the
 * partition accepts NOSEC, which was checked when the request was admitted, or the command runs in
 * the background with the permissions it was accepted with. */
static inline bool osd_authorise_is_open(const struct osd_request *request)
{
	return request->security.proof.grant.open || request->security.accepted;
}

static inline bool osd_authorise_tag_matters(const struct osd_request *request)
{
	return request->security.proof.grant.capability.policy_access_tag != 0;
}

#endif
