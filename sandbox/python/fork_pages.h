/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fork_pages.h -- memory of the zygote laid out so that forking it and ending the child costs little:
 * page tables copied and given back are a good part of the price.
 *
 * Interpreter memory lies in whole huge pages, which are shared by one entry each; a child that writes
 * gets ordinary ones.  Where the kernel does not play along nothing is lost but speed.
 *
 * One thread, zygote only. */
#ifndef OSD_SANDBOX_FORK_PAGES_H
#define OSD_SANDBOX_FORK_PAGES_H

/* Before the interpreter starts: where it is to take its memory from. */
void osd_fork_pages_prepare(void);
/* When all that sandboxes are to find is in memory: what is allocated from here on lies together. */
void osd_fork_pages_gather(void);
/* The last. */
void osd_fork_pages_settle(void);

#endif
