/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_name_list.c -- invariant: parameters of names that decode have a known verb, and three texts that lie one
 * behind the other up to the end of the bytes, or up to the data of PUT. */
#include "fuzz.h"
#include "wire/name_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct osd_name_params params;
	uint16_t field = 0;

	if (osd_name_params_decode(data, size, &params, &field) != OSD_OK) {
		HOLDS(field < OSD_NAME_PARAMS_HEADER);
		return 0;
	}
	HOLDS(params.data_at <= OSD_NAME_PARAMS_MAX);
	HOLDS(size - params.data_at == (params.verb == OSD_NAME_PUT ? params.most : 0));
	HOLDS(params.verb == OSD_NAME_LIST || params.most <= OSD_NAME_DATA_MAX);
	HOLDS(params.verb == data[0]);
	HOLDS(params.path.bytes == data + OSD_NAME_PARAMS_HEADER);
	HOLDS(params.other.bytes == params.path.bytes + params.path.length);
	HOLDS(params.prefix.bytes == params.other.bytes + params.other.length);
	HOLDS(params.prefix.bytes + params.prefix.length == data + params.data_at);
	touch(params.path.bytes, params.path.length);
	touch(params.other.bytes, params.other.length);
	touch(params.prefix.bytes, params.prefix.length);
	return 0;
}
