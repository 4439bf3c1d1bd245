/* SPDX-License-Identifier: GPL-2.0-or-later */
/* library.c -- see library.h.  Every address and count comes from the file.  Each is checked when it is used,
 * because a relocation may change the tables.  Tables need not be aligned, so they are copied out. */
#include "library.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"

#if defined(__x86_64__)
enum { RELATIVE = R_X86_64_RELATIVE, WORD = R_X86_64_64, DATA = R_X86_64_GLOB_DAT, CALL = R_X86_64_JUMP_SLOT };
#elif defined(__aarch64__)
enum { RELATIVE = R_AARCH64_RELATIVE, WORD = R_AARCH64_ABS64, DATA = R_AARCH64_GLOB_DAT, CALL = R_AARCH64_JUMP_SLOT };
#endif

#ifndef DT_RELR
#define DT_RELR 36
#endif

#define SYMBOLS_MAX (1u << 20)

/* Addresses of tables from the dynamic section; 0: there is none. */
struct dynamic {
	uint64_t hash, rela, rela_bytes, calls, calls_bytes;
};

static bool say(char why[OSD_IMAGE_WHY], const char *what)
{
	snprintf(why, OSD_IMAGE_WHY, "%s", what);
	return false;
}

/* False: outside the image. */
static bool copy(const struct osd_library *library, uint64_t address, void *to, size_t bytes)
{
	const uint8_t *from = osd_image_at(&library->image, address, bytes);

	if (from)
		memcpy(to, from, bytes);
	return from != NULL;
}

/* NULL: it is no string of the library. */
static const char *string_at(const struct osd_library *library, uint64_t offset)
{
	const char *text;
	uint64_t room;

	if (offset >= library->string_bytes)
		return NULL;
	room = library->string_bytes - offset;
	text = (const char *)osd_image_at(&library->image, library->strings + offset, room);
	return text && memchr(text, '\0', (size_t)room) ? text : NULL;
}

/* ---- the dynamic section --------------------------------------------------------------------- */

static bool is_refused(const Elf64_Dyn *entry, char why[OSD_IMAGE_WHY])
{
	switch (entry->d_tag) {
	case DT_TEXTREL:
		break;
	case DT_FLAGS:
		if (!(entry->d_un.d_val & DF_TEXTREL))
			return false;
		break;
	case DT_REL:
	case DT_RELR:
		return !say(why, "it has packed relocations: link it without -z pack-relative-relocs");
	default:
		return false;
	}
	return !say(why, "its code needs relocations: compile it with -fPIC");
}

static void take_entry(struct osd_library *library, struct dynamic *dynamic, const Elf64_Dyn *entry)
{
	const struct {
		Elf64_Sxword tag;
		uint64_t *to;
	} rows[] = {
		{DT_STRTAB, &library->strings},
		{DT_STRSZ, &library->string_bytes},
		{DT_SYMTAB, &library->symbols},
		{DT_INIT, &library->init},
		{DT_INIT_ARRAY, &library->init_array},
		{DT_INIT_ARRAYSZ, &library->init_array_bytes},
		{DT_GNU_HASH, &dynamic->hash},
		{DT_RELA, &dynamic->rela},
		{DT_RELASZ, &dynamic->rela_bytes},
		{DT_JMPREL, &dynamic->calls},
		{DT_PLTRELSZ, &dynamic->calls_bytes},
	};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(rows); i++)
		if (rows[i].tag == entry->d_tag)
			*rows[i].to = entry->d_un.d_val;
}

static bool check_needed(const struct osd_library *library, uint64_t offset, char why[OSD_IMAGE_WHY])
{
	static const char *const there[] = {"libc.so.6", "libm.so.6"};
	const char *name = string_at(library, offset);

	if (name && osd_find_word(there, OSD_ARRAY_SIZE(there), name, &(uint8_t){0}))
		return true;
	snprintf(why, OSD_IMAGE_WHY,
		 "it needs the library %.60s: a function has libc.so.6 and libm.so.6; link others into it",
		 name ? name : "of a damaged name");
	return false;
}

/* Reads the entries twice: DT_NEEDED uses the string table, which may come after it. */
static bool read_dynamic(struct osd_library *library, struct dynamic *dynamic, char why[OSD_IMAGE_WHY])
{
	const struct osd_segment *table = &library->image.dynamic;
	size_t count = (size_t)(table->bytes / sizeof(Elf64_Dyn));
	Elf64_Dyn entry;

	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < count; i++) {
			if (!copy(library, table->address + i * sizeof(entry), &entry, sizeof(entry)))
				return say(why, "its dynamic section is outside its segments");
			if (entry.d_tag == DT_NULL)
				break;
			if (pass == 0 && is_refused(&entry, why))
				return false;
			if (pass == 0)
				take_entry(library, dynamic, &entry);
			else if (entry.d_tag == DT_NEEDED &&
				 !check_needed(library, entry.d_un.d_val, why))
				return false;
		}
	}
	return true;
}

/* ---- symbols --------------------------------------------------------------------------------- */

/* The hash table has all symbols that the library exports, which are the last ones: the end of the last chain. */
static bool count_symbols(struct osd_library *library, uint64_t hash)
{
	uint32_t header[4], last = 0, word; /* buckets, first symbol, words of the filter, shift */
	uint64_t buckets, chains;

	if (hash == 0 || !copy(library, hash, header, sizeof(header)) || header[0] > SYMBOLS_MAX ||
	    header[2] > SYMBOLS_MAX)
		return false;
	buckets = hash + sizeof(header) + (uint64_t)header[2] * 8;
	chains = buckets + (uint64_t)header[0] * sizeof(word);
	for (uint32_t i = 0; i < header[0]; i++) {
		if (!copy(library, buckets + (uint64_t)i * sizeof(word), &word, sizeof(word)))
			return false;
		last = OSD_MAX(last, word);
	}
	library->symbol_count = header[1];
	if (last < header[1]) /* it exports nothing */
		return header[1] <= SYMBOLS_MAX;
	for (word = 0; !(word & 1); last++)
		if (last >= SYMBOLS_MAX ||
		    !copy(library, chains + (uint64_t)(last - header[1]) * sizeof(word), &word,
			  sizeof(word)))
			return false;
	library->symbol_count = last;
	return true;
}

static bool get_symbol(const struct osd_library *library, uint64_t index, Elf64_Sym *ret_symbol)
{
	return copy(library, library->symbols + index * sizeof(*ret_symbol), ret_symbol,
		    sizeof(*ret_symbol));
}

static bool is_defined(const Elf64_Sym *symbol)
{
	return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE;
}

/* An own symbol comes first, then an import.  A weak one may be missing. */
static bool resolve(const struct osd_library *library, uint64_t index, osd_library_import *find,
		    uint64_t *ret_address, char why[OSD_IMAGE_WHY])
{
	Elf64_Sym symbol;
	const char *name;

	if (!get_symbol(library, index, &symbol) || !(name = string_at(library, symbol.st_name)))
		return say(why, "a relocation names a symbol that is damaged");
	if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC || ELF64_ST_TYPE(symbol.st_info) == STT_TLS) {
		snprintf(why, OSD_IMAGE_WHY, "the symbol %.60s is an ifunc or thread-local, which "
			 "the engine does not support", name);
		return false;
	}
	*ret_address = is_defined(&symbol) ? (uint64_t)(uintptr_t)library->image.base + symbol.st_value
					   : (uint64_t)(uintptr_t)find(name);
	if (*ret_address || ELF64_ST_BIND(symbol.st_info) == STB_WEAK || index == 0)
		return true;
	snprintf(why, OSD_IMAGE_WHY, "undefined symbol %.100s", name);
	return false;
}

void *osd_library_function(const struct osd_library *library, const char *name)
{
	Elf64_Sym symbol;
	const char *found;

	for (uint64_t i = 1; i < library->symbol_count && get_symbol(library, i, &symbol); i++) {
		if (!is_defined(&symbol) || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
		    ELF64_ST_BIND(symbol.st_info) == STB_LOCAL)
			continue;
		found = string_at(library, symbol.st_name);
		if (found && strcmp(found, name) == 0)
			return osd_image_at_with(&library->image, symbol.st_value, 1, PROT_EXEC);
	}
	return NULL;
}

/* ---- relocations ----------------------------------------------------------------------------- */

static bool relocate(const struct osd_library *library, const Elf64_Rela *entry, osd_library_import *find,
		     char why[OSD_IMAGE_WHY])
{
	uint64_t value = (uint64_t)(uintptr_t)library->image.base;
	uint8_t *at = osd_image_at_with(&library->image, entry->r_offset, sizeof(value), PROT_WRITE);

	if (!at)
		return say(why, "a relocation is outside its writable memory");
	switch (ELF64_R_TYPE(entry->r_info)) {
	case RELATIVE:
		break;
	case WORD:
	case DATA:
	case CALL:
		if (!resolve(library, ELF64_R_SYM(entry->r_info), find, &value, why))
			return false;
		break;
	default:
		snprintf(why, OSD_IMAGE_WHY,
			 "it has a relocation of type %u, which the engine does not support",
			 (unsigned)ELF64_R_TYPE(entry->r_info));
		return false;
	}
	value += (uint64_t)entry->r_addend;
	memcpy(at, &value, sizeof(value));
	return true;
}

static bool relocate_all(const struct osd_library *library, uint64_t table, uint64_t bytes,
			 osd_library_import *find, char why[OSD_IMAGE_WHY])
{
	Elf64_Rela entry;

	for (uint64_t i = 0; i < bytes / sizeof(entry); i++) {
		if (!copy(library, table + i * sizeof(entry), &entry, sizeof(entry)))
			return say(why, "its relocations are outside its segments");
		if (!relocate(library, &entry, find, why))
			return false;
	}
	return true;
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool osd_library_load(const uint8_t *file, size_t length, osd_library_import *find,
		      struct osd_library *ret_library, char why[OSD_IMAGE_WHY])
{
	struct dynamic dynamic = {0};
	struct osd_library *library = ret_library;

	*library = (struct osd_library){0};
	if (!osd_image_read(file, length, &library->image, why) ||
	    !osd_image_place(&library->image, file, why) || !read_dynamic(library, &dynamic, why))
		return false;
	if (!count_symbols(library, dynamic.hash))
		return say(why, "it has no GNU hash table of symbols, or a damaged one");
	return relocate_all(library, dynamic.rela, dynamic.rela_bytes, find, why) &&
	       relocate_all(library, dynamic.calls, dynamic.calls_bytes, find, why) &&
	       osd_image_protect(&library->image, why);
}

static bool run(const struct osd_library *library, uint64_t address, char why[OSD_IMAGE_WHY])
{
	uint8_t *code = osd_image_at_with(&library->image, address, 1, PROT_EXEC);
	void (*constructor)(void);

	if (!code)
		return say(why, "a constructor is outside its code");
	memcpy(&constructor, &code, sizeof(constructor));
	constructor();
	return true;
}

bool osd_library_start(const struct osd_library *library, char why[OSD_IMAGE_WHY])
{
	uint64_t base = (uint64_t)(uintptr_t)library->image.base, address;

	if (library->init && !run(library, library->init, why))
		return false;
	for (uint64_t i = 0; i < library->init_array_bytes / sizeof(address); i++) {
		if (!copy(library, library->init_array + i * sizeof(address), &address, sizeof(address)))
			return say(why, "its constructors are outside its segments");
		if (!run(library, address - base, why))
			return false;
	}
	return true;
}
