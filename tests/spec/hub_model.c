/* SPDX-License-Identifier: Apache-2.0 */
/* Hugging Face's config.json as a model. */
#include "spec/hub_model.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define LLAMA_SIZES                                                                                \
    "\"hidden_size\":64,\"num_attention_heads\":8,\"intermediate_size\":96,"                       \
    "\"num_hidden_layers\":2,\"vocab_size\":100"

/* Converts; *text gets the section on one line, or the message. */
static enum weft_status convert_written(const char *written, struct weft_text *text)
{
    struct weft_json *document = NULL;
    struct weft_json_writer writer;
    struct weft_error err = {0};
    cr_assert_eq(weft_json_parse(written, strlen(written), "config.json", &document, &err), WEFT_OK,
                 "%s", err.text);
    cr_assert(weft_hub_model_is(weft_json_root(document)));
    struct weft_pool pool = {0};
    struct weft_hub_model model = {0};
    enum weft_status status = weft_hub_model_convert("config.json", document, &pool, &model, &err);
    weft_text_init(text);
    weft_json_writer_init(&writer, text, 0);
    if (status == WEFT_OK)
        weft_json_add_value(&writer, weft_json_root(model.section));
    else
        weft_text_add(text, err.text);
    weft_json_destroy(model.section);
    weft_json_destroy(document);
    weft_pool_finish(&pool);
    return status;
}

static void check_section(const char *written, const char *section)
{
    struct weft_text text;
    cr_assert_eq(convert_written(written, &text), WEFT_OK, "%s", weft_text_chars(&text));
    cr_assert_str_eq(weft_text_chars(&text), section);
    weft_text_finish(&text);
}

static void check_refused(const char *written, const char *says)
{
    struct weft_text text;
    cr_assert_eq(convert_written(written, &text), WEFT_E_DATA);
    cr_assert_not_null(strstr(weft_text_chars(&text), says), "%s", weft_text_chars(&text));
    weft_text_finish(&text);
}

Test(hub_model, reads_every_type)
{
    check_section("{\"model_type\":\"gpt2\",\"n_embd\":48,\"n_head\":4,\"n_layer\":3,"
                  "\"n_positions\":64,\"vocab_size\":256}",
                  "{\"layers\": [{\"name\": \"wte\", \"type\": \"embedding\", \"vocab\": 256, "
                  "\"positions\": 64, \"hidden\": 48}, {\"name\": \"h.{i}\", "
                  "\"type\": \"transformer_block\", \"repeat\": 3, \"hidden\": 48, \"heads\": 4, "
                  "\"ffn\": 192}, {\"name\": \"ln_f\", \"type\": \"layer_norm\", \"hidden\": 48},"
                  " {\"name\": \"head\", \"type\": \"lm_head\", \"vocab\": 256, \"hidden\": 48, "
                  "\"bias\": false, \"tie\": \"wte\"}]}");
    check_section(
        "{\"model_type\":\"qwen2\"," LLAMA_SIZES
        ",\"num_key_value_heads\":null,\"use_sliding_window\":false,"
        "\"sliding_window\":4096}",
        "{\"layers\": [{\"name\": \"embed\", \"type\": \"embedding\", \"vocab\": 100, "
        "\"hidden\": 64}, {\"name\": \"layers.{i}\", \"type\": \"llama_block\", "
        "\"repeat\": 2, \"hidden\": 64, \"heads\": 8, \"kv_heads\": 8, \"ffn\": 96, "
        "\"qkv_bias\": true, \"eps\": 1e-06}, {\"name\": \"norm\", \"type\": \"rms_norm\", "
        "\"hidden\": 64, \"eps\": 1e-06}, {\"name\": \"head\", \"type\": \"lm_head\", "
        "\"vocab\": 100, \"hidden\": 64, \"bias\": false}]}");
    static const char *const ends[] = {"\"model_type\":\"llama\"",
                                       "\"model_type\":\"mistral\",\"sliding_window\":null"};
    for (int i = 0; i < 2; i++) {
        char written[512];
        snprintf(written, sizeof written, "{" LLAMA_SIZES ",\"num_key_value_heads\":2,%s}",
                 ends[i]);
        check_section(
            written,
            "{\"layers\": [{\"name\": \"embed\", \"type\": \"embedding\", "
            "\"vocab\": 100, \"hidden\": 64}, {\"name\": \"layers.{i}\", "
            "\"type\": \"llama_block\", \"repeat\": 2, \"hidden\": 64, \"heads\": 8, "
            "\"kv_heads\": 2, \"ffn\": 96, \"eps\": 1e-06}, {\"name\": \"norm\", "
            "\"type\": \"rms_norm\", \"hidden\": 64, \"eps\": 1e-06}, {\"name\": \"head\", "
            "\"type\": \"lm_head\", \"vocab\": 100, \"hidden\": 64, "
            "\"bias\": false}]}");
    }
    check_section(
        "{\"model_type\":\"mixtral\"," LLAMA_SIZES ",\"num_local_experts\":8,"
        "\"num_experts_per_tok\":2,\"tie_word_embeddings\":true,\"head_dim\":8}",
        "{\"layers\": [{\"name\": \"embed\", \"type\": \"embedding\", \"vocab\": 100, "
        "\"hidden\": 64}, {\"name\": \"layers.{i}\", \"type\": \"moe_block\", \"repeat\": 2, "
        "\"hidden\": 64, \"heads\": 8, \"kv_heads\": 8, \"ffn\": 96, \"experts\": 8, "
        "\"active_experts\": 2}, {\"name\": \"norm\", \"type\": \"rms_norm\", "
        "\"hidden\": 64, \"eps\": 1e-05}, {\"name\": \"head\", \"type\": \"lm_head\", \"vocab\": "
        "100, "
        "\"hidden\": 64, \"bias\": false, \"tie\": \"embed\"}]}");
}

Test(hub_model, rotary_positions_are_scaled_as_in_llama_3)
{
    static const char *const written[] = {
        "\"rope_theta\":500000,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,"
        "\"low_freq_factor\":1,\"high_freq_factor\":4,\"original_max_position_embeddings\":64}",
        "\"rope_parameters\":{\"rope_theta\":500000,\"rope_type\":\"llama3\",\"factor\":8,"
        "\"low_freq_factor\":1,\"high_freq_factor\":4,\"original_max_position_embeddings\":64}"};
    for (int i = 0; i < 2; i++) {
        char config[512];
        snprintf(config, sizeof config, "{" LLAMA_SIZES ",\"model_type\":\"llama\",%s}",
                 written[i]);
        struct weft_text text;
        cr_assert_eq(convert_written(config, &text), WEFT_OK, "%s", weft_text_chars(&text));
        cr_assert_not_null(strstr(weft_text_chars(&text), "\"rope_base\": 500000"));
        cr_assert_not_null(strstr(weft_text_chars(&text),
                                  "\"rope_factor\": 8, \"rope_low\": 1, \"rope_high\": 4, "
                                  "\"rope_original\": 64"),
                           "%s", weft_text_chars(&text));
        weft_text_finish(&text);
    }
}

Test(hub_model, refuses_other_computations_by_their_key)
{
    static const struct {
        const char *more, *says;
    } cases[] = {
        {"\"model_type\":\"qwen4\"", "$.model_type: \"qwen4\" is no type of model"},
        {"\"model_type\":7", "$.model_type"},
        {"\"model_type\":\"llama\",\"hidden_act\":\"gelu\"",
         "$.hidden_act: is \"gelu\"; must be \"silu\" or \"swish\""},
        {"\"model_type\":\"llama\",\"attention_bias\":true", "$.attention_bias: is true"},
        {"\"model_type\":\"llama\",\"num_key_value_heads\":0", "$.num_key_value_heads: must be an"},
        {"\"model_type\":\"llama\",\"num_key_value_heads\":2.5", "$.num_key_value_heads: must be"},
        {"\"model_type\":\"llama\",\"tie_word_embeddings\":\"yes\"",
         "$.tie_word_embeddings: must be true or false"},
        {"\"model_type\":\"mistral\",\"sliding_window\":0", "$.sliding_window: must be null or"},
        {"\"model_type\":\"mixtral\",\"num_experts_per_tok\":9",
         "is 9, more than num_local_experts, 8"},
        {"\"model_type\":\"llama\",\"architectures\":[\"LlamaModel\"]",
         "$.architectures: \"LlamaModel\""},
        {"\"model_type\":\"llama\",\"layer_types\":[\"full_attention\",\"sliding_attention\"]",
         "$.layer_types: is [\"full_attention\", \"sliding_attention\"]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char written[512];
        snprintf(written, sizeof written, "{" LLAMA_SIZES ",%s}", cases[i].more);
        check_refused(written, cases[i].says);
    }
}
