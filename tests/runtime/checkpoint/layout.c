/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "runtime/checkpoint/layout.h"
#include "runtime/checkpoint/safetensors.h"
#include "tests/runtime/checkpoint/site.h"

Test(layout, headers_are_what_the_reader_takes)
{
    struct site site;
    site_open(&site);
    for (int32_t f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        const struct weft_layout_file *file = &site.layout->files[f];
        struct weft_text text;
        struct weft_safetensors *read = NULL;
        struct weft_error err = {0};
        weft_text_init(&text);
        weft_layout_header(site.layout, f, &text);
        cr_assert_eq((int64_t)text.length, file->header_bytes);
        cr_assert_eq(file->header_bytes % 4096, 0);
        cr_assert_eq(
            weft_safetensors_parse(text.data, text.length, file->bytes, file->name, &read, &err),
            WEFT_OK, "%s", err.text);
        cr_assert_eq(read->n_tensors, file->n_entries);
        for (int32_t e = 0; e < file->n_entries; e++) {
            cr_assert_str_eq(read->tensors[e].name, file->entries[e].name);
            cr_assert_eq(read->tensors[e].begin, file->entries[e].begin);
            cr_assert_eq(read->tensors[e].bytes, file->entries[e].bytes);
        }
        weft_safetensors_destroy(read);
        weft_text_finish(&text);
    }
    site_close(&site);
}

Test(layout, frozen_tensors_have_no_moments)
{
    struct site site;
    int32_t file = -1, kept = 0;
    site_open(&site);
    const struct weft_model *model = site.config->model;
    for (int32_t t = 0; t < model->n_tensors; t++) {
        const struct weft_layout_entry *entry =
            weft_layout_find(site.layout, t, WEFT_STATE_PARAMETER, &file);
        cr_assert(entry != NULL && file == 0 && strcmp(entry->name, model->tensors[t].name) == 0);
        entry = weft_layout_find(site.layout, t, WEFT_STATE_MOMENT2, &file);
        cr_assert_eq(entry != NULL, model->tensors[t].trainable);
        kept += entry != NULL;
    }
    cr_assert(kept > 0 && kept < model->n_tensors);
    for (int32_t t = 0; t < model->n_tensors; t++) {
        const struct weft_layout_entry *entry =
            weft_layout_find(site.layout, t, WEFT_STATE_MEAN2, &file);
        if (entry == NULL) continue;
        const struct weft_layout_shape shape = weft_layout_shape_of(model, entry);
        cr_assert(entry->bytes == sizeof(float) && shape.n_dims == 1 && shape.dims[0] == 1);
    }
    cr_assert_eq(site.layout->files[1].n_entries, (WEFT_STATE_COUNT - 1) * kept);
    site_close(&site);
}

/* Models are refused that have such names; a header does not rely on it. */
Test(layout, what_the_reader_refuses_is_no_layout)
{
    static const char *const bad[] = {"a/b", "..", "a\\b", "a\nb", "__metadata__", "head.weight"};
    struct site site;
    site_open(&site);
    struct weft_model *model = site.config->model;
    const char *good = model->tensors[0].name;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct weft_layout *layout = NULL;
        struct weft_error err = {0};
        model->tensors[0].name = bad[i];
        cr_assert_eq(weft_layout_create(model, (1u << WEFT_STATE_COUNT) - 1, 1,
                                        WEFT_CHECKPOINT_CHUNK_BYTES, &layout, &err),
                     WEFT_E_DATA, "%s", bad[i]);
        cr_assert_not_null(strstr(err.text, "model.safetensors"), "%s", err.text);
        cr_assert_null(layout);
    }
    model->tensors[0].name = good;
    site_close(&site);
}

Test(layout, chunks)
{
    cr_assert_eq(weft_checkpoint_chunks(0, 512), 0);
    cr_assert_eq(weft_checkpoint_chunks(1, 512), 1);
    cr_assert_eq(weft_checkpoint_chunks(512, 512), 1);
    cr_assert_eq(weft_checkpoint_chunks(513, 512), 2);
    cr_assert_eq(weft_checkpoint_chunk_length(513, 512, 0), 512);
    cr_assert_eq(weft_checkpoint_chunk_length(513, 512, 1), 1);
}

/* Nodes after the first have all trained tensors in the second file; frozen ones are shared. */
Test(layout, nodes_have_a_state_each)
{
    enum { NODES = 3 };
    struct site site;
    struct weft_layout *layout = NULL;
    struct weft_error err = {0};
    int32_t file = -1, other = -1;
    site_open(&site);
    const struct weft_model *model = site.config->model;
    cr_assert_eq(weft_layout_create(model, 1u << WEFT_STATE_MOMENT1, NODES,
                                    WEFT_CHECKPOINT_CHUNK_BYTES, &layout, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(layout->files[0].n_entries, model->n_tensors);
    for (int32_t t = 0; t < model->n_tensors; t++) {
        char name[64];
        layout->node = 0;
        const struct weft_layout_entry *first =
            weft_layout_find(layout, t, WEFT_STATE_PARAMETER, &file);
        layout->node = 2;
        const struct weft_layout_entry *third =
            weft_layout_find(layout, t, WEFT_STATE_PARAMETER, &other);
        cr_assert(file == 0 && other == model->tensors[t].trainable);
        cr_assert_eq(first == third, !model->tensors[t].trainable);
        snprintf(name, sizeof name, "%s.node2.moment1", model->tensors[t].name);
        const struct weft_layout_entry *moment =
            weft_layout_find(layout, t, WEFT_STATE_MOMENT1, &other);
        cr_assert_eq(moment != NULL, model->tensors[t].trainable);
        if (moment == NULL) continue;
        cr_assert_str_eq(moment->name, name);
        cr_assert_eq(weft_layout_tensor_length(name, strlen(name)), strlen(model->tensors[t].name));
        cr_assert_eq(moment->node, 2);
    }
    weft_layout_destroy(layout);
    site_close(&site);
}
