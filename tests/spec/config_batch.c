/* The split of train.batch: its micro-batches, and those that a resumed run keeps. */
#include <string.h>

#include "spec/config_batch.h"
#include "tests/spec/config_text.h"

static struct weft_config *with_batch(const char *batch, const char *more)
{
    const char *overrides[] = {"train.micro_batch=auto", batch, more, NULL};
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    cr_assert_eq(parse(SMALL_CONFIG, overrides, &config, &err), WEFT_OK, "%s", err.text);
    return config;
}

static void expect_splits(const char *batch, const char *more, int32_t n, const int64_t *splits)
{
    struct weft_config *config = with_batch(batch, more);
    int64_t found[WEFT_MOST_SPLITS];
    cr_assert_eq(weft_config_splits(config, found), n, "%s", batch);
    for (int32_t i = 0; i < n; i++)
        cr_assert_eq(found[i], splits[i], "%s: %lld", batch, (long long)found[i]);
    weft_config_destroy(config);
}

Test(config_batch, splits_are_divisors)
{
    expect_splits("train.batch=24", "cluster.ranks=2", 6, (const int64_t[]){1, 2, 3, 4, 6, 12});
    expect_splits("train.batch=24", "cluster.ranks=24", 1, (const int64_t[]){1});
}

/* 24 divisors of 360: eight of them, the least and the largest included. */
Test(config_batch, many_divisors_are_sampled)
{
    struct weft_config *config = with_batch("train.batch=360", "cluster.ranks=1");
    int64_t found[WEFT_MOST_SPLITS];
    cr_assert_eq(weft_config_splits(config, found), WEFT_MOST_SPLITS);
    cr_assert_eq(found[0], 1);
    cr_assert_eq(found[WEFT_MOST_SPLITS - 1], 360);
    for (int32_t i = 0; i < WEFT_MOST_SPLITS; i++)
        cr_assert(360 % found[i] == 0 && (i == 0 || found[i] > found[i - 1]));
    weft_config_destroy(config);
}

Test(config_batch, settles_on_any_split_with_the_same_hash)
{
    struct weft_config *config = with_batch("train.batch=24", "cluster.ranks=2");
    const struct weft_hash hash = config->hash;
    cr_assert_eq(config->train.micro_batch * config->train.grad_accum, 12);
    weft_config_settle(config, 4);
    cr_assert_eq(config->train.micro_batch, 4);
    cr_assert_eq(config->train.grad_accum, 3);
    cr_assert(weft_hash_equal(hash, config->hash));
    weft_config_destroy(config);
}

Test(config_batch, a_kept_split_is_the_only_one)
{
    struct weft_config *config = with_batch("train.batch=24", "cluster.ranks=2");
    int64_t found[WEFT_MOST_SPLITS];
    config->split_given = false; /* as if the file said it */
    cr_assert_not(weft_config_keep_split(config, 5, 8));
    cr_assert_eq(weft_config_splits(config, found), 6);
    cr_assert(weft_config_keep_split(config, 3, 4));
    cr_assert_eq(weft_config_splits(config, found), 1);
    cr_assert_eq(found[0], 3);
    weft_config_destroy(config);
}

Test(config_batch, an_override_asks_for_all_splits)
{
    struct weft_config *config = with_batch("train.batch=24", "cluster.ranks=2");
    int64_t found[WEFT_MOST_SPLITS];
    cr_assert(weft_config_keep_split(config, 3, 4));
    cr_assert_eq(weft_config_splits(config, found), 6);
    weft_config_destroy(config);
}

/* A profile measures other splits of the same batch, unless the split was asked for. */
Test(config_batch, a_split_is_opened_with_the_same_batch)
{
    const char *overrides[] = {"cluster.ranks=2", NULL, NULL};
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    int64_t splits[WEFT_MOST_SPLITS];
    cr_assert_eq(parse(SMALL_CONFIG, overrides, &config, &err), WEFT_OK, "%s", err.text);
    const int64_t samples = config->train.micro_batch * config->train.grad_accum;
    cr_assert(weft_config_open_split(config));
    cr_assert_eq(config->train.batch, 2 * samples);
    cr_assert_eq(weft_config_splits(config, splits) > 0, true);
    cr_assert_eq(splits[0], 1);
    cr_assert_not(weft_config_open_split(config), "it is open already");
    weft_config_destroy(config);
    overrides[1] = "train.micro_batch=4";
    cr_assert_eq(parse(SMALL_CONFIG, overrides, &config, &err), WEFT_OK, "%s", err.text);
    cr_assert_not(weft_config_open_split(config), "an override names it");
    weft_config_destroy(config);
}
