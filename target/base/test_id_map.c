/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_id_map.c -- each id has its own number, also after the map has grown. */
#include "base/id_map.h"

#include "base/test.h"

int main(void)
{
	static const uint64_t steps[] = {1, 4096, UINT64_C(1) << 32, UINT64_C(0x8000000000000001)};

	for (size_t step = 0; step < sizeof(steps) / sizeof(*steps); step++) {
		struct osd_id_map map = {0};
		uint32_t *value;
		bool fresh;

		for (int round = 0; round < 2; round++)
			for (uint32_t i = 1; i <= 5000; i++) {
				value = osd_id_map_at(&map, i * steps[step], &fresh);
				CHECK(value);
				CHECK_EQ(fresh, round == 0);
				CHECK_EQ(*value, round * i);
				*value = i;
			}
		CHECK_EQ(map.count, 5000);
		osd_id_map_release(&map);
		osd_id_map_release(&map);
		CHECK(!map.entries);
	}
	return 0;
}
