/* SPDX-License-Identifier: GPL-2.0-or-later */
/* image.c -- see image.h. */
#include "image.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE	     EM_X86_64
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define MACHINE	     EM_AARCH64
#define MACHINE_NAME "aarch64"
#else
#error "the engine native has no relocations for this machine (library.c)"
#endif

#define SPAN_MAX    (UINT64_C(1) << 30) /* bytes of address space; the job's memory limit is usually less */
#define HEADERS_MAX 64			/* program headers; linkers write about ten */

static bool say(char why[OSD_IMAGE_WHY], const char *what)
{
	snprintf(why, OSD_IMAGE_WHY, "%s", what);
	return false;
}

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t page_of(uint64_t address)
{
	return address & ~(page_bytes() - 1);
}

/* Addresses are at most SPAN_MAX. */
static uint64_t page_after(uint64_t address)
{
	return page_of(address + page_bytes() - 1);
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool check_header(const Elf64_Ehdr *header, size_t length, char why[OSD_IMAGE_WHY])
{
	uint64_t table = (uint64_t)header->e_phnum * sizeof(Elf64_Phdr);

	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return say(why, "it is not an ELF file: compile it with -shared -fPIC");
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    header->e_machine != MACHINE) {
		snprintf(why, OSD_IMAGE_WHY,
			 "it is for another machine (ELF machine %u, class %u): this target is " MACHINE_NAME,
			 header->e_machine, header->e_ident[EI_CLASS]);
		return false;
	}
	if (header->e_type != ET_DYN)
		return say(why, "it is not a shared library: link it with -shared");
	if (header->e_ident[EI_VERSION] != EV_CURRENT || header->e_version != EV_CURRENT ||
	    header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0 ||
	    header->e_phnum > HEADERS_MAX || header->e_phoff > length ||
	    table > length - header->e_phoff)
		return say(why, "its program headers are damaged");
	return true;
}

static bool add_segment(struct osd_image *image, const Elf64_Phdr *header, char why[OSD_IMAGE_WHY])
{
	struct osd_segment *segment = &image->segments[image->count];

	if (image->count == OSD_IMAGE_SEGMENTS)
		return say(why, "it has more than 16 segments");
	if (header->p_flags & PF_W && header->p_flags & PF_X)
		return say(why, "it has a segment that is writable and executable");
	if (page_of(header->p_vaddr) < page_after(image->bytes) ||
	    (image->count == 0 && page_of(header->p_vaddr) != 0))
		return say(why, "its segments do not begin at address 0, or share a page");
	*segment = (struct osd_segment){
		.offset = header->p_offset,
		.file_bytes = header->p_filesz,
		.address = header->p_vaddr,
		.bytes = header->p_memsz,
		.protection = PROT_READ | (header->p_flags & PF_W ? PROT_WRITE : 0) |
			      (header->p_flags & PF_X ? PROT_EXEC : 0),
	};
	image->count++;
	image->bytes = header->p_vaddr + header->p_memsz;
	return true;
}

static bool take_header(struct osd_image *image, const Elf64_Phdr *header, size_t length,
			char why[OSD_IMAGE_WHY])
{
	const struct osd_segment range = {.address = header->p_vaddr, .bytes = header->p_memsz};

	switch (header->p_type) {
	case PT_INTERP:
		return say(why, "it is a program and not a shared library: link it with -shared");
	case PT_TLS:
		return say(why, "it has thread-local variables, which the engine does not support");
	case PT_GNU_STACK:
		return !(header->p_flags & PF_X) || say(why, "it requires an executable stack");
	case PT_LOAD:
	case PT_DYNAMIC:
	case PT_GNU_RELRO:
		break;
	default:
		return true;
	}
	if (header->p_filesz > header->p_memsz || header->p_offset > length ||
	    header->p_filesz > length - header->p_offset || header->p_vaddr > SPAN_MAX ||
	    header->p_memsz > SPAN_MAX - header->p_vaddr)
		return say(why, "a segment is outside the file, or needs more than 1 GiB");
	if (header->p_type == PT_LOAD)
		return header->p_memsz == 0 || add_segment(image, header, why);
	*(header->p_type == PT_DYNAMIC ? &image->dynamic : &image->relro) = range;
	return true;
}

bool osd_image_read(const uint8_t *file, size_t length, struct osd_image *ret_image,
		    char why[OSD_IMAGE_WHY])
{
	struct osd_image image = {0};
	Elf64_Ehdr header;
	Elf64_Phdr each;

	if (length < sizeof(header))
		return say(why, "it is not an ELF file: it is too short");
	/* Copied out: the code follows other texts of the job, so the file need not be aligned. */
	memcpy(&header, file, sizeof(header));
	if (!check_header(&header, length, why))
		return false;
	for (size_t i = 0; i < header.e_phnum; i++) {
		memcpy(&each, file + header.e_phoff + i * sizeof(each), sizeof(each));
		if (!take_header(&image, &each, length, why))
			return false;
	}
	if (image.count == 0 || image.dynamic.bytes == 0)
		return say(why, "it has no segments, or no dynamic section");
	*ret_image = image;
	return true;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool protect(const struct osd_image *image, const struct osd_segment *segment, int protection)
{
	uint64_t begin = page_of(segment->address);
	uint64_t end = page_after(segment->address + segment->bytes);

	return mprotect(image->base + begin, (size_t)(end - begin), protection) == 0;
}

static bool no_memory(struct osd_image *image, char why[OSD_IMAGE_WHY])
{
	image->no_memory = errno == ENOMEM;
	snprintf(why, OSD_IMAGE_WHY, "cannot map its %llu bytes: %s",
		 (unsigned long long)image->bytes, strerror(errno));
	return false;
}

bool osd_image_place(struct osd_image *image, const uint8_t *file, char why[OSD_IMAGE_WHY])
{
	/* Pages between the segments stay without access. */
	void *base = mmap(NULL, (size_t)page_after(image->bytes), PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return no_memory(image, why);
	image->base = base;
	for (size_t i = 0; i < image->count; i++) {
		const struct osd_segment *segment = &image->segments[i];

		if (!protect(image, segment, PROT_READ | PROT_WRITE))
			return no_memory(image, why);
		memcpy(image->base + segment->address, file + segment->offset,
		       (size_t)segment->file_bytes);
	}
	return true;
}

bool osd_image_protect(const struct osd_image *image, char why[OSD_IMAGE_WHY])
{
	const struct osd_segment *relro = &image->relro;
	uint64_t begin = page_of(relro->address), end = page_of(relro->address + relro->bytes);
	bool fine = true;

	for (size_t i = 0; i < image->count && fine; i++)
		fine = protect(image, &image->segments[i], image->segments[i].protection);
	/* The file may name any address: outside the image, this would change other memory.  The last
	 * page of it may have other variables. */
	if (fine && end > begin && osd_image_at_with(image, relro->address, relro->bytes, PROT_WRITE))
		fine = mprotect(image->base + begin, (size_t)(end - begin), PROT_READ) == 0;
	if (!fine)
		snprintf(why, OSD_IMAGE_WHY, "cannot protect its memory: %s", strerror(errno));
	return fine;
}

/* Subtracts instead of adding: address and bytes come from the file, so a sum may overflow. */
uint8_t *osd_image_at_with(const struct osd_image *image, uint64_t address, uint64_t bytes,
			   int protection)
{
	for (size_t i = 0; i < image->count; i++) {
		const struct osd_segment *segment = &image->segments[i];

		if (address >= segment->address && address - segment->address <= segment->bytes &&
		    bytes <= segment->bytes - (address - segment->address) &&
		    (segment->protection & protection) == protection)
			return image->base + address;
	}
	return NULL;
}

uint8_t *osd_image_at(const struct osd_image *image, uint64_t address, uint64_t bytes)
{
	return osd_image_at_with(image, address, bytes, 0);
}
