/* SPDX-License-Identifier: GPL-2.0-or-later */
/* listings.h -- the tables of the product as text for documentation and tests: tab separated, a row a line. */
#ifndef OSD_HARNESS_LISTINGS_H
#define OSD_HARNESS_LISTINGS_H

/* Code, name, supported, object types, permissions. */
void harness_list_commands(void);
/* Of the standard attributes: page, its name, number, length, whether it can be set, meaning. */
void harness_list_attributes(void);
/* Condition, SAM status, key, ASC/ASCQ, field, descriptors, what they hold. */
void harness_list_sense(void);

#endif
