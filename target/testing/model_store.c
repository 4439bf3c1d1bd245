/* SPDX-License-Identifier: GPL-2.0-or-later */
/* model_store.c -- wraps a store of data and has each call last as long as its simulated disk takes
 * (model.h).  The inner call is made first, and what is left of the time is slept until an absolute
 * deadline that follows from the device's last, so that what one call oversleeps is not added to those
 * that queue behind it. */
#include "testing/model.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/util.h"

#define NSEC_PER_S UINT64_C(1000000000)
#define COPY_PIECE (UINT64_C(1) << 20)

struct model_data {
	struct osd_data base;
	struct osd_lock lock;
	struct osd_model_arm arm;	 /* under lock */
	uint64_t calls, late, busy_nsec; /* under lock; late: the real device took longer */
};

struct model_file {
	struct osd_data_file base;
	struct osd_data_name name;
};

static struct model_data *to_data(struct osd_data *data)
{
	return osd_container_of(data, struct model_data, base);
}

static struct model_file *to_file(struct osd_data_file *file)
{
	return osd_container_of(file, struct model_file, base);
}

/* ---- time -------------------------------------------------------------------------------- */

static void sleep_until(uint64_t nsec)
{
	const struct timespec until = {(time_t)(nsec / NSEC_PER_S), (long)(nsec % NSEC_PER_S)};
	static _Thread_local bool punctual;

	if (!punctual) /* the usual 50 us are a quarter of an access to an SSD */
		punctual = prctl(PR_SET_TIMERSLACK, 1) == 0;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* Work that came at came_nsec and whose inner call is done: waits for the rest of its time. */
static void take_time(struct model_data *data, uint64_t came_nsec, enum osd_model_work work,
		      const struct osd_data_name *name, uint64_t offset, uint64_t length)
{
	uint64_t began, end, now = osd_monotonic_nsec();

	osd_lock(&data->lock);
	began = OSD_MAX(came_nsec, data->arm.free_nsec);
	end = osd_model_plan(&data->arm, came_nsec, work, name, offset, length);
	data->calls++;
	data->late += now > end;
	data->busy_nsec += end - began;
	osd_unlock(&data->lock);
	if (now < end)
		sleep_until(end);
}

static void take_access(struct osd_data *data, uint64_t came_nsec)
{
	take_time(to_data(data), came_nsec, OSD_MODEL_NAME, NULL, 0, 0);
}

/* The call of the store below, which takes the time of one access. */
#define TAKES_ACCESS(data, call)                                                                   \
	({                                                                                         \
		uint64_t came_ = osd_monotonic_nsec();                                             \
		enum osd_status status_ = (call);                                                  \
                                                                                                   \
		take_access((data), came_);                                                        \
		status_;                                                                           \
	})

static void take_transfer(struct osd_data_file *file, uint64_t came_nsec, enum osd_model_work work,
			  uint64_t offset, uint64_t length)
{
	take_time(to_data(file->data), came_nsec, work, &to_file(file)->name, offset, length);
}

/* ---- calls that move bytes --------------------------------------------------------------- */

static enum osd_status model_read(struct osd_data_file *file, uint64_t offset, void *buffer,
				  size_t length, unsigned flags, size_t *ret_read)
{
	uint64_t came = osd_monotonic_nsec();
	enum osd_status status;

	if (flags & OSD_DATA_READ_NOWAIT)
		return OSD_E_WOULD_BLOCK;
	status = osd_data_read(file->inner, offset, buffer, length, flags, ret_read);
	if (status == OSD_OK)
		take_transfer(file, came, OSD_MODEL_READ, offset, *ret_read);
	return status;
}

static enum osd_status model_write(struct osd_data_file *file, uint64_t offset, const void *bytes,
				   size_t length)
{
	uint64_t came = osd_monotonic_nsec();
	enum osd_status status = osd_data_write(file->inner, offset, bytes, length);

	take_transfer(file, came, OSD_MODEL_WRITE, offset, length);
	return status;
}

/* Read and written in turn, piece by piece, as a program without the help of the kernel would. */
static enum osd_status model_copy(struct osd_data_file *from, uint64_t from_offset,
				  struct osd_data_file *to, uint64_t to_offset, uint64_t length,
				  unsigned flags)
{
	struct osd_data_stat stat;
	enum osd_status status = osd_data_stat(from->inner, &stat);

	if (status == OSD_OK)
		length = from_offset < stat.size ? OSD_MIN(length, stat.size - from_offset) : 0;
	while (status == OSD_OK && length > 0) {
		uint64_t piece = OSD_MIN(length, COPY_PIECE), came = osd_monotonic_nsec();

		status =
			osd_data_copy(from->inner, from_offset, to->inner, to_offset, piece, flags);
		take_transfer(from, came, OSD_MODEL_READ, from_offset, piece);
		take_transfer(to, osd_monotonic_nsec(), OSD_MODEL_WRITE, to_offset, piece);
		from_offset += piece;
		to_offset += piece;
		length -= piece;
	}
	return status;
}

/* ---- names and inodes -------------------------------------------------------------------- */

static enum osd_status model_open(struct osd_data *data, const struct osd_data_name *name,
				  unsigned flags, struct osd_data_file **ret_file)
{
	uint64_t came = osd_monotonic_nsec();
	struct model_file *file = calloc(1, sizeof(*file));
	enum osd_status status;

	if (!file)
		return OSD_E_NO_MEMORY;
	status = osd_data_open_file(data->inner, name, flags, &file->base.inner);
	take_access(data, came);
	if (status != OSD_OK) {
		free(file);
		return status;
	}
	file->base.data = data;
	file->name = *name;
	*ret_file = &file->base;
	return OSD_OK;
}

static void model_close_file(struct osd_data_file *file)
{
	osd_data_close_file(file->inner);
	free(to_file(file));
}

static enum osd_status model_truncate(struct osd_data_file *file, uint64_t size)
{
	return TAKES_ACCESS(file->data, osd_data_truncate(file->inner, size));
}

static enum osd_status model_zero(struct osd_data_file *file, uint64_t offset, uint64_t length)
{
	return TAKES_ACCESS(file->data, osd_data_zero(file->inner, offset, length));
}

static enum osd_status model_sync(struct osd_data_file *file)
{
	return TAKES_ACCESS(file->data, osd_data_sync(file->inner));
}

static enum osd_status model_sync_directories(struct osd_data *data,
					      const struct osd_data_name *name)
{
	return TAKES_ACCESS(data, osd_data_sync_directories(data->inner, name));
}

static enum osd_status model_link(struct osd_data *data, const struct osd_data_name *from,
				  const struct osd_data_name *to)
{
	return TAKES_ACCESS(data, osd_data_link(data->inner, from, to));
}

static enum osd_status model_remove(struct osd_data *data, const struct osd_data_name *name)
{
	return TAKES_ACCESS(data, osd_data_remove(data->inner, name));
}

static enum osd_status model_remove_partition(struct osd_data *data, uint64_t partition_id,
					      uint32_t incarnation)
{
	return TAKES_ACCESS(data,
			    osd_data_remove_partition(data->inner, partition_id, incarnation));
}

static enum osd_status model_sync_all(struct osd_data *data)
{
	return TAKES_ACCESS(data, osd_data_sync_all(data->inner));
}

static enum osd_status model_next_extent(struct osd_data_file *file, uint64_t offset,
					 uint64_t *ret_start, uint64_t *ret_end)
{
	return TAKES_ACCESS(file->data,
			    osd_data_next_extent(file->inner, offset, ret_start, ret_end));
}

/* ---- unsupported -------------------------------------------------------- */

/* A holder of a descriptor would read past the model. */
static enum osd_status model_share(struct osd_data_file *file, int *ret_fd)
{
	(void)file, (void)ret_fd;
	return OSD_E_UNSUPPORTED;
}

static enum osd_status model_clone(struct osd_data_file *from, struct osd_data_file *to)
{
	(void)from, (void)to;
	return OSD_E_UNSUPPORTED;
}

static bool model_can_clone(struct osd_data *data)
{
	(void)data;
	return false;
}

static void model_close(struct osd_data *base)
{
	struct model_data *data = to_data(base);

	osd_debug("simulated %s: %llu calls, busy for %llu ms; the real one took longer in %llu",
		  data->arm.device.arm ? "hdd" : "ssd", (unsigned long long)data->calls,
		  (unsigned long long)(data->busy_nsec / 1000000), (unsigned long long)data->late);
	osd_data_close(base->inner);
	osd_lock_destroy(&data->lock);
	free(data);
}

static const struct osd_data_ops model_ops = {
	.close = model_close,
	.open_file = model_open,
	.close_file = model_close_file,
	.read = model_read,
	.write = model_write,
	.truncate = model_truncate,
	.zero = model_zero,
	.next_extent = model_next_extent,
	.copy = model_copy,
	.clone = model_clone,
	.can_clone = model_can_clone,
	.sync = model_sync,
	.share = model_share,
	.sync_directories = model_sync_directories,
	.link = model_link,
	.remove = model_remove,
	.remove_partition = model_remove_partition,
	.sync_all = model_sync_all,
};

enum osd_status osd_model_data_wrap(struct osd_data *inner, const struct osd_model_device *device,
				    struct osd_data **ret_data)
{
	struct model_data *data = calloc(1, sizeof(*data));

	if (!data) {
		osd_data_close(inner);
		return OSD_E_NO_MEMORY;
	}
	data->base.ops = &model_ops;
	data->base.inner = inner;
	data->arm.device = *device;
	osd_lock_init(&data->lock, OSD_RANK_MODEL_STORE);
	*ret_data = &data->base;
	return OSD_OK;
}
