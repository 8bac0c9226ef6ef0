/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds as JSON: read back, a kind is the same. */
#include <stdlib.h>

#include "layers/recipe/kind_json.h"
#include "tests/effort.h"
#include "tests/layers/recipe/random.h"
#include "tests/spec/config_text.h"

/* The kind as an element of "model.kinds", under another type. */
static void write_kind(const struct weft_kind *kind, struct weft_text *out)
{
    struct weft_kind named = *kind;
    struct weft_json_writer writer;
    named.type = "renamed";
    weft_text_init(out);
    weft_json_writer_init(&writer, out, 0);
    weft_json_begin_array(&writer);
    weft_kind_encode(&named, &writer);
    weft_json_end_array(&writer);
    cr_assert(weft_text_ok(out));
}

/* Reads the list's kind; NULL with the error. */
static const struct weft_kind *read_kind(const struct weft_text *text, struct weft_pool *pool,
                                         struct weft_error *err)
{
    struct weft_json *document = NULL;
    struct weft_findings findings;
    const struct weft_kinds *kinds = NULL;
    cr_assert_eq(weft_json_parse(weft_text_chars(text), text->length, "k", &document, err), WEFT_OK,
                 "%s", err->text);
    weft_findings_init(&findings);
    cr_assert(weft_kinds_decode(weft_json_root(document), "k", "$", NULL, pool, &kinds, &findings));
    (void)weft_findings_status(&findings, err);
    weft_findings_finish(&findings);
    weft_json_destroy(document);
    return kinds == NULL ? NULL : kinds->kinds[0];
}

/* Layers of both kinds have equal needs and tensors. */
static void check_layer(struct weft_layer layer, const struct weft_kind *kind)
{
    const struct weft_batch batch = {.samples = 2, .seq_len = 3, .compute = WEFT_F32};
    struct weft_layer other = layer;
    struct weft_error err = {0};
    struct weft_layer_work a, b;
    struct weft_layer_shape x = {0}, y = {0};
    other.kind = kind;
    const enum weft_status status = weft_layer_work(&layer, &batch, &a, &err);
    cr_assert_eq(weft_layer_work(&other, &batch, &b, &err), status, "%s", err.text);
    if (status != WEFT_OK) return;
    cr_assert_eq(a.saved_bytes, b.saved_bytes);
    cr_assert_eq(a.backward_temporary_bytes, b.backward_temporary_bytes);
    cr_assert_eq(a.forward_flops, b.forward_flops);
    cr_assert_eq(a.backward_flops, b.backward_flops);
    cr_assert_eq(layer.kind->shape(&layer, 1, &x, &err), WEFT_OK);
    cr_assert_eq(kind->shape(&other, 1, &y, &err), WEFT_OK);
    cr_assert_eq(x.n_tensors, y.n_tensors);
    for (int32_t i = 0; i < x.n_tensors; i++) {
        cr_assert_str_eq(x.tensors[i].name, y.tensors[i].name);
        cr_assert_eq(x.tensors[i].rows, y.tensors[i].rows);
        cr_assert_eq(x.tensors[i].columns, y.tensors[i].columns);
        cr_assert_eq(x.tensors[i].init_std, y.tensors[i].init_std);
    }
}

static void check_again(const struct weft_kind *kind, const struct weft_layer *layer)
{
    struct weft_text first, second;
    struct weft_pool pool = {0};
    struct weft_error err = {0};
    write_kind(kind, &first);
    const struct weft_kind *read = read_kind(&first, &pool, &err);
    cr_assert(read != NULL, "%s: %s\n%s", kind->type, err.text, weft_text_chars(&first));
    write_kind(read, &second);
    cr_assert_str_eq(weft_text_chars(&first), weft_text_chars(&second));
    cr_assert_eq(read->loss, kind->loss);
    cr_assert_eq(read->input == WEFT_READS_TOKENS, kind->input == WEFT_READS_TOKENS);
    cr_assert_eq(read->closes_residual, kind->closes_residual, "%s", kind->type);
    cr_assert_eq(strlen(read->identity), 8);
    if (layer != NULL) check_layer(*layer, read);
    weft_text_finish(&first);
    weft_text_finish(&second);
    weft_pool_finish(&pool);
}

Test(kind_write, gives_each_kind_of_weft_back)
{
    int32_t n = 0;
    for (int32_t i = 0; i < WEFT_KIND_COUNT; i++)
        if (weft_kind_at(i)->recipe != NULL) check_again(weft_kind_at(i), NULL), n++;
    cr_assert(n >= 11, "%d", (int)n);
}

Test(kind_write, gives_random_kinds_back)
{
    static struct random_recipe random;
    const int32_t cases = TEST_CASES(2000, 200);
    for (int32_t i = 0; i < cases; i++) {
        random_recipe_make(&random, 9000 + (uint64_t)i);
        check_again(&random.kind, &random.layer);
    }
}

/* A spoilt recipe as JSON is read or refused, and no layer of it harms. */
Test(kind_write, survives_spoilt_kinds)
{
    static struct random_recipe random;
    const int32_t cases = TEST_CASES(8000, 800);
    int32_t refused = 0;
    for (int32_t i = 0; i < cases; i++) {
        struct weft_text text;
        struct weft_pool pool = {0};
        struct weft_error err = {0};
        random_recipe_make(&random, 77000 + (uint64_t)i);
        random_recipe_spoil(&random);
        write_kind(&random.kind, &text);
        const struct weft_kind *kind = read_kind(&text, &pool, &err);
        const struct weft_batch batch = {.samples = 2, .seq_len = 3, .compute = WEFT_F32};
        struct weft_layer layer = random.layer;
        struct weft_layer_work work;
        enum weft_status status = WEFT_E_DATA;
        layer.kind = kind;
        if (kind != NULL) status = weft_layer_work(&layer, &batch, &work, &err);
        cr_assert(status == WEFT_OK || (status == WEFT_E_DATA && err.text[0] != '\0'), "%s",
                  weft_text_chars(&text));
        refused += status != WEFT_OK;
        weft_text_finish(&text);
        weft_pool_finish(&pool);
    }
    cr_assert(refused > cases / 4 && refused < cases, "%d of %d", (int)refused, (int)cases);
}
