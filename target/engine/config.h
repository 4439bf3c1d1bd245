/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config.h -- the option string of a logical unit or the harness ("dir=/srv/osd;workers=4") as a
 * checked structure.  tgtd cuts option strings at the first comma, so options are separated by
 * ';'. */
#ifndef OSD_ENGINE_CONFIG_H
#define OSD_ENGINE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "exec/reuse.h"
#include "object/object.h"


struct osd_config {
	char *directory;      /* dir=; owned; NULL with memory=1 */
	char *ssd_directory;  /* ssd=; owned; NULL: one root */
	char *sandboxd;       /* sandboxd=, socket of iosd-sandboxd; owned; NULL: no sandboxes */
	char *serial;         /* serial=, product serial number; owned; NULL: the store's */
	char *isolation;      /* isolation=, level demanded of sandboxes; owned; never NULL */
	char *control;        /* control=, socket of a resource manager; owned; NULL: none */
	uint64_t control_uid; /* control_uid=, user of the resource manager; 0: the target's own */
	char *pools;          /* pools=, file of pools (exec/pool_config.c); owned; NULL: default alone */
	enum osd_reuse reuse; /* reuse=never|verified|trusted, of sandboxes */
	char *master_key;     /* master-key=, file with the first master key; owned; NULL: none */
	char *local_key;      /* local-key=, file for the local administrator's key; owned; NULL: none */
	bool allow_bytecode;  /* allow_bytecode=1: jobs may be .pyc files */
	char *model;          /* model=, tests and benchmarks only: simulated disks; owned; NULL: none */
	uint8_t security;     /* security=nosec|capkey|cmdrsp|alldata, least method of what is made */
	bool secure;          /* secure=1: refuse a store whose root, or new partitions, have NOSEC */
	char *token;          /* token=, security token in hex, tests only; owned; NULL: a new one */
	char *hold;           /* hold=, tests only: long commands stop while this file exists; owned */
	struct osd_heads_config heads; /* heads=, head_size=, head_high=, head_low=, head_rate= */
	uint64_t workers;     /* workers= */
	uint64_t queue_principal; /* queue_principal=, jobs of one principal in the queue; 0: default */
	uint64_t stored_principal; /* stored_principal=, bytes in the jobs partition; 0: default */
	uint64_t script_turn; /* script_turn=, us; 0: as the kernel likes */
	uint64_t slots;       /* slots=, sandboxes at a time; 0: as many as processors */
	uint64_t capacity_bytes; /* capacity=, 0: the file system's */
	uint64_t cache_bytes; /* cache=, Berkeley DB cache; 0: default */
	uint64_t fault;       /* fault=N, tests only: the N-th store call fails; 0: none */
	enum osd_durability durability; /* durability=process|sync */
	enum osd_ssd_loss on_ssd_loss;  /* on_ssd_loss=fail|read-through */
	enum osd_io io;       /* io=cached|direct */
	bool fault_kill;      /* fault_kill=1, tests only: the process dies there instead */
	bool create;          /* create=0: refuse an empty directory instead of formatting it */
	bool strict;          /* strict=1: refuse unassigned user-object pages 8h-7Fh */
	bool osc_compat;      /* osc_compat=1: what OSC's initiator expects, standard or not */
	bool osc_list_e;      /* osc_list_e=1: its multi-object lists have type Eh, not Fh */
	bool unsafe_nosync;   /* unsafe_nosync=1, tests only: acknowledged changes may be lost */
	bool memory;          /* memory=1: nothing on disk */
};

/* Defaults, then options in order.  OSD_E_PARAM_FIELD: message says which option is wrong and
 * what it should be.  *ret_config needs osd_config_release. */
enum osd_status osd_config_parse(const char *options, char message[256],
				 struct osd_config *ret_config);
void osd_config_release(struct osd_config *config);
/* One line per option: name, range or values, default, meaning. */
void osd_config_help(FILE *out);

#endif
