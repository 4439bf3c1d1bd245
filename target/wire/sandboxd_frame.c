/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sandboxd_frame.c -- messages between the target and iosd-sandboxd: header, limits, exit
 * report. */
#include "wire/sandboxd_frame.h"

#include "wire/cursor.h"

static bool type_known(uint16_t type)
{
	return (type >= OSD_SANDBOXD_HELLO && type <= OSD_SANDBOXD_BOUND) ||
	       (type >= OSD_SANDBOXD_WELCOME && type <= OSD_SANDBOXD_ROTATED);
}

size_t osd_sandboxd_encode(const struct osd_sandboxd_message *message, uint8_t *bytes,
			   size_t capacity)
{
	struct osd_wr w = osd_wr_init(bytes, capacity);

	if (message->body_bytes > OSD_SANDBOXD_BODY_MAX)
		return 0;
	osd_wr_be(&w, OSD_SANDBOXD_VERSION, 2);
	osd_wr_be(&w, message->type, 2);
	osd_wr_be(&w, message->body_bytes, 4);
	osd_wr_be(&w, message->sandbox_id, 8);
	osd_wr_bytes(&w, message->body, message->body_bytes);
	return w.bad ? 0 : osd_wr_used(&w);
}

bool osd_sandboxd_decode(const uint8_t *bytes, size_t length,
			 struct osd_sandboxd_message *ret_message)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	uint16_t version = (uint16_t)osd_rd_be(&r, 2);
	struct osd_sandboxd_message message = {0};

	message.type = (uint16_t)osd_rd_be(&r, 2);
	message.body_bytes = (uint32_t)osd_rd_be(&r, 4);
	message.sandbox_id = osd_rd_be(&r, 8);
	if (r.bad || version != OSD_SANDBOXD_VERSION || !type_known(message.type) ||
	    message.body_bytes > OSD_SANDBOXD_BODY_MAX || message.body_bytes != osd_rd_left(&r))
		return false;
	message.body = r.at;
	*ret_message = message;
	return true;
}

size_t osd_sandbox_limits_encode(const struct osd_sandbox_limits *limits, uint8_t *bytes,
				 size_t capacity)
{
	struct osd_wr w = osd_wr_init(bytes, capacity);

	osd_wr_be(&w, limits->memory_bytes, 8);
	osd_wr_be(&w, limits->cpu_seconds, 4);
	osd_wr_be(&w, limits->processes, 4);
	osd_wr_be(&w, limits->open_files, 4);
	return w.bad ? 0 : osd_wr_used(&w);
}

bool osd_sandbox_limits_decode(const uint8_t *bytes, size_t length,
			       struct osd_sandbox_limits *ret_limits)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	struct osd_sandbox_limits limits;

	limits.memory_bytes = osd_rd_be(&r, 8);
	limits.cpu_seconds = (uint32_t)osd_rd_be(&r, 4);
	limits.processes = (uint32_t)osd_rd_be(&r, 4);
	limits.open_files = (uint32_t)osd_rd_be(&r, 4);
	if (r.bad || osd_rd_left(&r))
		return false;
	*ret_limits = limits;
	return true;
}

static void write_text(struct osd_wr *w, const uint8_t *text, uint16_t length)
{
	osd_wr_be(w, length, 2);
	osd_wr_bytes(w, text, length);
}

static const uint8_t *read_text(struct osd_rd *r, uint16_t *ret_length)
{
	*ret_length = (uint16_t)osd_rd_be(r, 2);
	return osd_rd_bytes(r, *ret_length);
}

size_t osd_pool_news_encode(const struct osd_pool_news *news, uint8_t *bytes, size_t capacity)
{
	struct osd_wr w = osd_wr_init(bytes, capacity);

	osd_wr_be(&w, news->state, 1);
	write_text(&w, news->name, news->name_bytes);
	write_text(&w, news->set, news->set_bytes);
	write_text(&w, news->why, news->why_bytes);
	return w.bad ? 0 : osd_wr_used(&w);
}

bool osd_pool_news_decode(const uint8_t *bytes, size_t length, struct osd_pool_news *ret_news)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	struct osd_pool_news news;
	uint8_t state = (uint8_t)osd_rd_be(&r, 1);

	news.name = read_text(&r, &news.name_bytes);
	news.set = read_text(&r, &news.set_bytes);
	news.why = read_text(&r, &news.why_bytes);
	if (r.bad || osd_rd_left(&r) || state > OSD_POOL_FAILED || !news.name_bytes)
		return false;
	news.state = (enum osd_pool_state)state;
	*ret_news = news;
	return true;
}

size_t osd_sandbox_exit_encode(const struct osd_sandbox_exit *status, uint8_t *bytes,
			       size_t capacity)
{
	struct osd_wr w = osd_wr_init(bytes, capacity);

	osd_wr_be(&w, (uint32_t)status->wait_status, 4);
	osd_wr_be(&w, status->cpu_user_usec, 8);
	osd_wr_be(&w, status->cpu_system_usec, 8);
	osd_wr_be(&w, status->peak_bytes, 8);
	osd_wr_be(&w, status->out_of_memory, 1);
	return w.bad ? 0 : osd_wr_used(&w);
}

bool osd_sandbox_exit_decode(const uint8_t *bytes, size_t length,
			     struct osd_sandbox_exit *ret_status)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	struct osd_sandbox_exit status;
	uint8_t out_of_memory;

	status.wait_status = (int32_t)(uint32_t)osd_rd_be(&r, 4);
	status.cpu_user_usec = osd_rd_be(&r, 8);
	status.cpu_system_usec = osd_rd_be(&r, 8);
	status.peak_bytes = osd_rd_be(&r, 8);
	out_of_memory = (uint8_t)osd_rd_be(&r, 1);
	if (r.bad || osd_rd_left(&r) || out_of_memory > 1)
		return false;
	status.out_of_memory = out_of_memory;
	*ret_status = status;
	return true;
}
