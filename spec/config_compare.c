/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/config_compare.h"

#include <string.h>

#include "base/json/json_compare.h"
#include "base/pool.h"
#include "spec/config_tables.h"

static struct weft_json *write_and_parse(const struct weft_config *config)
{
    struct weft_text text;
    struct weft_json *document = NULL;
    weft_text_init(&text);
    weft_config_write(config, &text);
    if (!weft_text_ok(&text) ||
        weft_json_parse(weft_text_chars(&text), text.length, "config", &document, NULL) != WEFT_OK)
        document = NULL;
    weft_text_finish(&text);
    return document;
}

int32_t weft_config_compare(const struct weft_config *now, const struct weft_config *before,
                            bool (*counts)(const char *path), struct weft_text *out)
{
    static const char *const sections[] = {"cluster", "train", "plan"};
    struct weft_json *a = write_and_parse(now), *b = write_and_parse(before);
    int32_t n = 0;
    for (int i = 0; i < 3 && a != NULL && b != NULL; i++) {
        const struct weft_json_comparison how = {.above = sections[i], .counts = counts};
        n += weft_json_compare(weft_json_member(weft_json_root(a), sections[i]),
                               weft_json_member(weft_json_root(b), sections[i]), &how, out);
    }
    if ((a == NULL || b == NULL) && out != NULL) out->failed = true;
    weft_json_destroy(b);
    weft_json_destroy(a);
    return n;
}

/* Findings are of keys that these settings do not have. */
bool weft_config_read_schedule(const char *settings, struct weft_train *out)
{
    struct weft_json *document = NULL;
    struct weft_pool pool = {0};
    struct weft_findings findings;
    struct weft_train train = {0};
    if (weft_json_parse(settings, strlen(settings), "settings", &document, NULL) != WEFT_OK)
        return false;
    weft_findings_init(&findings);
    weft_field_decode(&weft_train_table, weft_json_root(document), "settings", "$.train", &pool,
                      &train, &findings);
    weft_findings_finish(&findings);
    weft_pool_finish(&pool);
    weft_json_destroy(document);
    *out = (struct weft_train){.steps = train.steps};
    out->optimizer.lr = train.optimizer.lr;
    out->lr_schedule = train.lr_schedule;
    return train.steps > 0;
}
