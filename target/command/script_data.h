/* SPDX-License-Identifier: GPL-2.0-or-later */
/* script_data.h -- scripts use objects whose data pass through functions (osd_exec_set_data_ops), as
 * READ and WRITE of a client do (stack_read.h, stack_write.h).  exec/ has checked the rights of the job, and waits. */
#ifndef OSD_COMMAND_SCRIPT_DATA_H
#define OSD_COMMAND_SCRIPT_DATA_H

struct osd_dispatcher;

/* Until osd_exec_quiesce has returned.  The dispatcher has an exec. */
void osd_script_data_serve(struct osd_dispatcher *dispatcher);

#endif
