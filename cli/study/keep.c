/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/file.h"
#include "cli/study/sweep.h"
#include "spec/kind.h"

/* Adds the bytes of the layers' files: a file that is built again may need other memory and
 * times. */
static void add_layers(const struct weft_kinds *kinds, struct weft_text *out)
{
    enum { MOST_BYTES = 1 << 30 };
    for (int32_t i = 0; kinds != NULL && i < kinds->n_files; i++) {
        struct weft_error unread = {0};
        char *bytes = NULL, hash[WEFT_HASH_TEXT_BYTES];
        size_t length = 0;
        if (weft_file_read(kinds->files[i], MOST_BYTES, &bytes, &length, &unread) != WEFT_OK)
            out->failed = true;
        else
            weft_text_addf(out, "layers %s\n",
                           weft_hash_show(weft_hash_bytes(bytes, length), hash));
        free(bytes);
    }
}

void weft_study_keep(const struct weft_cli *cli, struct weft_config *config, const char *file,
                     struct weft_kept *kept)
{
    const char *solver = getenv("WEFT_SOLVE"), *profile = config->cluster.profile;
    struct weft_text base;
    weft_text_init(&base);
    config->cluster.profile = NULL;
    weft_config_write(config, &base);
    config->cluster.profile = profile;
    weft_text_addf(&base, "solver %s\n", solver ? solver : "");
    add_layers(cli->kinds, &base);
    weft_kept_open(kept, file, &base);
    weft_text_finish(&base);
}

void weft_study_tell_stop(const struct weft_kept *kept, const char *flag,
                          const struct weft_error *why, struct weft_error *err)
{
    if (kept->folder[0] == '\0')
        weft_fail(err, WEFT_E_STOPPED, "%s; %s would keep the results so far", why->text, flag);
    else if (kept->n_found + kept->n_added == 0)
        weft_fail(err, WEFT_E_STOPPED, "%s, before anything was done", why->text);
    else
        weft_fail(err, WEFT_E_STOPPED,
                  "%s; results are kept in %s: the same command goes on from there", why->text,
                  kept->folder);
}
