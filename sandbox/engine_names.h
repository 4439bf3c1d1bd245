/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine_names.h -- the list of engines, by the values of a pool's key `engine`.
 *
 * A name here needs a `struct osd_engine osd_engine_NAME` in the zygote (engine.h).  The daemon knows only
 * the names, so that it can refuse a pool of any other engine. */
#ifndef OSD_SANDBOX_ENGINE_NAMES_H
#define OSD_SANDBOX_ENGINE_NAMES_H

#define OSD_ENGINES(X) X(python) X(wasm) X(native) X(java)

/* The engine of a pool without the key. */
#define OSD_ENGINE_DEFAULT "python"

#endif
