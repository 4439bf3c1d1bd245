/* SPDX-License-Identifier: GPL-2.0-or-later */
/* placed_result.h -- a long result of a stage lies in the shared memory, behind the data that the function got or over
 * them.  It needs no calls, and the target copies it once. */
#ifndef OSD_SANDBOX_PLACED_RESULT_H
#define OSD_SANDBOX_PLACED_RESULT_H

#include "engine.h"

/* Before each job; borrowed until the next. */
void osd_placed_begin(const struct osd_engine_job *job);

/* Puts the bytes there; they may lie there already.  over_texts: nothing reads the texts of the job any more.  NULL: the
 * job is no stage, or there is no room. */
const void *osd_place_result(const void *bytes, size_t length, bool over_texts);

/* Puts more bytes behind those that osd_place_result has copied there.  False: there is no room. */
bool osd_place_more(const void *placed, size_t placed_length, const void *bytes, size_t length);

/* Whether a result lies there.  *ret_place: where, for FINISH. */
bool osd_result_is_placed(const void *result, size_t length, uint32_t *ret_place);

#endif
