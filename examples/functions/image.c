/* SPDX-License-Identifier: GPL-2.0-or-later */
/* image.c -- functions that READs of an image pass through: edge detection (Oasis), a median filter (MVSS), thumbnails.
 *
 * Images are PGM or PPM in binary form (P5, P6), with values of 8 bits, at most 255.
 *   edge       the gradient of Sobel
 *   bitmap     a PBM (P4) of the pixels whose gradient is threshold=N, 1 to 255 (128), or greater
 *   median     of 3 x 3 pixels
 *   thumbnail  at most size=N pixels wide and high (128); a pixel is the mean of those that it stands for
 * edge and median change the values of the pixels alone: the header, and bytes behind the image, stay.  bitmap and
 * thumbnail write a header of their own.  At a border, the nearest pixels stand for those outside.
 *
 * `osd fn stock` stores this file as it is compiled in pyosd/functions/stock/image.wasm.  After a change:
 * make -C examples/functions stock */
#include "osd_lanes.h"
#include "osd_stage.h"

#define SIDE_MAX (1u << 20)

struct image {
	uint32_t width, height, channels;
	uint32_t most; /* the greatest value */
	const uint8_t *pixels;
};

static size_t bytes_of(const struct image *image)
{
	return (size_t)image->width * image->height * image->channels;
}

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
		return osd_stage_fail("the data are no image in the format PGM or PPM, binary (P5 or P6)");
	image->channels = stage->data[1] == '5' ? 1 : 3;
	image->width = number(stage, &at);
	image->height = number(stage, &at);
	if (!image->width || !image->height)
		return osd_stage_fail("an image must be 1 to 1048576 pixels wide and high");
	image->most = number(stage, &at);
	if (!image->most || image->most > UINT8_MAX)
		return osd_stage_fail("the greatest value of a pixel must be 1 to 255");
	if (at == stage->length || !is_space(stage->data[at]))
		return osd_stage_fail("the header of the image is not complete");
	image->pixels = stage->data + at + 1;
	if ((uint64_t)image->width * image->height * image->channels > stage->length - at - 1)
		return osd_stage_fail("the image ends before its last pixel");
	return 0;
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

/* 0, or a failure.  kind: 4, 5 or 6; pitch: bytes of a row. */
static int give(const struct image *image, char kind, size_t pitch)
{
	char header[40] = {'P', kind, '\n'}, *end = header + 3;

	end = put_number(end, image->width);
	*end++ = ' ';
	end = put_number(end, image->height);
	*end++ = '\n';
	if (kind != '4') {
		end = put_number(end, image->most);
		*end++ = '\n';
	}
	return osd_result(OSD_BYTES, header, (uint32_t)(end - header)) < 0 ||
	       osd_result(OSD_BYTES, image->pixels, (uint32_t)(pitch * image->height)) < 0;
}

static int give_pixels(const struct image *image)
{
	return give(image, image->channels == 1 ? '5' : '6', (size_t)image->width * image->channels);
}

/* ---- filters of 3 x 3 pixels -------------------------------------------------------------------- */

/* The row of a pixel with those above and below. */
struct rows {
	const uint8_t *above, *here, *below;
	uint32_t pitch, channels;
};

/* Filters `count` bytes, of which none is at a border: those beside a byte are `channels` before and behind it. */
typedef void filter(const struct rows *rows, uint8_t *restrict to, size_t count);

#define EIGHT 8u
typedef uint8_t bytes8 __attribute__((vector_size(8)));
typedef uint8_t unaligned8 __attribute__((vector_size(8), aligned(1), may_alias));
typedef int16_t shorts8 __attribute__((vector_size(16)));

static inline shorts8 wide(const uint8_t *from)
{
	return __builtin_convertvector(*(const unaligned8 *)from, shorts8);
}

static inline shorts8 positive(shorts8 x)
{
	return (x ^ x >> 15) - (x >> 15);
}

static inline bytes8 sobel8(const uint8_t *above, const uint8_t *here, const uint8_t *below, size_t c)
{
	shorts8 low = wide(below - c) - wide(above + c), high = wide(below + c) - wide(above - c);
	shorts8 x = high - low + (wide(here + c) - wide(here - c)) * 2;
	shorts8 y = high + low + (wide(below) - wide(above)) * 2;
	shorts8 sum = positive(x) + positive(y);

	return __builtin_convertvector(sum | (sum > 255), bytes8);
}

static void sobel(const struct rows *rows, uint8_t *restrict to, size_t count)
{
	const uint8_t *a = rows->above, *h = rows->here, *b = rows->below;
	const size_t c = rows->channels;
	size_t i = 0;

	for (; i + EIGHT <= count; i += EIGHT)
		*(unaligned8 *)(to + i) = sobel8(a + i, h + i, b + i, c);
	for (; i < count; i++) {
		int low = *(b + i - c) - a[i + c], high = b[i + c] - *(a + i - c);
		int x = high - low + 2 * (h[i + c] - *(h + i - c));
		int y = high + low + 2 * (b[i] - a[i]);
		int sum = (x < 0 ? -x : x) + (y < 0 ? -y : y);

		to[i] = (uint8_t)(sum > 255 ? 255 : sum);
	}
}

static inline void order(uint8_t *a, uint8_t *b)
{
	uint8_t low = *a < *b ? *a : *b;

	*b = *a < *b ? *b : *a;
	*a = low;
}

/* The fewest comparisons that bring the median of nine to its place.  Compilers make one instruction for many pixels
 * of each. */
static inline uint8_t median9(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint8_t e, uint8_t f, uint8_t g,
			      uint8_t h, uint8_t i)
{
	order(&b, &c), order(&e, &f), order(&h, &i), order(&a, &b), order(&d, &e);
	order(&g, &h), order(&b, &c), order(&e, &f), order(&h, &i), order(&a, &d);
	order(&f, &i), order(&e, &h), order(&d, &g), order(&b, &e), order(&c, &f);
	order(&e, &h), order(&e, &c), order(&g, &e), order(&e, &c);
	return e;
}

static void median3x3(const struct rows *rows, uint8_t *restrict to, size_t count)
{
	const size_t c = rows->channels;
	const uint8_t *a = rows->above - c, *h = rows->here - c, *b = rows->below - c;

	for (size_t i = 0; i < count; i++)
		to[i] = median9(a[i], a[i + c], a[i + 2 * c], h[i], h[i + c], h[i + 2 * c], b[i],
				b[i + c], b[i + 2 * c]);
}

/* At a border, the nearest pixels stand for those outside: of the first and of the last pixel of a row. */
static void filter_border(const struct rows *rows, uint32_t at, uint8_t *to, filter *apply)
{
	const uint32_t c = rows->channels, left = at < c ? at : at - c,
		       right = at + c < rows->pitch ? at + c : at;
	const uint8_t *lines[3] = {rows->above, rows->here, rows->below};
	uint8_t near[3][3];

	for (int i = 0; i < 3; i++) {
		near[i][0] = lines[i][left];
		near[i][1] = lines[i][at];
		near[i][2] = lines[i][right];
	}
	apply(&(struct rows){&near[0][1], &near[1][1], &near[2][1], 3, 1}, to + at, 1);
}

static void filter_row(const struct image *image, uint32_t row, uint8_t *to, filter *apply)
{
	const uint32_t c = image->channels, pitch = image->width * c;
	const uint8_t *here = image->pixels + (size_t)row * pitch;
	struct rows rows = {row ? here - pitch : here, here,
			    row + 1 < image->height ? here + pitch : here, pitch, c};

	for (uint32_t i = 0; i < c; i++) {
		filter_border(&rows, i, to, apply);
		filter_border(&rows, pitch - 1 - i, to, apply);
	}
	if (image->width > 2) {
		rows.above += c;
		rows.here += c;
		rows.below += c;
		apply(&rows, to + c, pitch - 2 * c);
	}
}

/* The result is the input with other pixels, in one piece: such a result is not copied through calls. */
static inline int filter_image(const struct osd_stage *stage, filter *apply)
{
	struct image image;
	uint8_t *made, *pixels, *end;

	if (decode(stage, &image))
		return 1;
	made = osd_allocate(stage->length);
	if (!made)
		return osd_stage_fail(OSD_STAGE_NO_MEMORY);
	pixels = made + (image.pixels - stage->data);
	end = pixels + bytes_of(&image);
	memcpy(made, stage->data, (size_t)(pixels - made));
	for (uint32_t row = 0; row < image.height; row++)
		filter_row(&image, row, pixels + (size_t)row * image.width * image.channels, apply);
	for (uint8_t *value = pixels; image.most < UINT8_MAX && value < end; value++)
		*value = *value < image.most ? *value : (uint8_t)image.most;
	memcpy(end, image.pixels + bytes_of(&image), stage->length - (size_t)(end - made));
	return osd_result(OSD_BYTES, made, (uint32_t)stage->length) < 0;
}

OSD_FUNCTION(median)
{
	struct osd_stage stage;

	if (osd_stage_open(&stage))
		return 1;
	if (stage.parameters_length)
		return osd_stage_fail("median has no parameters");
	return filter_image(&stage, median3x3);
}

/* ---- edges -------------------------------------------------------------------------------------- */

OSD_FUNCTION(edge)
{
	struct osd_stage stage;

	if (osd_stage_open(&stage))
		return 1;
	if (stage.parameters_length)
		return osd_stage_fail("edge has no parameters");
	return filter_image(&stage, sobel);
}

/* The eight bits of eight bytes that are 0 or 255: the first is the highest.  Memory is little-endian: in WebAssembly,
 * x86-64 and aarch64. */
static uint8_t bits_of(uint64_t bytes)
{
	return (uint8_t)((bytes & 0x0102040810204080) * 0x0101010101010101 >> 56);
}

/* A bit for each pixel: whether a channel has a gradient from `threshold` on. */
static void mark(const uint8_t *gradients, const struct image *image, uint8_t threshold, uint8_t *to)
{
	typedef uint64_t halves __attribute__((vector_size(16)));
	uint32_t x = 0;

	if (image->channels == 1)
		for (; x + OSD_LANES <= image->width; x += OSD_LANES) {
			halves strong = (halves)(osd_lanes_at(gradients + x) >= osd_lanes_of(threshold));

			to[x / 8] = bits_of(strong[0]);
			to[x / 8 + 1] = bits_of(strong[1]);
		}
	for (; x < image->width; x++)
		for (uint32_t channel = 0; channel < image->channels; channel++)
			if (gradients[x * image->channels + channel] >= threshold) {
				to[x / 8] |= (uint8_t)(0x80 >> x % 8);
				break;
			}
}

static int mark_image(const struct osd_stage *stage, uint8_t threshold)
{
	struct image image;
	size_t pitch;
	uint8_t *gradients, *made;

	if (decode(stage, &image))
		return 1;
	pitch = (image.width + 7) / 8;
	gradients = osd_allocate((size_t)image.width * image.channels);
	made = osd_allocate(pitch * image.height);
	if (!gradients || !made)
		return osd_stage_fail(OSD_STAGE_NO_MEMORY);
	for (uint32_t row = 0; row < image.height; row++) {
		filter_row(&image, row, gradients, sobel);
		mark(gradients, &image, threshold, made + row * pitch);
	}
	image.pixels = made;
	return give(&image, '4', pitch);
}

OSD_FUNCTION(bitmap)
{
	struct osd_stage stage;
	uint32_t threshold = 128;

	if (osd_stage_open(&stage))
		return 1;
	if (osd_stage_number_of(&stage, "threshold", 1, UINT8_MAX, &threshold))
		return osd_stage_fail("the parameter is threshold=N, 1 to 255");
	return mark_image(&stage, (uint8_t)threshold);
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
	uint32_t size = 128, longest;
	uint8_t *made;

	if (osd_stage_open(&stage))
		return 1;
	if (osd_stage_number_of(&stage, "size", 1, SIDE_MAX, &size))
		return osd_stage_fail("the parameter is size=N, 1 to 1048576");
	if (decode(&stage, &image))
		return 1;
	longest = image.width > image.height ? image.width : image.height;
	if (size >= longest)
		return give_pixels(&image);
	small = image;
	small.width = scaled(image.width, longest, size);
	small.height = scaled(image.height, longest, size);
	made = osd_allocate(bytes_of(&small));
	if (!made)
		return osd_stage_fail(OSD_STAGE_NO_MEMORY);
	shrink(&image, &small, made);
	small.pixels = made;
	return give_pixels(&small);
}
