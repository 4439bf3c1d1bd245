/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pool_file.c -- see pool_file.h. */
#include "wire/pool_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define FILE_MAX (64u << 10)

char *osd_pool_file_read(const char *path, const char **ret_wrong)
{
	FILE *file = fopen(path, "re");
	char *text = file ? calloc(1, FILE_MAX + 1) : NULL;
	size_t length = 0;

	*ret_wrong = strerror(errno);
	if (text)
		length = fread(text, 1, FILE_MAX, file);
	if (file)
		fclose(file);
	if (length < FILE_MAX)
		return text;
	*ret_wrong = "it is too long";
	free(text);
	return NULL;
}

bool osd_pool_file_is_sandbox_key(const char *key)
{
	static const char *const keys[] = {"packages", "preload"};

	return osd_find_word(keys, OSD_ARRAY_SIZE(keys), key, &(uint8_t){0});
}

bool osd_pool_file_next(char **line, char **ret_key, char **ret_value)
{
	char *key;

	do
		key = strsep(line, ";");
	while (key && !*key);
	if (!key)
		return false;
	*ret_value = strchr(key, '=');
	if (*ret_value)
		*(*ret_value)++ = '\0';
	*ret_key = key;
	return true;
}
