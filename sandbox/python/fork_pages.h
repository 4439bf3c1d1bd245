/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fork_pages.h -- lays out the memory of the zygote so that a fork, and the end of the child, cost little.
 * A good part of that cost is copying page tables and giving them back.
 *
 * The interpreter's memory lies in whole huge pages: a fork copies one entry for each.  A child that writes
 * to one gets ordinary pages.  If the kernel refuses huge pages, forks are slower and still correct.
 *
 * For the zygote only, in its one thread. */
#ifndef OSD_SANDBOX_FORK_PAGES_H
#define OSD_SANDBOX_FORK_PAGES_H

/* Call this before the interpreter starts: it gives the interpreter its memory from a reserve. */
void osd_fork_pages_prepare(void);
/* Call this when everything that sandboxes share is in memory.  Later allocations lie side by side. */
void osd_fork_pages_gather(void);
/* Call this last, before the first fork: it moves code and data into huge pages. */
void osd_fork_pages_settle(void);

#endif
