/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/variant.h"

#include <inttypes.h>
#include <stdio.h>

#include "memory_model/pages/pages.h"
#include "problem/terms.h"

enum { PLACE_BYTES = 256 };

static int64_t find_ring_bytes(const struct weft_problem *problem)
{
    const struct weft_hold *ring = weft_problem_ring(problem);
    return ring == NULL ? 0 : ring->bytes;
}

static void write_terms(const struct weft_problem *problem, struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 0);
    weft_problem_write_terms(problem, &writer);
}

static void write_certificate(const struct weft_certificate *certificate,
                              const struct weft_problem *problem, struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 0);
    weft_certificate_write(certificate, problem, &writer);
}

static enum weft_status parse_text(const struct weft_text *text, struct weft_json **out,
                                   struct weft_error *err)
{
    if (!weft_text_ok(text)) return weft_fail_memory(err, "a period's bound");
    return weft_json_parse(weft_text_chars(text), text->length, "a period's bound", out, err);
}

static enum weft_status keep_certificate(const struct weft_certificate *certificate,
                                         const struct weft_problem *problem, struct weft_json **out,
                                         struct weft_error *err)
{
    struct weft_text text;
    weft_text_init(&text);
    write_certificate(certificate, problem, &text);
    const enum weft_status status = parse_text(&text, out, err);
    weft_text_finish(&text);
    return status;
}

/* Copies the terms of a problem. */
static enum weft_status copy_terms(const struct weft_problem *problem, struct weft_problem **out,
                                   struct weft_error *err)
{
    struct weft_text text;
    struct weft_json *document = NULL;
    weft_text_init(&text);
    write_terms(problem, &text);
    enum weft_status status = parse_text(&text, &document, err);
    if (status == WEFT_OK)
        status = weft_problem_read_terms(weft_json_root(document), "a period", out, err);
    weft_json_destroy(document);
    weft_text_finish(&text);
    return status;
}

enum weft_status weft_plan_variant_create(const struct weft_problem *problem, int64_t bound_ns,
                                          const struct weft_certificate *certificate,
                                          struct weft_plan_variant *out, struct weft_error *err)
{
    struct weft_plan_variant made = {.bound_ns = bound_ns, .ring_bytes = find_ring_bytes(problem)};
    enum weft_status status = keep_certificate(certificate, problem, &made.certificate, err);
    if (status == WEFT_OK) status = copy_terms(problem, &made.problem, err);
    if (status == WEFT_OK)
        *out = made;
    else
        weft_plan_variant_finish(&made);
    return status;
}

enum weft_status weft_plan_variant_add_pages(struct weft_plan_variant *variant,
                                             const struct weft_problem *problem,
                                             int64_t paged_bound_ns, int64_t page_bytes,
                                             const struct weft_certificate *certificate,
                                             struct weft_error *err)
{
    if (paged_bound_ns <= variant->bound_ns) return WEFT_OK;
    WEFT_TRY(keep_certificate(certificate, problem, &variant->paged_certificate, err));
    variant->paged_bound_ns = paged_bound_ns;
    variant->page_bytes = page_bytes;
    return WEFT_OK;
}

static void swap_certificates(struct weft_json **a, struct weft_json **b)
{
    struct weft_json *const kept = *a;
    *a = *b;
    *b = kept;
}

static void drop_pages(struct weft_plan_variant *variant)
{
    weft_json_destroy(variant->paged_certificate);
    variant->paged_certificate = NULL;
    variant->paged_bound_ns = variant->page_bytes = 0;
}

void weft_plan_variant_merge(struct weft_plan_variant *variant, struct weft_plan_variant *from)
{
    if (from->bound_ns > variant->bound_ns) {
        variant->bound_ns = from->bound_ns;
        swap_certificates(&variant->certificate, &from->certificate);
    }
    const bool wider = variant->paged_bound_ns > 0 && from->page_bytes > variant->page_bytes;
    if (from->paged_bound_ns > variant->paged_bound_ns && !wider) {
        variant->paged_bound_ns = from->paged_bound_ns;
        variant->page_bytes = from->page_bytes;
        swap_certificates(&variant->paged_certificate, &from->paged_certificate);
    }
    if (variant->paged_bound_ns <= variant->bound_ns) drop_pages(variant);
}

int64_t weft_plan_variant_bound_ns(const struct weft_plan_variant *variant, int64_t page_bytes)
{
    const bool in_pages = variant->paged_bound_ns > 0 && variant->page_bytes <= page_bytes;
    return in_pages ? variant->paged_bound_ns : variant->bound_ns;
}

void weft_plan_variant_finish(struct weft_plan_variant *variant)
{
    weft_problem_destroy(variant->problem);
    weft_json_destroy(variant->certificate);
    weft_json_destroy(variant->paged_certificate);
    *variant = (struct weft_plan_variant){0};
}

/* Reads a certificate of the problem. */
static enum weft_status open_certificate(const struct weft_json *json, const char *name,
                                         const struct weft_problem *problem, struct weft_pool *pool,
                                         struct weft_certificate *out, struct weft_error *err)
{
    const struct weft_json_value *root = weft_json_root(json);
    struct weft_hash made_for;
    enum weft_status status = WEFT_OK;
    if (weft_json_kind(root) == WEFT_JSON_OBJECT) {
        status = weft_keys_hash(root, name, "problem", &made_for, err);
        if (status == WEFT_OK && !weft_hash_equal(made_for, weft_problem_hash(problem)))
            status = weft_fail(err, WEFT_E_DATA,
                               "its certificate is not of the problem that the config makes: "
                               "plan again");
    }
    if (status == WEFT_OK) status = weft_certificate_read(root, name, problem, pool, out, err);
    return status;
}

static enum weft_status check_in_pages(const struct weft_plan_variant *variant,
                                       const struct weft_problem *problem, struct weft_pool *pool,
                                       struct weft_error *err)
{
    struct weft_certificate certificate = {0};
    struct weft_error fault = {0};
    if (variant->paged_bound_ns == 0) return WEFT_OK;
    WEFT_TRY(open_certificate(variant->paged_certificate, "paged_certificate", problem, pool,
                              &certificate, err));
    const enum weft_status status = weft_certificate_check_in_pages(
        &certificate, problem, variant->page_bytes, variant->paged_bound_ns, NULL, &fault);
    return status == WEFT_OK ? WEFT_OK : weft_fail(err, status, "in pages: %s", fault.text);
}

enum weft_status weft_plan_variant_check(const struct weft_plan_variant *variant,
                                         const struct weft_problem *problem, struct weft_error *err)
{
    struct weft_certificate certificate = {0};
    struct weft_pool pool = {0};
    enum weft_status status =
        open_certificate(variant->certificate, "certificate", problem, &pool, &certificate, err);
    if (status == WEFT_OK)
        status = weft_certificate_check(&certificate, problem, variant->bound_ns, NULL, err);
    if (status == WEFT_OK) status = check_in_pages(variant, problem, &pool, err);
    weft_pool_finish(&pool);
    return status;
}

static void put_certificate(const void *context, const void *source,
                            struct weft_json_writer *writer)
{
    const struct weft_plan_variant *variant = source;
    (void)context;
    weft_json_key(writer, "certificate");
    weft_json_add_value(writer, weft_json_root(variant->certificate));
}

static void put_terms(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_plan_variant *variant = source;
    (void)context;
    weft_json_key(writer, "problem");
    weft_problem_write_terms(variant->problem, writer);
}

static void put_paged(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_plan_variant *variant = source;
    (void)context;
    if (variant->paged_bound_ns == 0) return;
    weft_json_key(writer, "paged_certificate");
    weft_json_add_value(writer, weft_json_root(variant->paged_certificate));
}

const struct weft_key_table weft_plan_variant_keys = WEFT_KEY_TABLE(
    "Another period that the config left open.",
    WEFT_KEY_COUNT(weft_plan_variant, bound_ns, "no plan of it is faster"),
    WEFT_KEY_PUT(WEFT_KEY_OR_NULL, WEFT_KEY_OBJECT, "certificate", &weft_certificate_keys,
                 put_certificate, "of that bound, with the hash of the problem"),
    WEFT_KEY_PUT(WEFT_KEY_NEEDED, WEFT_KEY_OBJECT, "problem", &weft_problem_terms_keys, put_terms,
                 "the config makes it again"),
    WEFT_KEY_COUNT_IF("paged_bound_ns", weft_plan_variant, paged_bound_ns, paged_bound_ns,
                      paged_bound_ns, "no plan of it in pages of page_bytes is faster"),
    WEFT_KEY_COUNT_IF("page_bytes", weft_plan_variant, page_bytes, paged_bound_ns, paged_bound_ns,
                      "pages of that bound"),
    WEFT_KEY_PUT(WEFT_KEY_OPTIONAL, WEFT_KEY_OBJECT, "paged_certificate", &weft_certificate_keys,
                 put_paged, "of that bound, with the hash of the problem"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "ring_bytes", weft_plan_variant, ring_bytes,
                      "of its ring for state on a disk"));

static enum weft_status read_certificate(const struct weft_json_value *value, const char *where,
                                         struct weft_json **out, struct weft_error *err)
{
    struct weft_json_writer writer;
    struct weft_text text;
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    weft_json_add_value(&writer, value);
    enum weft_status status = parse_text(&text, out, err);
    weft_text_finish(&text);
    if (status != WEFT_OK || weft_json_kind(value) == WEFT_JSON_NULL) return status;
    struct weft_hash hash;
    return weft_keys_hash(value, where, "problem", &hash, err);
}

/* A larger page is then a multiple of a smaller one, so a bound in the smaller one holds in it. */
static bool is_page(int64_t bytes)
{
    return bytes >= WEFT_PAGE_LEAST_BYTES && bytes <= WEFT_PAGE_LARGE_BYTES &&
           (bytes & (bytes - 1)) == 0;
}

static enum weft_status read_all(const struct weft_json_value *value, const char *where,
                                 struct weft_pool *pool, struct weft_plan_variant *to,
                                 struct weft_error *err)
{
    char place[PLACE_BYTES];
    const struct weft_json_value *certificate = weft_json_member(value, "certificate");
    WEFT_TRY(weft_keys_read(&weft_plan_variant_keys, value, where, pool, to, err));
    snprintf(place, sizeof place, "%s: problem", where);
    WEFT_TRY(weft_problem_read_terms(weft_json_member(value, "problem"), place, &to->problem, err));
    snprintf(place, sizeof place, "%s: certificate", where);
    WEFT_TRY(read_certificate(certificate, place, &to->certificate, err));
    const struct weft_json_value *paged = weft_json_member(value, "paged_certificate");
    if ((paged != NULL) != (to->paged_bound_ns > 0) ||
        (to->paged_bound_ns > 0) != (to->page_bytes > 0))
        return weft_fail(err, WEFT_E_DATA,
                         "%s: has some of paged_bound_ns, page_bytes and paged_certificate, and "
                         "not all three",
                         where);
    if (paged != NULL && !is_page(to->page_bytes))
        return weft_fail(err, WEFT_E_DATA,
                         "%s: page_bytes is %" PRId64 "; a page is a power of two from %" PRId64
                         " to %" PRId64,
                         where, to->page_bytes, WEFT_PAGE_LEAST_BYTES, WEFT_PAGE_LARGE_BYTES);
    snprintf(place, sizeof place, "%s: paged_certificate", where);
    return paged == NULL ? WEFT_OK : read_certificate(paged, place, &to->paged_certificate, err);
}

enum weft_status weft_plan_variant_read(const struct weft_json_value *value, const char *where,
                                        struct weft_pool *pool, struct weft_plan_variant *out,
                                        struct weft_error *err)
{
    struct weft_plan_variant read = {0};
    enum weft_status status = read_all(value, where, pool, &read, err);
    if (status == WEFT_OK)
        *out = read;
    else
        weft_plan_variant_finish(&read);
    return status;
}
