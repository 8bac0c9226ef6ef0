/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/kept.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/commit.h"

static const char suffix_text[] = ".row";
static const char head_text[] = "weft-sweep-row 1";
enum { HEAD_BYTES = 160, MOST_BYTES = 1 << 30 };

static void show_path(const struct weft_kept *kept, struct weft_hash key,
                      char out[2 * WEFT_KEPT_PATH_BYTES])
{
    char name[WEFT_HASH_TEXT_BYTES];
    snprintf(out, 2 * WEFT_KEPT_PATH_BYTES, "%s/%s%s", kept->folder, weft_hash_show(key, name),
             suffix_text);
}

void weft_kept_open(struct weft_kept *kept, const char *file, const struct weft_text *base)
{
    struct weft_text text;
    *kept = (struct weft_kept){0};
    if (file == NULL || strlen(file) > 4000) return;
    weft_text_init(&text);
    weft_text_addf(&text, "%s %s\n", WEFT_VERSION, WEFT_BUILD_COMMIT);
    weft_text_append(&text, weft_text_chars(base), base->length);
    if (weft_text_ok(&text) && weft_text_ok(base)) {
        kept->base = weft_hash_bytes(weft_text_chars(&text), text.length);
        snprintf(kept->folder, sizeof kept->folder, "%.4000s.sweep", file);
    }
    weft_text_finish(&text);
}

struct weft_hash weft_kept_key(const struct weft_kept *kept, const char *format, ...)
{
    char text[1024], base[WEFT_HASH_TEXT_BYTES];
    va_list values;
    weft_hash_show(kept->base, base);
    int length = snprintf(text, sizeof text, "%s ", base);
    va_start(values, format);
    int more = vsnprintf(text + length, sizeof text - (size_t)length, format, values);
    va_end(values);
    length += more > 0 ? more : 0;
    if ((size_t)length >= sizeof text) length = (int)sizeof text - 1;
    return weft_hash_bytes(text, (size_t)length);
}

bool weft_kept_find(struct weft_kept *kept, struct weft_hash key, int *code, struct weft_text *out)
{
    char path[2 * WEFT_KEPT_PATH_BYTES], name[WEFT_HASH_TEXT_BYTES];
    char written[WEFT_HASH_TEXT_BYTES], sum[WEFT_HASH_TEXT_BYTES];
    char *bytes = NULL;
    size_t length = 0;
    int number = 0, end = 0;
    if (kept->folder[0] == '\0') return false;
    show_path(kept, key, path);
    if (access(path, F_OK) != 0 ||
        weft_file_read(path, MOST_BYTES, &bytes, &length, NULL) != WEFT_OK)
        return false;
    const bool head =
        strncmp(bytes, head_text, sizeof head_text - 1) == 0 &&
        sscanf(bytes + sizeof head_text - 1, " %32s %d %32s%n", written, &number, sum, &end) == 3;
    const size_t begin = sizeof head_text - 1 + (size_t)end + 1;
    const bool whole =
        head && begin <= length && strcmp(written, weft_hash_show(key, name)) == 0 &&
        strcmp(sum, weft_hash_show(weft_hash_bytes(bytes + begin, length - begin), name)) == 0;
    if (whole) {
        weft_text_append(out, bytes + begin, length - begin);
        *code = number;
        kept->n_found++;
    } else {
        weft_log(WEFT_LOG_WARNING, "%s is damaged: its plan is made again", path);
    }
    free(bytes);
    return whole;
}

void weft_kept_add(struct weft_kept *kept, struct weft_hash key, int code,
                   const struct weft_text *text)
{
    char path[2 * WEFT_KEPT_PATH_BYTES], name[WEFT_HASH_TEXT_BYTES], sum[WEFT_HASH_TEXT_BYTES];
    struct weft_error err = {0};
    struct weft_text file;
    if (kept->folder[0] == '\0') return;
    show_path(kept, key, path);
    weft_text_init(&file);
    weft_text_addf(&file, "%s %s %d %s\n", head_text, weft_hash_show(key, name), code,
                   weft_hash_show(weft_hash_bytes(weft_text_chars(text), text->length), sum));
    weft_text_append(&file, weft_text_chars(text), text->length);
    enum weft_status status =
        weft_text_ok(&file) ? WEFT_OK : weft_fail_memory(&err, "a result to keep");
    if (status == WEFT_OK) status = weft_file_make_directory(kept->folder, &err);
    if (status == WEFT_OK)
        status = weft_file_write(path, weft_text_chars(&file), file.length, &err);
    weft_text_finish(&file);
    if (status == WEFT_OK) {
        kept->n_added++;
        return;
    }
    weft_log(WEFT_LOG_WARNING, "%s: later results are lost if the sweep is stopped", err.text);
    kept->folder[0] = '\0';
}

int32_t weft_kept_find_numbers(struct weft_kept *kept, struct weft_hash key, int32_t most,
                               int64_t *numbers)
{
    struct weft_text text;
    int code = 0;
    int32_t n = 0;
    weft_text_init(&text);
    (void)weft_kept_find(kept, key, &code, &text);
    char *end;
    for (const char *at = weft_text_chars(&text); *at != '\0' && n < most; at = end + 1)
        numbers[n++] = strtoll(at, &end, 10);
    weft_text_finish(&text);
    return n;
}

void weft_kept_add_numbers(struct weft_kept *kept, struct weft_hash key, int32_t n,
                           const int64_t *numbers)
{
    struct weft_text text;
    weft_text_init(&text);
    for (int32_t i = 0; i < n; i++)
        weft_text_addf(&text, "%lld\n", (long long)numbers[i]);
    if (weft_text_ok(&text)) weft_kept_add(kept, key, 0, &text);
    weft_text_finish(&text);
}

static bool is_row(const char *name)
{
    struct weft_hash hash;
    char digits[WEFT_HASH_TEXT_BYTES];
    if (strlen(name) != WEFT_HASH_TEXT_BYTES - 1 + sizeof suffix_text - 1) return false;
    snprintf(digits, sizeof digits, "%.32s", name);
    return weft_hash_read(digits, &hash) &&
           strcmp(name + WEFT_HASH_TEXT_BYTES - 1, suffix_text) == 0;
}

void weft_kept_remove(struct weft_kept *kept)
{
    DIR *listing = kept->folder[0] != '\0' ? opendir(kept->folder) : NULL;
    const struct dirent *entry;
    if (listing == NULL) return;
    while ((entry = readdir(listing)) != NULL)
        if (is_row(entry->d_name)) unlinkat(dirfd(listing), entry->d_name, 0);
    closedir(listing);
    weft_file_clear(kept->folder);
    rmdir(kept->folder);
}
