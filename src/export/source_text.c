/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions in the texts of sources. They are in the project's format: a definition begins in the first column, with
   its name before the first parenthesis, and ends with a brace in the first column. */
#include "export/source_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *line_before(const char *text, const char *line)
{
    if (line == text) return NULL;
    for (line--; line > text && line[-1] != '\n';) line--;
    return line;
}

/* Whether the line begins a definition of that name. */
static bool is_definition(const char *line, const char *end, const char *function)
{
    size_t length = strlen(function);
    const char *at = line;
    if (*line == ' ' || *line == '/' || *line == '#' || *line == '*') return false;
    for (; at + length < end; at++)
        if (at > line && (at[-1] == ' ' || at[-1] == '*') && strncmp(at, function, length) == 0 && at[length] == '(')
            return true;
    return false;
}

/* The line that the comment begins in which ends in the line before, or the line itself. */
static const char *with_comment(const char *text, const char *line)
{
    const char *at = line_before(text, line);
    if (!at || line - at < 4 || strncmp(line - 3, "*/\n", 3) != 0) return line;
    while (at && strncmp(at, "/*", 2) != 0) at = line_before(text, at);
    return at ? at : line;
}

const char *mrc_source_function(const char *source, const char *function, int64_t *length)
{
    for (int i = 0; mrc_source_texts[i].name; i++) {
        const char *text = mrc_source_texts[i].text;
        if (strcmp(mrc_source_texts[i].name, source) != 0) continue;
        for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
            if (!is_definition(line, end, function)) continue;
            const char *last = strstr(line, "\n}\n"), *begin = with_comment(text, line);
            *length = last ? last + 3 - begin : 0;
            return last ? begin : NULL;
        }
    }
    return NULL;
}
