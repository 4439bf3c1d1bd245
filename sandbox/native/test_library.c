/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_library.c -- loads the library sample.c, damaged in every way that a program can make: the loader
 * refuses it or loads it, and touches no memory but the library's. */
#include "library.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"

#define ROUNDS 50000u

static uint8_t *file;
static size_t length;
static unsigned failures;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                     \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

static int64_t zone(uint32_t part)
{
	return part + 2;
}

static void *find(const char *name)
{
	int64_t (*function)(uint32_t) = zone;
	void *found;

	memcpy(&found, &function, sizeof(found));
	return strcmp(name, "osd_zone") == 0 ? found : dlsym(RTLD_DEFAULT, name);
}

static void release(struct osd_library *library)
{
	if (library->image.base)
		munmap(library->image.base, (size_t)library->image.bytes);
}

static bool load(const uint8_t *bytes, size_t size, char why[OSD_IMAGE_WHY])
{
	struct osd_library library;
	bool loaded = osd_library_load(bytes, size, find, &library, why);

	if (loaded)
		osd_library_function(&library, "osd_function_main");
	release(&library);
	return loaded;
}

static void read_file(const char *path)
{
	FILE *from = fopen(path, "rb");

	file = malloc(1 << 20);
	length = from && file ? fread(file, 1, 1 << 20, from) : 0;
	if (from)
		fclose(from);
}

static void test_it_runs(void)
{
	struct osd_library library;
	char why[OSD_IMAGE_WHY] = "";
	int (*function)(void);
	void *found;

	CHECK(osd_library_load(file, length, find, &library, why));
	CHECK(osd_library_start(&library, why));
	found = osd_library_function(&library, "osd_function_main");
	CHECK(found);
	CHECK(!osd_library_function(&library, "variable"));
	CHECK(!osd_library_function(&library, "osd_zone"));
	CHECK(!osd_library_function(&library, ""));
	memcpy(&function, &found, sizeof(function));
	CHECK(found && function() == 7);
	if (why[0] || !found)
		printf("%s\n", why);
	release(&library);
}

/* Loads a copy with bytes at an offset replaced; the refusal must have these words. */
static void refuse_at(size_t at, const void *bytes, size_t size, const char *words)
{
	uint8_t *copy = malloc(length);
	char why[OSD_IMAGE_WHY] = "";

	memcpy(copy, file, length);
	memcpy(copy + at, bytes, size);
	CHECK(!load(copy, length, why));
	if (!strstr(why, words)) {
		printf("at %zu: '%s', not '%s'\n", at, why, words);
		failures++;
	}
	free(copy);
}

#define REFUSED(at, type, value, words)                                                            \
	do {                                                                                       \
		type bytes = (type)(value);                                                        \
		refuse_at(at, &bytes, sizeof(bytes), words);                                       \
	} while (0)
#define HEADER(field) offsetof(Elf64_Ehdr, field)

static void test_headers(void)
{
	REFUSED(0, uint8_t, 0, "not an ELF file");
	REFUSED(EI_CLASS, uint8_t, ELFCLASS32, "another machine");
	REFUSED(EI_DATA, uint8_t, ELFDATA2MSB, "another machine");
	REFUSED(HEADER(e_machine), uint16_t, EM_PPC64, "another machine (ELF machine 21");
	REFUSED(HEADER(e_type), uint16_t, ET_EXEC, "not a shared library");
	REFUSED(HEADER(e_type), uint16_t, ET_REL, "not a shared library");
	REFUSED(HEADER(e_phoff), uint64_t, UINT64_MAX, "program headers are damaged");
	REFUSED(HEADER(e_phoff), uint64_t, length - 8, "program headers are damaged");
	REFUSED(HEADER(e_phnum), uint16_t, 0, "program headers are damaged");
	REFUSED(HEADER(e_phnum), uint16_t, 0xffff, "program headers are damaged");
	REFUSED(HEADER(e_phentsize), uint16_t, 32, "program headers are damaged");
}

/* The place of the first program header of a type. */
static size_t header_of(uint32_t type)
{
	Elf64_Ehdr header;
	Elf64_Phdr each;

	memcpy(&header, file, sizeof(header));
	for (size_t i = 0; i < header.e_phnum; i++) {
		size_t at = header.e_phoff + i * sizeof(each);

		memcpy(&each, file + at, sizeof(each));
		if (each.p_type == type)
			return at;
	}
	printf("the library has no program header of type %u\n", type);
	exit(1);
}

#define SEGMENT(field) (header_of(PT_LOAD) + offsetof(Elf64_Phdr, field))

static void test_segments(void)
{
	static const uint64_t far[] = {UINT64_MAX, UINT64_MAX - 4095, UINT64_C(1) << 63, 1 << 30};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(far); i++) {
		REFUSED(SEGMENT(p_offset), uint64_t, far[i], "outside the file");
		REFUSED(SEGMENT(p_filesz), uint64_t, far[i], "outside the file");
		REFUSED(SEGMENT(p_vaddr), uint64_t, far[i], "");
	}
	REFUSED(SEGMENT(p_memsz), uint64_t, UINT64_MAX, "more than 1 GiB");
	REFUSED(SEGMENT(p_memsz), uint64_t, 0, "outside the file");
	REFUSED(SEGMENT(p_memsz), uint64_t, 1 << 20, "share a page");
	REFUSED(SEGMENT(p_vaddr), uint64_t, 1 << 24, "do not begin at address 0");
	REFUSED(SEGMENT(p_flags), uint32_t, PF_W | PF_X, "writable and executable");
	REFUSED(header_of(PT_GNU_STACK) + offsetof(Elf64_Phdr, p_flags), uint32_t, PF_R | PF_W | PF_X,
		"executable stack");
	REFUSED(header_of(PT_GNU_STACK), uint32_t, PT_INTERP, "a program and not a shared library");
	REFUSED(header_of(PT_GNU_STACK), uint32_t, PT_TLS, "thread-local");
	REFUSED(header_of(PT_DYNAMIC), uint32_t, PT_NULL, "no dynamic section");
}

/* The place of the first entry of the dynamic section with a tag.  Its segment is in the file as it is in memory, but
 * for the difference of offset and address. */
static size_t entry_of(int64_t tag)
{
	Elf64_Phdr header;
	Elf64_Dyn entry;

	memcpy(&header, file + header_of(PT_DYNAMIC), sizeof(header));
	for (size_t at = header.p_offset;; at += sizeof(entry)) {
		memcpy(&entry, file + at, sizeof(entry));
		if (entry.d_tag == tag)
			return at;
		if (entry.d_tag == DT_NULL || at + 2 * sizeof(entry) > length)
			break;
	}
	printf("the library has no dynamic entry %lld\n", (long long)tag);
	exit(1);
}

#define VALUE(tag) (entry_of(tag) + offsetof(Elf64_Dyn, d_un))

static void test_tables(void)
{
	static const int64_t tables[] = {DT_STRTAB, DT_STRSZ, DT_SYMTAB, DT_GNU_HASH, DT_RELA, DT_RELASZ};
	static const uint64_t bad[] = {0, 1 << 29, UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63};
	char why[OSD_IMAGE_WHY];

	for (size_t i = 0; i < OSD_ARRAY_SIZE(tables); i++) {
		for (size_t j = 0; j < OSD_ARRAY_SIZE(bad); j++) {
			if (bad[j] == 0 && tables[i] == DT_RELASZ)
				continue; /* no relocations */
			REFUSED(VALUE(tables[i]), uint64_t, bad[j], "");
		}
	}
	REFUSED(entry_of(DT_GNU_HASH), uint64_t, DT_DEBUG, "no GNU hash table");
	REFUSED(entry_of(DT_RELACOUNT), uint64_t, DT_TEXTREL, "compile it with -fPIC");
	REFUSED(entry_of(DT_RELACOUNT), uint64_t, DT_REL, "packed relocations");
	REFUSED(VALUE(DT_NEEDED), uint64_t, 1, "needs the library");
	REFUSED(VALUE(DT_NEEDED), uint64_t, UINT64_MAX, "needs the library of a damaged name");
	for (size_t cut = 0; cut < length; cut += 1 + cut / 64)
		load(file, cut, why);
}

/* Random damage, the same in each run, mostly in the headers and tables. */
static void test_damage(void)
{
	uint8_t *copy = malloc(length);
	char why[OSD_IMAGE_WHY];
	unsigned loaded = 0;
	Elf64_Phdr dynamic;

	memcpy(&dynamic, file + header_of(PT_DYNAMIC), sizeof(dynamic));
	srandom(1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		memcpy(copy, file, length);
		for (long left = random() % 3; left >= 0; left--) {
			size_t where = random() % 3 == 0 ? dynamic.p_offset + (size_t)random() % dynamic.p_filesz
							 : (size_t)random() % 0x700;

			if (where < length)
				copy[where] = (uint8_t)(random() % 4 ? random() : 0xff);
		}
		loaded += load(copy, length, why);
	}
	CHECK(loaded > ROUNDS / 100 && loaded < ROUNDS);
	free(copy);
}

int main(void)
{
	read_file(SAMPLE);
	if (length < 1024) {
		printf("cannot read " SAMPLE "\n");
		return 1;
	}
	test_it_runs();
	test_headers();
	test_segments();
	test_tables();
	test_damage();
	free(file);
	return failures ? 1 : 0;
}
