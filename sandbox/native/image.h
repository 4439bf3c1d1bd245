/* SPDX-License-Identifier: GPL-2.0-or-later */
/* image.h -- the segments of a shared library: checks them in the bytes of a file, and copies them into memory.
 *
 * Order: osd_image_read, osd_image_place, changes by relocation, osd_image_protect.  No function of the library
 * runs here.  Each failure writes a sentence for the author of the library. */
#ifndef OSD_SANDBOX_NATIVE_IMAGE_H
#define OSD_SANDBOX_NATIVE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OSD_IMAGE_SEGMENTS 16
#define OSD_IMAGE_WHY	   200 /* bytes of the sentence */

struct osd_segment {
	uint64_t offset, file_bytes; /* in the file; checked against its length */
	uint64_t address, bytes;     /* in the image; the rest after file_bytes is zero */
	int protection;		     /* PROT_*; readable, and never writable and executable */
};

struct osd_image {
	struct osd_segment segments[OSD_IMAGE_SEGMENTS]; /* by address; no two share a page */
	size_t count;
	struct osd_segment dynamic, relro; /* bytes 0: there is none */
	uint8_t *base;			   /* NULL: not placed */
	uint64_t bytes;			   /* of address space, from address 0 of the image */
	bool no_memory;			   /* why osd_image_place failed */
};

/* Reads headers and segments.  The file must be a shared library of this machine, ELF, 64 bits.  False: why. */
bool osd_image_read(const uint8_t *file, size_t length, struct osd_image *ret_image,
		    char why[OSD_IMAGE_WHY]);

/* Maps memory, readable and writable, and copies the segments.  It is never unmapped: the process ends after the
 * job.  False: why. */
bool osd_image_place(struct osd_image *image, const uint8_t *file, char why[OSD_IMAGE_WHY]);

/* Gives each segment its own protection, and makes the part that relocation has finished read-only.  False: why. */
bool osd_image_protect(const struct osd_image *image, char why[OSD_IMAGE_WHY]);

/* Memory of the image from an address on; NULL: the range is not inside one segment. */
uint8_t *osd_image_at(const struct osd_image *image, uint64_t address, uint64_t bytes);
/* The same, if the segment has this protection (PROT_WRITE, PROT_EXEC). */
uint8_t *osd_image_at_with(const struct osd_image *image, uint64_t address, uint64_t bytes,
			   int protection);

#endif
