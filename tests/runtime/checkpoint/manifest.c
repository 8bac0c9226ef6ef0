/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "runtime/checkpoint/manifest.h"

static const char settings[] = "{\"steps\": 8, \"optimizer\": {\"lr\": 0.5, \"type\": \"adamw\"}}";

static const char function[] = "[{\"name\": \"h\", \"type\": \"linear\", \"bias\": true}, "
                               "{\"type\": \"relu\", \"hidden\": 8}]";

static struct weft_text written(void)
{
    static uint32_t one[] = {7}, three[] = {1, 0xFFFFFFFF, 3};
    struct weft_manifest manifest = {
        .progress = {.step = 8,
                     .updates = 7,
                     .tokens = INT64_C(1) << 40,
                     .samples = 9,
                     .loss_scale = 65536,
                     .good_steps = 3,
                     .data = {5, 6}},
        .model = {1, 2},
        .function = function,
        .settings = settings,
        .kernels = "onednn",
        .n_files = 2,
        .files = {{"model.safetensors", 5000, 1 << 20, 1, one},
                  {"optimizer.safetensors", 1025, 512, 3, three}},
    };
    struct weft_text text;
    weft_text_init(&text);
    weft_manifest_write(&manifest, &text);
    cr_assert(weft_text_ok(&text));
    return text;
}

Test(manifest, reads_what_it_writes)
{
    struct weft_text text = written(), again;
    struct weft_manifest *manifest = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_manifest_parse(text.data, text.length, "m", &manifest, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert(manifest->progress.step == 8 && manifest->progress.updates == 7 &&
              manifest->progress.tokens == INT64_C(1) << 40 && manifest->progress.samples == 9 &&
              manifest->progress.loss_scale == 65536 && manifest->progress.good_steps == 3);
    cr_assert(weft_hash_equal(manifest->progress.data, (struct weft_hash){5, 6}));
    cr_assert_str_eq(manifest->function,
                     "[{\"name\": \"h\", \"type\": \"linear\", \"bias\": true}, "
                     "{\"type\": \"relu\", \"hidden\": 8}]");
    cr_assert_eq(manifest->files[1].n_chunks, 3);
    cr_assert_eq(manifest->files[1].crcs[1], 0xFFFFFFFFu);
    weft_text_init(&again);
    weft_manifest_write(manifest, &again);
    cr_assert_str_eq(weft_text_chars(&again), weft_text_chars(&text));
    weft_manifest_destroy(manifest);
    weft_text_finish(&again);
    weft_text_finish(&text);
}

static void refuse_manifest(const char *bytes, size_t length, const char *part)
{
    struct weft_manifest *manifest = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_manifest_parse(bytes, length, "m.json", &manifest, &err), WEFT_E_DATA,
                 "taken, but for: %s", part);
    cr_assert_not_null(strstr(err.text, part), "\"%s\" is not in: %s", part, err.text);
    cr_assert_not_null(strstr(err.text, "m.json"));
    cr_assert_null(manifest);
}

Test(manifest, refuses_every_flipped_bit_and_every_cut)
{
    struct weft_text text = written();
    for (size_t i = 0; i < text.length; i++) {
        for (int bit = 0; bit < 8; bit++) {
            text.data[i] = (char)(text.data[i] ^ 1 << bit);
            refuse_manifest(text.data, text.length, "damaged");
            text.data[i] = (char)(text.data[i] ^ 1 << bit);
        }
        refuse_manifest(text.data, i, "damaged");
    }
    weft_text_finish(&text);
}

/* One replacement, under a CRC that is right. */
static void refuse_changed(const char *from, const char *to, const char *part)
{
    struct weft_text text = written(), changed;
    char *at = strstr(text.data, from), *end = strstr(text.data, ",\n  \"crc32c\"");
    cr_assert_not_null(at, "%s", from);
    weft_text_init(&changed);
    weft_text_append(&changed, text.data, (size_t)(at - text.data));
    weft_text_add(&changed, to);
    at += strlen(from);
    weft_text_append(&changed, at, (size_t)(end - at));
    weft_text_addf(&changed, ",\n  \"crc32c\": %u\n}\n",
                   weft_crc32c(0, changed.data, changed.length));
    refuse_manifest(changed.data, changed.length, part);
    weft_text_finish(&changed);
    weft_text_finish(&text);
}

Test(manifest, refuses_wrong_values)
{
    refuse_changed("weft checkpoint", "other", "not the manifest of a checkpoint");
    refuse_changed("\"version\": 2", "\"version\": 3", "newer");
    refuse_changed("\"version\": 2", "\"version\": 0", "version");
    refuse_changed("\"layers\"", "\"layer\"", "layers");
    refuse_changed("\"type\": \"relu\"", "\"kind\": \"relu\"", "layers[1] has no type");
    refuse_changed("\"bias\": true", "\"bias\": [true]", "layers[0].bias is no key of a layer");
    refuse_changed("\"step\": 8", "\"step\": -1", "step");
    refuse_changed("\"step\": 8", "\"step\": 8.5", "step");
    refuse_changed("\"updates\": 7", "\"updates\": 9", "updates");
    refuse_changed("\"loss_scale\": 65536", "\"moments_began\": 9, \"loss_scale\": 65536",
                   "moments_began 9 is above step 8");
    refuse_changed("\"loss_scale\": 65536", "\"loss_scale\": 0", "loss_scale");
    refuse_changed("\"loss_scale\": 65536", "\"loss_scale\": null", "loss_scale");
    refuse_changed("\"model\": \"0", "\"model\": \"x", "hexadecimal");
    refuse_changed("model.safetensors", "../model.safetensors", "another name");
    refuse_changed("model.safetensors", "optimizer.safetensors", "another name");
    refuse_changed("optimizer.safetensors", "model.safetensors", "another name");
    refuse_changed("\"bytes\": 5000", "\"bytes\": 1048577", "are 2 chunks, and there are 1");
    refuse_changed("\"bytes\": 5000", "\"bytes\": 9007199254740991", "and there are 1");
    refuse_changed("\"bytes\": 5000", "\"bytes\": 0", "bytes");
    refuse_changed("[7]", "[4294967296]", "a CRC");
    refuse_changed("[7]", "[-1]", "a CRC");
    refuse_changed("[7]", "[\"7\"]", "a CRC");
    refuse_changed("[7]", "7", "crc32c");
    refuse_changed("\"chunk_bytes\": 1048576", "\"chunk_bytes\": 1", "chunk_bytes");
    refuse_changed("\"chunk_bytes\": 1048576", "\"chunk_bytes\": 1073741825", "chunk_bytes");
    refuse_changed("\"kernels\": \"onednn\"", "\"kernels\": 1", "kernels");
    refuse_changed("\"step\": 8", "\"step\": 8, \"step\": 8", "duplicate key");
    refuse_changed("\"optimizer\": {", "\"optimizer\": [{", "m.json:");
}

Test(manifest, names_settings_that_differ)
{
    struct weft_text out;
    weft_text_init(&out);
    cr_assert_eq(weft_manifest_compare(settings, settings, &out), 0);
    cr_assert_eq(out.length, 0);
    cr_assert_eq(
        weft_manifest_compare("{\"steps\":9,\"optimizer\":{\"lr\":0.5,\"type\":\"sgd\",\"m\":1}}",
                              settings, &out),
        3);
    cr_assert_str_eq(weft_text_chars(&out), "steps: 9, was 8\n"
                                            "optimizer.type: sgd, was adamw\n"
                                            "optimizer.m: 1, was not given");
    weft_text_finish(&out);
}
