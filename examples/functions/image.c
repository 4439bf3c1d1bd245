/* SPDX-License-Identifier: GPL-2.0-or-later */
/* image.c -- what READs of an image pass through: edge detection (Oasis), a median filter (MVSS), a thumbnail.
 *
 * Images are PGM or PPM in binary form (P5, P6), with values of 8 bits.  edge: the gradient of Sobel.  median: of 3 x 3
 * pixels.  thumbnail: at most size=N pixels wide and high (128), each the mean of those that it stands for.  The first
 * two return an image of the same size.  At the borders, the nearest pixels stand for those outside. */
#include "osd_stage.h"

#define SIDE_MAX (1u << 20)

struct image {
	uint32_t width, height, channels;
	const uint8_t *pixels;
};

/* ---- the format --------------------------------------------------------------------------------- */

static int is_space(uint8_t byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* The number behind white space and comments, from 1 to SIDE_MAX; 0: there is none. */
static uint32_t number(const struct osd_stage *stage, size_t *at)
{
	const uint8_t *text = stage->data;
	uint32_t value = 0;

	while (*at < stage->length && (is_space(text[*at]) || text[*at] == '#')) {
		if (text[*at] == '#')
			while (*at < stage->length && text[*at] != '\n')
				++*at;
		else
			++*at;
	}
	for (; *at < stage->length && text[*at] >= '0' && text[*at] <= '9' && value <= SIDE_MAX; ++*at)
		value = value * 10 + (uint32_t)(text[*at] - '0');
	return value <= SIDE_MAX ? value : 0;
}

/* 0, or a failure. */
static int decode(const struct osd_stage *stage, struct image *image)
{
	size_t at = 2;

	if (stage->length < 2 || stage->data[0] != 'P' ||
	    (stage->data[1] != '5' && stage->data[1] != '6'))
		return 1;
	image->channels = stage->data[1] == '5' ? 1 : 3;
	image->width = number(stage, &at);
	image->height = number(stage, &at);
	if (!image->width || !image->height || number(stage, &at) != 255 || at == stage->length ||
	    !is_space(stage->data[at]))
		return 1;
	image->pixels = stage->data + at + 1;
	return (uint64_t)image->width * image->height * image->channels > stage->length - at - 1;
}

static char *put_number(char *to, uint32_t value)
{
	char digits[10];
	int count = 0;

	do {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (count)
		*to++ = digits[--count];
	return to;
}

/* 0, or a failure. */
static int give(const struct image *image)
{
	char header[40] = {'P', image->channels == 1 ? '5' : '6', '\n'}, *end = header + 3;

	end = put_number(end, image->width);
	*end++ = ' ';
	end = put_number(end, image->height);
	memcpy(end, "\n255\n", 5);
	end += 5;
	return osd_result(OSD_BYTES, header, (uint32_t)(end - header)) < 0 ||
	       osd_result(OSD_BYTES, image->pixels,
			  image->width * image->height * image->channels) < 0;
}

/* ---- filters of 3 x 3 pixels -------------------------------------------------------------------- */

typedef uint8_t filter(const uint8_t v[9]); /* row by row */

static uint8_t sobel(const uint8_t v[9])
{
	int x = v[2] + 2 * v[5] + v[8] - v[0] - 2 * v[3] - v[6];
	int y = v[6] + 2 * v[7] + v[8] - v[0] - 2 * v[1] - v[2];
	int sum = (x < 0 ? -x : x) + (y < 0 ? -y : y);

	return (uint8_t)(sum > 255 ? 255 : sum);
}

static inline void order(uint8_t *a, uint8_t *b)
{
	uint8_t low = *a < *b ? *a : *b;

	*b = *a < *b ? *b : *a;
	*a = low;
}

/* The fewest comparisons that bring the median of nine to its place. */
static uint8_t median(const uint8_t values[9])
{
	static const uint8_t pairs[][2] = {{1, 2}, {4, 5}, {7, 8}, {0, 1}, {3, 4}, {6, 7}, {1, 2},
					   {4, 5}, {7, 8}, {0, 3}, {5, 8}, {4, 7}, {3, 6}, {1, 4},
					   {2, 5}, {4, 7}, {4, 2}, {6, 4}, {4, 2}};
	uint8_t v[9];

	memcpy(v, values, sizeof(v));
	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		order(&v[pairs[i][0]], &v[pairs[i][1]]);
	return v[4];
}

static void filter_row(const struct image *image, uint32_t row, uint8_t *to, filter *apply)
{
	const uint32_t pitch = image->width * image->channels;
	const uint8_t *here = image->pixels + (size_t)row * pitch;
	const uint8_t *rows[3] = {row ? here - pitch : here, here,
				  row + 1 < image->height ? here + pitch : here};

	for (uint32_t i = 0; i < pitch; i++) {
		uint32_t left = i < image->channels ? i : i - image->channels;
		uint32_t right = i + image->channels < pitch ? i + image->channels : i;
		const uint8_t v[9] = {rows[0][left], rows[0][i],     rows[0][right],
				      rows[1][left], rows[1][i],     rows[1][right],
				      rows[2][left], rows[2][i],     rows[2][right]};

		to[i] = apply(v);
	}
}

static inline int filter_image(filter *apply)
{
	struct osd_stage stage;
	struct image image;
	uint8_t *made;

	if (osd_stage_open(&stage) || decode(&stage, &image))
		return 1;
	made = osd_allocate((size_t)image.width * image.height * image.channels);
	if (!made)
		return 1;
	for (uint32_t row = 0; row < image.height; row++)
		filter_row(&image, row, made + (size_t)row * image.width * image.channels, apply);
	image.pixels = made;
	return give(&image);
}

OSD_FUNCTION(edge)
{
	return filter_image(sobel);
}

OSD_FUNCTION(median)
{
	return filter_image(median);
}

/* ---- thumbnails --------------------------------------------------------------------------------- */

static uint32_t scaled(uint32_t side, uint32_t longest, uint32_t size)
{
	uint32_t made = (uint32_t)((uint64_t)side * size / longest);

	return made ? made : 1;
}

/* The mean of the pixels in the columns [left, right) and the rows [top, bottom). */
static uint8_t mean(const struct image *image, uint32_t left, uint32_t right, uint32_t top,
		    uint32_t bottom, uint32_t channel)
{
	uint64_t sum = 0, count = (uint64_t)(right - left) * (bottom - top);

	for (uint32_t y = top; y < bottom; y++)
		for (uint32_t x = left; x < right; x++)
			sum += image->pixels[((size_t)y * image->width + x) * image->channels + channel];
	return (uint8_t)((sum + count / 2) / count);
}

static void shrink(const struct image *image, const struct image *small, uint8_t *to)
{
	for (uint32_t y = 0; y < small->height; y++)
		for (uint32_t x = 0; x < small->width; x++)
			for (uint32_t channel = 0; channel < image->channels; channel++)
				*to++ = mean(image,
					     (uint32_t)((uint64_t)x * image->width / small->width),
					     (uint32_t)((x + UINT64_C(1)) * image->width / small->width),
					     (uint32_t)((uint64_t)y * image->height / small->height),
					     (uint32_t)((y + UINT64_C(1)) * image->height / small->height),
					     channel);
}

OSD_FUNCTION(thumbnail)
{
	struct osd_stage stage;
	struct image image, small;
	uint32_t size, longest;
	uint8_t *made;

	if (osd_stage_open(&stage) || decode(&stage, &image))
		return 1;
	size = osd_stage_option(&stage, "size", 128);
	longest = image.width > image.height ? image.width : image.height;
	if (size == 0 || size >= longest)
		return size == 0 || give(&image);
	small = (struct image){scaled(image.width, longest, size), scaled(image.height, longest, size),
			       image.channels, NULL};
	made = osd_allocate((size_t)small.width * small.height * small.channels);
	if (!made)
		return 1;
	shrink(&image, &small, made);
	small.pixels = made;
	return give(&small);
}
