#include "spec/hub_model.h"

#include <string.h>

#include "base/text.h"
#include "spec/field.h"

/* A size of the model: the key of the source, and the key of the block's layer (NULL: of no block).
 * A missing or null size has the default of transformers; 0: none. */
enum hub_size { HIDDEN, HEADS, KV_HEADS, FFN, EXPERTS, ACTIVE, LAYERS, VOCAB, POSITIONS, N_SIZES };
static const char *const block_keys[N_SIZES] = {
    "hidden", "heads", "kv_heads", "ffn", "experts", "active_experts", NULL, NULL, NULL};

/* A key of the source that must have this value. If it is missing, transformers takes the same
 * value, unless it must be written. */
struct hub_demand {
    const char *key, *value; /* JSON; "": a number that equals hidden / heads */
    bool is_written;
};

struct hub_family {
    const char *type, *block, *norm;
    const char *embed_name, *block_name, *norm_name;
    const char *sizes[N_SIZES]; /* NULL: the family has none */
    bool ties;                  /* if "tie_word_embeddings" is missing */
    const char *block_flag;     /* a key of the block that is true; NULL: none */
    const struct hub_demand *demands;
};

#define WEFT_HUB_LLAMA_DEMANDS                                                                     \
    {"hidden_act", "\"silu\"", false}, {"attention_bias", "false", false},                         \
        {"mlp_bias", "false", false},                                                              \
    {                                                                                              \
        "head_dim", "", false                                                                      \
    }

static const struct hub_demand gpt2_demands[] = {
    {"activation_function", "\"gelu_new\"", false},
    {"add_cross_attention", "false", false},
    {"scale_attn_by_inverse_layer_idx", "false", false},
    {NULL, NULL, false}};
static const struct hub_demand llama_demands[] = {WEFT_HUB_LLAMA_DEMANDS, {NULL, NULL, false}};
static const struct hub_demand mistral_demands[] = {
    WEFT_HUB_LLAMA_DEMANDS, {"sliding_window", "null", true}, {NULL, NULL, false}};
static const struct hub_demand qwen2_demands[] = {{"hidden_act", "\"silu\"", false},
                                                  {"use_sliding_window", "false", false},
                                                  {"head_dim", "", false},
                                                  {NULL, NULL, false}};
static const struct hub_demand mixtral_demands[] = {
    WEFT_HUB_LLAMA_DEMANDS, {"sliding_window", "null", false}, {NULL, NULL, false}};

#define WEFT_HUB_LLAMA_NAMES "rms_norm", "embed", "layers.{i}", "norm"
#define WEFT_HUB_LLAMA_SIZES                                                                       \
    [HIDDEN] = "hidden_size", [HEADS] = "num_attention_heads", [KV_HEADS] = "num_key_value_heads", \
    [FFN] = "intermediate_size", [LAYERS] = "num_hidden_layers", [VOCAB] = "vocab_size"

static const struct hub_family hub_families[] = {
    {"gpt2",
     "transformer_block",
     "layer_norm",
     "wte",
     "h.{i}",
     "ln_f",
     {[HIDDEN] = "n_embd",
      [HEADS] = "n_head",
      [FFN] = "n_inner",
      [LAYERS] = "n_layer",
      [VOCAB] = "vocab_size",
      [POSITIONS] = "n_positions"},
     true,
     NULL,
     gpt2_demands},
    {"llama",
     "llama_block",
     WEFT_HUB_LLAMA_NAMES,
     {WEFT_HUB_LLAMA_SIZES},
     false,
     NULL,
     llama_demands},
    {"mistral",
     "llama_block",
     WEFT_HUB_LLAMA_NAMES,
     {WEFT_HUB_LLAMA_SIZES},
     false,
     NULL,
     mistral_demands},
    {"mixtral",
     "moe_block",
     WEFT_HUB_LLAMA_NAMES,
     {WEFT_HUB_LLAMA_SIZES, [EXPERTS] = "num_local_experts", [ACTIVE] = "num_experts_per_tok"},
     false,
     NULL,
     mixtral_demands},
    {"qwen2",
     "llama_block",
     WEFT_HUB_LLAMA_NAMES,
     {WEFT_HUB_LLAMA_SIZES},
     false,
     "qkv_bias",
     qwen2_demands},
};
enum { N_FAMILIES = sizeof hub_families / sizeof *hub_families };

bool weft_hub_model_is(const struct weft_json_value *root)
{
    return weft_json_kind(root) == WEFT_JSON_OBJECT &&
           weft_json_member(root, "model_type") != NULL && weft_json_member(root, "layers") == NULL;
}

static bool is_given(const struct weft_json_value *value)
{
    return value != NULL && weft_json_kind(value) != WEFT_JSON_NULL;
}

static enum weft_status find_family(const char *source, const struct weft_json_value *root,
                                    const struct hub_family **out, struct weft_error *err)
{
    const char *type = "", *names[N_FAMILIES];
    weft_json_string(weft_json_member(root, "model_type"), &type);
    for (int i = 0; i < N_FAMILIES; i++) {
        names[i] = hub_families[i].type;
        *out = &hub_families[i];
        if (strcmp(type, hub_families[i].type) == 0) return WEFT_OK;
    }
    const char *near = weft_field_nearest(type, names, N_FAMILIES);
    return weft_fail(err, WEFT_E_DATA,
                     "%s: $.model_type: \"%.80s\" is no type of model that Weft reads%s%s; it "
                     "reads " WEFT_HUB_TYPES ". Describe other models by \"layers\" "
                     "(docs/keys.md, model.layers[])",
                     source, type, near ? ": did you mean " : "", near ? near : "");
}

/* Fills sizes [N_SIZES]; 0 where the family has none. */
static enum weft_status read_sizes(const char *source, const struct weft_json_value *root,
                                   const struct hub_family *family, int64_t *sizes,
                                   struct weft_error *err)
{
    for (int i = 0; i < N_SIZES; i++) {
        const char *key = family->sizes[i];
        sizes[i] = 0;
        if (key == NULL) continue;
        const struct weft_json_value *value = weft_json_member(root, key);
        if (is_given(value)) {
            if (!weft_json_integer(value, &sizes[i]) || sizes[i] < 1)
                return weft_fail(err, WEFT_E_DATA, "%s: $.%s: must be an integer from 1", source,
                                 key);
        } else if (i == KV_HEADS) {
            sizes[i] = sizes[HEADS];
        } else if (i == FFN && strcmp(family->type, "gpt2") == 0) {
            sizes[i] = 4 * sizes[HIDDEN];
        } else {
            return weft_fail(err, WEFT_E_DATA,
                             "%s: the key \"%s\" of a model of type \"%s\" is missing", source, key,
                             family->type);
        }
    }
    return WEFT_OK;
}

static bool meets_demand(const struct weft_json_value *value, const struct hub_demand *demand,
                         int64_t head)
{
    const char *text, *wanted = demand->value;
    int64_t number;
    bool flag;
    if (value == NULL) return !demand->is_written;
    if (weft_json_kind(value) == WEFT_JSON_NULL) return true;
    if (wanted[0] == '\0') return weft_json_integer(value, &number) && number == head;
    if (wanted[0] == '"')
        return weft_json_string(value, &text) && strlen(text) + 2 == strlen(wanted) &&
               memcmp(text, wanted + 1, strlen(text)) == 0;
    return strcmp(wanted, "false") == 0 && weft_json_bool(value, &flag) && !flag;
}

static enum weft_status check_demands(const char *source, const struct weft_json_value *root,
                                      const struct hub_family *family, const int64_t *sizes,
                                      struct weft_error *err)
{
    const int64_t head = sizes[HEADS] > 0 ? sizes[HIDDEN] / sizes[HEADS] : 0;
    for (const struct hub_demand *demand = family->demands; demand->key != NULL; demand++) {
        if (meets_demand(weft_json_member(root, demand->key), demand, head)) continue;
        if (demand->value[0] == '\0')
            return weft_fail(err, WEFT_E_DATA,
                             "%s: $.%s: must be %lld, which is %s / %s: no layer of Weft has heads "
                             "of another size",
                             source, demand->key, (long long)head, family->sizes[HIDDEN],
                             family->sizes[HEADS]);
        return weft_fail(err, WEFT_E_DATA,
                         "%s: $.%s: must be %s: no layer of Weft does another computation. To plan "
                         "as if it were, write a model of \"layers\" (docs/keys.md)",
                         source, demand->key, demand->value);
    }
    return WEFT_OK;
}

static enum weft_status read_ties(const char *source, const struct weft_json_value *root,
                                  const struct hub_family *family, bool *out,
                                  struct weft_error *err)
{
    const struct weft_json_value *value = weft_json_member(root, "tie_word_embeddings");
    *out = family->ties;
    if (!is_given(value) || weft_json_bool(value, out)) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s: $.tie_word_embeddings: must be true or false", source);
}

static void begin_layer(struct weft_json_writer *writer, const char *name, const char *type)
{
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "name", name);
    weft_json_put_string(writer, "type", type);
}

static void write_layers(struct weft_json_writer *writer, const struct hub_family *family,
                         const int64_t *sizes, bool ties)
{
    weft_json_begin_object(writer);
    weft_json_key(writer, "layers");
    weft_json_begin_array(writer);
    begin_layer(writer, family->embed_name, "embedding");
    weft_json_put_integer(writer, "vocab", sizes[VOCAB]);
    if (sizes[POSITIONS] > 0) weft_json_put_integer(writer, "positions", sizes[POSITIONS]);
    weft_json_put_integer(writer, "hidden", sizes[HIDDEN]);
    weft_json_end_object(writer);
    begin_layer(writer, family->block_name, family->block);
    weft_json_put_integer(writer, "repeat", sizes[LAYERS]);
    for (int i = 0; i < N_SIZES; i++)
        if (block_keys[i] != NULL && sizes[i] > 0)
            weft_json_put_integer(writer, block_keys[i], sizes[i]);
    if (family->block_flag != NULL) weft_json_put_bool(writer, family->block_flag, true);
    weft_json_end_object(writer);
    begin_layer(writer, family->norm_name, family->norm);
    weft_json_put_integer(writer, "hidden", sizes[HIDDEN]);
    weft_json_end_object(writer);
    begin_layer(writer, "head", "lm_head");
    weft_json_put_integer(writer, "vocab", sizes[VOCAB]);
    weft_json_put_integer(writer, "hidden", sizes[HIDDEN]);
    weft_json_put_bool(writer, "bias", false);
    if (ties) weft_json_put_string(writer, "tie", family->embed_name);
    weft_json_end_object(writer);
    weft_json_end_array(writer);
    weft_json_end_object(writer);
}

enum weft_status weft_hub_model_convert(const char *source, struct weft_json **document,
                                        struct weft_error *err)
{
    const struct weft_json_value *root = weft_json_root(*document);
    const struct hub_family *family = NULL;
    struct weft_json *converted = NULL;
    struct weft_json_writer writer;
    struct weft_text text;
    int64_t sizes[N_SIZES];
    bool ties = false;
    WEFT_TRY(find_family(source, root, &family, err));
    WEFT_TRY(read_sizes(source, root, family, sizes, err));
    WEFT_TRY(check_demands(source, root, family, sizes, err));
    WEFT_TRY(read_ties(source, root, family, &ties, err));
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    write_layers(&writer, family, sizes, ties);
    enum weft_status status = weft_text_ok(&text) ? weft_json_parse(weft_text_chars(&text),
                                                                    strlen(weft_text_chars(&text)),
                                                                    source, &converted, err)
                                                  : weft_fail_memory(err, "a model");
    weft_text_finish(&text);
    if (status != WEFT_OK) return status;
    weft_json_destroy(*document);
    *document = converted;
    return WEFT_OK;
}

/* Longest sequence that the model's config names; 0: it names none. */
static int64_t most_positions(const struct weft_json_value *root)
{
    static const char *const keys[] = {"n_positions", "max_position_embeddings"};
    int64_t positions = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (weft_json_integer(weft_json_member(root, keys[i]), &positions)) return positions;
    return 0;
}

enum weft_status weft_hub_model_run(const char *path, struct weft_text *out, struct weft_error *err)
{
    enum { USUAL_TOKENS = 2048 };
    struct weft_json *document = NULL;
    struct weft_json_writer writer;
    WEFT_TRY(weft_json_read(path, &document, err));
    const struct weft_json_value *root = weft_json_root(document);
    const int64_t positions = most_positions(root);
    const bool is_model = weft_hub_model_is(root);
    weft_json_destroy(document);
    if (!is_model)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: has no \"model_type\": give the config.json of a model of Hugging "
                         "Face, or a config of Weft without --hf",
                         path);
    weft_json_writer_init(&writer, out, 0);
    weft_json_begin_object(&writer);
    weft_json_put_integer(&writer, "version", 1);
    weft_json_key(&writer, "cluster");
    weft_json_begin_object(&writer);
    weft_json_put_integer(&writer, "ranks", 1);
    weft_json_end_object(&writer);
    weft_json_key(&writer, "train");
    weft_json_begin_object(&writer);
    weft_json_put_integer(&writer, "micro_batch", 1);
    weft_json_put_integer(&writer, "seq_len",
                          0 < positions && positions < USUAL_TOKENS ? positions : USUAL_TOKENS);
    weft_json_put_integer(&writer, "steps", 1);
    weft_json_put_number(&writer, "clip_norm", 1);
    weft_json_key(&writer, "optimizer");
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "type", "adamw");
    weft_json_end_object(&writer);
    weft_json_key(&writer, "precision");
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "compute", "bf16");
    weft_json_end_object(&writer);
    weft_json_end_object(&writer);
    weft_json_end_object(&writer);
    return weft_text_ok(out) ? WEFT_OK : weft_fail_memory(err, "a config");
}
