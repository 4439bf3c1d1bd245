/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sshsig.h -- verifies signatures of ssh-keygen -Y sign (wire/sshsig.h).  The arithmetic is libgcrypt's.  Any
 * thread. */
#ifndef OSD_SECURITY_SSHSIG_H
#define OSD_SECURITY_SSHSIG_H

#include <stdbool.h>

#include "wire/sshsig.h"

#define OSD_FINGERPRINT_SIZE 51 /* "SHA256:" and 43 characters, with the zero byte */

/* Whether the key in the signature has signed message for the signature's namespace.  The caller decides about
 * the key and the namespace. */
bool osd_sshsig_verify(const struct osd_sshsig *signature, struct osd_span message);
/* As `ssh-keygen -l` prints it. */
void osd_ssh_fingerprint(struct osd_span blob, char text[OSD_FINGERPRINT_SIZE]);

#endif
