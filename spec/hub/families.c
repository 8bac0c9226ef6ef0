/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/hub/families.h"

#include <stddef.h>
#include <string.h>

#include "spec/hub/tensors.h"

/* The values are facts about the configuration classes of transformers 5.24. */

const char *const weft_hub_block_keys[WEFT_HUB_SIZES] = {
    [WEFT_HUB_HIDDEN] = "hidden",     [WEFT_HUB_HEADS] = "heads",
    [WEFT_HUB_KV_HEADS] = "kv_heads", [WEFT_HUB_FFN] = "ffn",
    [WEFT_HUB_EXPERTS] = "experts",   [WEFT_HUB_ACTIVE] = "active_experts"};

const struct weft_hub_rope_member weft_hub_rope_members[WEFT_HUB_ROPE_MEMBERS] = {
    {"rope_theta", "rope_base"},
    {"factor", "rope_factor"},
    {"low_freq_factor", "rope_low"},
    {"high_freq_factor", "rope_high"},
    {"original_max_position_embeddings", "rope_original"},
};

#define NOTHING(key)                                                                               \
    {                                                                                              \
        key, WEFT_HUB_NOTHING, NULL, NULL, NULL                                                    \
    }
#define REFUSE(key, usual)                                                                         \
    {                                                                                              \
        key, WEFT_HUB_COMPUTATION, usual, NULL, NULL                                               \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, WEFT_HUB_NOTHING, NULL, NULL, NULL                                                   \
    }

static const struct weft_hub_key common_keys[] = {
    /* housekeeping, precision of files, tokens */
    NOTHING("model_type"),
    NOTHING("architectures"),
    NOTHING("tie_word_embeddings"),
    NOTHING("_name_or_path"),
    NOTHING("name_or_path"),
    NOTHING("_commit_hash"),
    NOTHING("transformers_version"),
    NOTHING("transformers.js_config"),
    NOTHING("torch_dtype"),
    NOTHING("dtype"),
    NOTHING("tokenizer_class"),
    NOTHING("bos_token_id"),
    NOTHING("eos_token_id"),
    NOTHING("pad_token_id"),
    NOTHING("sep_token_id"),
    NOTHING("cls_token_id"),
    NOTHING("mask_token_id"),
    NOTHING("unk_token_id"),
    NOTHING("decoder_start_token_id"),
    /* outputs and speed */
    NOTHING("use_cache"),
    NOTHING("output_attentions"),
    NOTHING("output_hidden_states"),
    NOTHING("output_scores"),
    NOTHING("return_dict"),
    NOTHING("return_dict_in_generate"),
    NOTHING("torchscript"),
    NOTHING("use_bfloat16"),
    NOTHING("tf_legacy_loss"),
    NOTHING("attn_implementation"),
    NOTHING("_attn_implementation"),
    NOTHING("_attn_implementation_autoset"),
    NOTHING("_attn_implementation_internal"),
    NOTHING("_flash_attn_2_enabled"),
    NOTHING("chunk_size_feed_forward"),
    NOTHING("pretraining_tp"),
    NOTHING("gradient_checkpointing"),
    /* generation */
    NOTHING("max_length"),
    NOTHING("min_length"),
    NOTHING("do_sample"),
    NOTHING("early_stopping"),
    NOTHING("num_beams"),
    NOTHING("num_beam_groups"),
    NOTHING("diversity_penalty"),
    NOTHING("temperature"),
    NOTHING("top_k"),
    NOTHING("top_p"),
    NOTHING("typical_p"),
    NOTHING("repetition_penalty"),
    NOTHING("length_penalty"),
    NOTHING("no_repeat_ngram_size"),
    NOTHING("encoder_no_repeat_ngram_size"),
    NOTHING("bad_words_ids"),
    NOTHING("num_return_sequences"),
    NOTHING("forced_bos_token_id"),
    NOTHING("forced_eos_token_id"),
    NOTHING("remove_invalid_values"),
    NOTHING("exponential_decay_length_penalty"),
    NOTHING("suppress_tokens"),
    NOTHING("begin_suppress_tokens"),
    NOTHING("prefix"),
    NOTHING("task_specific_params"),
    NOTHING("finetuning_task"),
    /* positions: the longest sequence, which an estimate uses */
    NOTHING("max_position_embeddings"),
    NOTHING("n_positions"),
    /* heads of labels */
    {"num_labels", WEFT_HUB_LABELS, "null", NULL, NULL},
    {"id2label", WEFT_HUB_LABELS, "null", NULL, NULL},
    {"label2id", WEFT_HUB_LABELS, "null", NULL, NULL},
    {"problem_type", WEFT_HUB_LABELS, "null", NULL, NULL},
    {"initializer_range", WEFT_HUB_START, "0.02", NULL, NULL},
    /* another computation, other parameters, or parameters in another form */
    REFUSE("auto_map", "null"),
    REFUSE("quantization_config", "null"),
    REFUSE("compression_config", "null"),
    REFUSE("is_encoder_decoder", "false|null"),
    REFUSE("add_cross_attention", "false|null"),
    REFUSE("cross_attention_hidden_size", "null"),
    REFUSE("tie_encoder_decoder", "false|null"),
    REFUSE("pruned_heads", "null"),
    REFUSE("text_config", "null"),
    REFUSE("vision_config", "null"),
    REFUSE("audio_config", "null"),
    REFUSE("is_causal", "true|null"),
    NOTHING("is_decoder"),
    REFUSE("use_bidirectional_attention", "false|null"),
    REFUSE("qk_norm", "false|null"),
    REFUSE("use_qk_norm", "false|null"),
    REFUSE("qk_layernorm", "false|null"),
    REFUSE("query_key_norm", "false|null"),
    REFUSE("q_norm", "false|null"),
    REFUSE("k_norm", "false|null"),
    REFUSE("qkv_bias", "false|null"),
    REFUSE("qkv_proj_bias", "false|null"),
    REFUSE("attention_out_bias", "false|null"),
    REFUSE("attention_bias", "false|null"),
    REFUSE("mlp_bias", "false|null"),
    REFUSE("use_bias", "false|null"),
    REFUSE("bias", "false|null"),
    REFUSE("lm_head_bias", "false|null"),
    REFUSE("head_dim", WEFT_HUB_HEAD_DIM "|null"),
    REFUSE("layer_types", "\"full_attention\"|null"),
    REFUSE("sliding_window", "null"),
    REFUSE("use_sliding_window", "false|null"),
    REFUSE("attention_chunk_size", "null"),
    REFUSE("no_rope_layers", "1|null"),
    REFUSE("alibi", "false|null"),
    REFUSE("attn_logit_softcapping", "null"),
    REFUSE("final_logit_softcapping", "null"),
    REFUSE("logit_scale", "1|null"),
    REFUSE("logits_scaling", "1|null"),
    REFUSE("attention_multiplier", "null"),
    REFUSE("embedding_multiplier", "1|null"),
    REFUSE("residual_multiplier", "1|null"),
    REFUSE("query_pre_attn_scalar", "null"),
    REFUSE("clip_qkv", "null"),
    REFUSE("parallel_residual", "false|null"),
    REFUSE("use_parallel_residual", "false|null"),
    REFUSE("parallel_attn", "false|null"),
    REFUSE("partial_rotary_factor", "1|null"),
    REFUSE("rotary_pct", "1|null"),
    REFUSE("kv_lora_rank", "null"),
    REFUSE("q_lora_rank", "null"),
    REFUSE("num_local_experts", "0|null"),
    REFUSE("num_experts", "0|null"),
    REFUSE("n_routed_experts", "0|null"),
    REFUSE("n_shared_experts", "0|null"),
    REFUSE("num_experts_per_tok", "0|null"),
    REFUSE("moe_intermediate_size", "0|null"),
    REFUSE("shared_expert_intermediate_size", "0|null"),
    REFUSE("mlp_only_layers", "null"),
    REFUSE("num_nextn_predict_layers", "0|null"),
    REFUSE("mup", "false|null"),
    END};

#define HEAD_DIM                                                                                   \
    {                                                                                              \
        "head_dim", WEFT_HUB_COMPUTATION, WEFT_HUB_HEAD_DIM "|null", NULL, "head_dim"              \
    }
#define LLAMA_KEYS                                                                                 \
    {"hidden_act", WEFT_HUB_COMPUTATION, "\"silu\"|\"swish\"", NULL, NULL},                        \
        {"attention_dropout", WEFT_HUB_DROPOUT, "0|null", NULL, NULL},                             \
        {"rope_theta", WEFT_HUB_NUMBERS, "null", NULL, "rope_base"},                               \
        {"rope_scaling", WEFT_HUB_NUMBERS, "null", NULL, NULL},                                    \
    {                                                                                              \
        "rope_parameters", WEFT_HUB_NUMBERS, "null", NULL, NULL                                    \
    }

#define GEMMA_KEYS                                                                                 \
    {"attention_dropout", WEFT_HUB_DROPOUT, "0|null", NULL, NULL},                                 \
        {"rope_scaling", WEFT_HUB_NUMBERS, "null", NULL, NULL},                                    \
        {"rope_parameters", WEFT_HUB_NUMBERS, "null", NULL, NULL},                                 \
        {"head_dim", WEFT_HUB_COMPUTATION, WEFT_HUB_HEAD_DIM, "256", "head_dim"},                  \
        {"rms_norm_eps", WEFT_HUB_NUMBERS, "null", "1e-6", "eps"},                                 \
        NOTHING("cache_implementation"),                                                           \
    {                                                                                              \
        "hidden_act", WEFT_HUB_COMPUTATION, "\"gelu_pytorch_tanh\"|\"gelu\"|null", NULL, NULL      \
    }
#define GEMMA_SCALAR                                                                               \
    {"hidden_activation", WEFT_HUB_COMPUTATION, "\"gelu_pytorch_tanh\"", NULL, NULL},              \
    {                                                                                              \
        "query_pre_attn_scalar", WEFT_HUB_COMPUTATION, "null", "256", "query_scalar"               \
    }
#define SOFTCAP(key, missing, to)                                                                  \
    {                                                                                              \
        key, WEFT_HUB_COMPUTATION, "null", missing, to                                             \
    }

/* "gelu" of old files means the tanh form too. */
static const struct weft_hub_key gemma_keys[] = {
    GEMMA_KEYS,
    {"rope_theta", WEFT_HUB_NUMBERS, "null", NULL, "rope_base"},
    {"hidden_activation", WEFT_HUB_COMPUTATION, "\"gelu_pytorch_tanh\"|null", NULL, NULL},
    END};
static const struct weft_hub_key gemma2_keys[] = {
    GEMMA_KEYS,
    GEMMA_SCALAR,
    {"rope_theta", WEFT_HUB_NUMBERS, "null", NULL, "rope_base"},
    SOFTCAP("attn_logit_softcapping", "50", "attention_cap"),
    SOFTCAP("final_logit_softcapping", "30", "logit_cap"),
    END};
static const struct weft_hub_key gemma3_keys[] = {
    GEMMA_KEYS,
    GEMMA_SCALAR,
    {"rope_theta", WEFT_HUB_NUMBERS, "null", "1e6", "rope_base"},
    SOFTCAP("attn_logit_softcapping", NULL, "attention_cap"),
    SOFTCAP("final_logit_softcapping", NULL, "logit_cap"),
    END};
/* A decoder would attend causally. */
static const struct weft_hub_key bert_keys[] = {
    {"hidden_act", WEFT_HUB_COMPUTATION, "\"gelu\"", NULL, NULL},
    {"hidden_dropout_prob", WEFT_HUB_DROPOUT, "0", "0.1", NULL},
    {"attention_probs_dropout_prob", WEFT_HUB_DROPOUT, "0", "0.1", NULL},
    {"classifier_dropout", WEFT_HUB_NOTHING, NULL, NULL, NULL},
    {"layer_norm_eps", WEFT_HUB_NUMBERS, "1e-5", "1e-12", "eps"},
    REFUSE("position_embedding_type", "\"absolute\""),
    REFUSE("is_decoder", "false"),
    END};
/* Numbers of classes are sizes. Other problems have another loss. */
static const struct weft_hub_key vit_keys[] = {
    {"hidden_act", WEFT_HUB_COMPUTATION, "\"gelu\"", NULL, NULL},
    {"hidden_dropout_prob", WEFT_HUB_DROPOUT, "0", NULL, NULL},
    {"attention_probs_dropout_prob", WEFT_HUB_DROPOUT, "0", NULL, NULL},
    {"layer_norm_eps", WEFT_HUB_NUMBERS, "1e-5", "1e-12", "eps"},
    REFUSE("qkv_bias", "true"),
    REFUSE("problem_type", "\"single_label_classification\"|null"),
    NOTHING("id2label"),
    NOTHING("label2id"),
    NOTHING("encoder_stride"),
    NOTHING("pooler_output_size"),
    NOTHING("pooler_act"),
    END};
static const struct weft_hub_key gpt2_keys[] = {
    {"activation_function", WEFT_HUB_COMPUTATION, "\"gelu_new\"|\"gelu_pytorch_tanh\"", NULL, NULL},
    {"attn_pdrop", WEFT_HUB_DROPOUT, "0", "0.1", NULL},
    {"embd_pdrop", WEFT_HUB_DROPOUT, "0", "0.1", NULL},
    {"resid_pdrop", WEFT_HUB_DROPOUT, "0", "0.1", NULL},
    {"layer_norm_epsilon", WEFT_HUB_NUMBERS, "1e-5", NULL, "eps"},
    {"reorder_and_upcast_attn", WEFT_HUB_NUMBERS, "false", NULL, NULL},
    REFUSE("scale_attn_weights", "true"),
    REFUSE("scale_attn_by_inverse_layer_idx", "false"),
    NOTHING("n_ctx"),
    NOTHING("summary_type"),
    NOTHING("summary_use_proj"),
    NOTHING("summary_activation"),
    NOTHING("summary_proj_to_labels"),
    NOTHING("summary_first_dropout"),
    END};
static const struct weft_hub_key llama_keys[] = {
    LLAMA_KEYS, HEAD_DIM, {"rms_norm_eps", WEFT_HUB_NUMBERS, "null", "1e-6", "eps"}, END};
static const struct weft_hub_key qwen3_keys[] = {
    LLAMA_KEYS,
    {"head_dim", WEFT_HUB_COMPUTATION, WEFT_HUB_HEAD_DIM, "128", "head_dim"},
    {"rms_norm_eps", WEFT_HUB_NUMBERS, "null", "1e-6", "eps"},
    NOTHING("max_window_layers"),
    END};
static const struct weft_hub_key olmo2_keys[] = {
    LLAMA_KEYS, HEAD_DIM, {"rms_norm_eps", WEFT_HUB_NUMBERS, "null", "1e-5", "eps"}, END};
static const struct weft_hub_key phi3_keys[] = {
    LLAMA_KEYS,
    HEAD_DIM,
    {"rms_norm_eps", WEFT_HUB_NUMBERS, "null", "1e-5", "eps"},
    {"resid_pdrop", WEFT_HUB_DROPOUT, "0", NULL, NULL},
    {"embd_pdrop", WEFT_HUB_DROPOUT, "0", NULL, NULL},
    NOTHING("original_max_position_embeddings"),
    END};
static const struct weft_hub_key mixtral_keys[] = {
    LLAMA_KEYS,
    HEAD_DIM,
    {"rms_norm_eps", WEFT_HUB_NUMBERS, "null", "1e-5", "eps"},
    {"router_jitter_noise", WEFT_HUB_DROPOUT, "0", NULL, NULL},
    NOTHING("output_router_logits"),
    {"router_aux_loss_coef", WEFT_HUB_NUMBERS, "0", "0.001", NULL},
    END};
static const struct weft_hub_key qwen2_keys[] = {
    LLAMA_KEYS,
    HEAD_DIM,
    {"rms_norm_eps", WEFT_HUB_NUMBERS, "null", "1e-6", "eps"},
    NOTHING("max_window_layers"),
    NOTHING("attention_bias"),
    NOTHING("qkv_bias"),
    END};

#define LLAMA_NAMES                                                                                \
    .norm = "rms_norm", .embed_name = "embed", .block_name = "layers.{i}", .norm_name = "norm"
#define LLAMA_TENSORS .prefix = "model.", .rows = weft_hub_llama_rows
#define LLAMA_SIZES(kv_missing, ffn, vocab)                                                        \
    [WEFT_HUB_HIDDEN] = {"hidden_size", NULL, 4096, 0},                                            \
    [WEFT_HUB_HEADS] = {"num_attention_heads", NULL, 32, 0},                                       \
    [WEFT_HUB_KV_HEADS] = {"num_key_value_heads", NULL, kv_missing, WEFT_HUB_AS_HEADS},            \
    [WEFT_HUB_FFN] = {"intermediate_size", NULL, ffn, 0},                                          \
    [WEFT_HUB_LAYERS] = {"num_hidden_layers", NULL, 32, 0},                                        \
    [WEFT_HUB_VOCAB] = {"vocab_size", NULL, vocab, 0}

#define GEMMA_NAMES                                                                                \
    .norm = "gemma_norm", .embed_name = "embed", .block_name = "layers.{i}", .norm_name = "norm",  \
    .ties = true, .scales_embedding = true, .prefix = "model."
#define GEMMA_SIZES(hidden, heads, kv_heads, ffn, layers, vocab)                                   \
    .sizes = {[WEFT_HUB_HIDDEN] = {"hidden_size", NULL, hidden, 0},                                \
              [WEFT_HUB_HEADS] = {"num_attention_heads", NULL, heads, 0},                          \
              [WEFT_HUB_KV_HEADS] = {"num_key_value_heads", NULL, kv_heads, WEFT_HUB_AS_HEADS},    \
              [WEFT_HUB_FFN] = {"intermediate_size", NULL, ffn, 0},                                \
              [WEFT_HUB_LAYERS] = {"num_hidden_layers", NULL, layers, 0},                          \
              [WEFT_HUB_VOCAB] = {"vocab_size", NULL, vocab, 0}}

static const struct weft_hub_family hub_families[] = {
    {.type = "bert",
     .architecture = "BertForMaskedLM",
     .block = "encoder_block",
     .norm = "layer_norm",
     .embed_name = "wte",
     .block_name = "h.{i}",
     .norm_name = "ln_f",
     .sizes = {[WEFT_HUB_HIDDEN] = {"hidden_size", NULL, 768, 0},
               [WEFT_HUB_HEADS] = {"num_attention_heads", NULL, 12, 0},
               [WEFT_HUB_FFN] = {"intermediate_size", NULL, 3072, 0},
               [WEFT_HUB_LAYERS] = {"num_hidden_layers", NULL, 12, 0},
               [WEFT_HUB_VOCAB] = {"vocab_size", NULL, 30522, 0},
               [WEFT_HUB_POSITIONS] = {"max_position_embeddings", NULL, 512, 0},
               [WEFT_HUB_TOKEN_TYPES] = {"type_vocab_size", NULL, 2, 0}},
     .ties = true,
     .masked = true,
     .block_flag = "post_norm",
     .keys = bert_keys,
     .prefix = "bert.",
     .rows = weft_hub_bert_rows},
    {.type = "gemma",
     .architecture = "GemmaForCausalLM",
     .block = "gemma_block",
     GEMMA_NAMES,
     GEMMA_SIZES(3072, 16, 16, 24576, 28, 256000),
     .keys = gemma_keys,
     .rows = weft_hub_llama_rows},
    {.type = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .block = "gemma2_block",
     GEMMA_NAMES,
     GEMMA_SIZES(2304, 8, 4, 9216, 26, 256000),
     .window = "sliding_window",
     .missing_window = 4096,
     .pattern = 2,
     .keys = gemma2_keys,
     .rows = weft_hub_gemma_rows},
    {.type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .block = "gemma3_block",
     GEMMA_NAMES,
     GEMMA_SIZES(2304, 8, 4, 9216, 26, 262208),
     .window = "sliding_window",
     .missing_window = 4096,
     .pattern = 6,
     .pattern_keys = {"sliding_window_pattern", "_sliding_window_pattern"},
     .local_base = "rope_local_base_freq",
     .missing_base = 10000,
     .keys = gemma3_keys,
     .rows = weft_hub_gemma_rows},
    {.type = "gpt2",
     .architecture = "GPT2LMHeadModel",
     .block = "transformer_block",
     .norm = "layer_norm",
     .embed_name = "wte",
     .block_name = "h.{i}",
     .norm_name = "ln_f",
     .sizes = {[WEFT_HUB_HIDDEN] = {"n_embd", "hidden_size", 768, 0},
               [WEFT_HUB_HEADS] = {"n_head", "num_attention_heads", 12, 0},
               [WEFT_HUB_FFN] = {"n_inner", NULL, WEFT_HUB_FOUR_HIDDEN, WEFT_HUB_FOUR_HIDDEN},
               [WEFT_HUB_LAYERS] = {"n_layer", "num_hidden_layers", 12, 0},
               [WEFT_HUB_VOCAB] = {"vocab_size", NULL, 50257, 0},
               [WEFT_HUB_POSITIONS] = {"n_positions", "max_position_embeddings", 1024, 0}},
     .ties = true,
     .keys = gpt2_keys,
     .prefix = "transformer.",
     .rows = weft_hub_gpt2_rows},
    {.type = "llama",
     .architecture = "LlamaForCausalLM",
     .block = "llama_block",
     LLAMA_NAMES,
     .sizes = {LLAMA_SIZES(WEFT_HUB_AS_HEADS, 11008, 32000)},
     .keys = llama_keys,
     LLAMA_TENSORS},
    {.type = "mistral",
     .architecture = "MistralForCausalLM",
     .block = "llama_block",
     LLAMA_NAMES,
     .sizes = {LLAMA_SIZES(8, 14336, 32000)},
     .window = "sliding_window",
     .missing_window = 4096,
     .keys = llama_keys,
     LLAMA_TENSORS},
    {.type = "mixtral",
     .architecture = "MixtralForCausalLM",
     .block = "moe_block",
     LLAMA_NAMES,
     .sizes = {LLAMA_SIZES(8, 14336, 32000),
               [WEFT_HUB_EXPERTS] = {"num_local_experts", "num_experts", 8, 0},
               [WEFT_HUB_ACTIVE] = {"num_experts_per_tok", NULL, 2, 0}},
     .window = "sliding_window",
     .keys = mixtral_keys},
    {.type = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .block = "olmo2_block",
     LLAMA_NAMES,
     .sizes = {LLAMA_SIZES(WEFT_HUB_AS_HEADS, 11008, 50304)},
     .keys = olmo2_keys,
     .prefix = "model.",
     .rows = weft_hub_olmo2_rows},
    {.type = "phi3",
     .architecture = "Phi3ForCausalLM",
     .block = "phi3_block",
     LLAMA_NAMES,
     .sizes = {[WEFT_HUB_HIDDEN] = {"hidden_size", NULL, 3072, 0},
               [WEFT_HUB_HEADS] = {"num_attention_heads", NULL, 32, 0},
               [WEFT_HUB_KV_HEADS] = {"num_key_value_heads", NULL, WEFT_HUB_AS_HEADS,
                                      WEFT_HUB_AS_HEADS},
               [WEFT_HUB_FFN] = {"intermediate_size", NULL, 8192, 0},
               [WEFT_HUB_LAYERS] = {"num_hidden_layers", NULL, 32, 0},
               [WEFT_HUB_VOCAB] = {"vocab_size", NULL, 32064, 0}},
     .window = "sliding_window",
     .keys = phi3_keys,
     .prefix = "model.",
     .rows = weft_hub_phi3_rows},
    {.type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .block = "llama_block",
     LLAMA_NAMES,
     .sizes = {LLAMA_SIZES(32, 22016, 151936)},
     .block_flag = "qkv_bias",
     .window = "sliding_window",
     .window_flag = "use_sliding_window",
     .missing_window = 4096,
     .keys = qwen2_keys,
     LLAMA_TENSORS},
    {.type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .block = "qwen3_block",
     LLAMA_NAMES,
     .sizes = {LLAMA_SIZES(32, 22016, 151936)},
     .window = "sliding_window",
     .window_flag = "use_sliding_window",
     .missing_window = 4096,
     .keys = qwen3_keys,
     LLAMA_TENSORS},
    {.type = "vit",
     .architecture = "ViTForImageClassification",
     .block = "encoder_block",
     .norm = "layer_norm",
     .embed_name = "patches",
     .block_name = "h.{i}",
     .norm_name = "ln_f",
     .sizes = {[WEFT_HUB_HIDDEN] = {"hidden_size", NULL, 768, 0},
               [WEFT_HUB_HEADS] = {"num_attention_heads", NULL, 12, 0},
               [WEFT_HUB_FFN] = {"intermediate_size", NULL, 3072, 0},
               [WEFT_HUB_LAYERS] = {"num_hidden_layers", NULL, 12, 0},
               [WEFT_HUB_IMAGE] = {"image_size", NULL, 224, 0},
               [WEFT_HUB_PATCH] = {"patch_size", NULL, 16, 0},
               [WEFT_HUB_CHANNELS] = {"num_channels", NULL, 3, 0},
               [WEFT_HUB_CLASSES] = {"num_labels", NULL, 2, 0}},
     .images = true,
     .keys = vit_keys,
     .prefix = "vit.",
     .block_module = "layers.{i}",
     .rows = weft_hub_vit_rows},
};
enum { N_FAMILIES = sizeof hub_families / sizeof *hub_families };

const struct weft_hub_family *weft_hub_family_find(const char *type)
{
    for (int i = 0; i < N_FAMILIES; i++)
        if (strcmp(type, hub_families[i].type) == 0) return &hub_families[i];
    return NULL;
}

const struct weft_hub_family *weft_hub_family_at(int32_t index)
{
    return index < N_FAMILIES ? &hub_families[index] : NULL;
}

static const struct weft_hub_key *find_row(const struct weft_hub_key *rows, const char *name)
{
    for (; rows->key != NULL; rows++)
        if (strcmp(rows->key, name) == 0) return rows;
    return NULL;
}

const struct weft_hub_key *weft_hub_key_find(const struct weft_hub_family *family, const char *name)
{
    const struct weft_hub_key *own = find_row(family->keys, name);
    return own != NULL ? own : find_row(common_keys, name);
}
