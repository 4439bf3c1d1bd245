// SPDX-License-Identifier: GPL-2.0-or-later
// words.cpp -- an attribute derived from the data: counts the words of the zone and stores their number in an
// attribute of it, 8 bytes big-endian.  Access: write.  Arguments: page and number, 4 bytes big-endian each.
#include "osd.h"

namespace {

class Words {
public:
	void add(const uint8_t *text, uint32_t length)
	{
		for (uint32_t i = 0; i < length; i++) {
			bool blank = text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r');

			count_ += inside_ && blank;
			inside_ = !blank;
		}
	}
	uint64_t count() const { return count_ + inside_; }

private:
	uint64_t count_ = 0;
	bool inside_ = false;
};

uint32_t get_be32(const uint8_t *bytes)
{
	return uint32_t(bytes[0]) << 24 | uint32_t(bytes[1]) << 16 | uint32_t(bytes[2]) << 8 | bytes[3];
}

uint8_t piece[1 << 16];

} // namespace

OSD_FUNCTION(main)
{
	uint64_t partition = uint64_t(osd_zone(OSD_ZONE_PARTITION));
	uint64_t object = uint64_t(osd_zone(OSD_ZONE_OBJECT)), at = 0;
	uint8_t name[8], value[8];
	int64_t got;
	Words words;

	if (osd_args(name, sizeof(name)) != int64_t(sizeof(name)))
		return 2;
	while ((got = osd_read(partition, object, at, piece, sizeof(piece))) > 0) {
		words.add(piece, uint32_t(got));
		at += uint64_t(got);
	}
	for (int i = 0; i < 8; i++)
		value[i] = uint8_t(words.count() >> (56 - 8 * i));
	return got < 0 || osd_setattr(partition, object, get_be32(name), get_be32(name + 4), value,
				      sizeof(value)) < 0;
}
