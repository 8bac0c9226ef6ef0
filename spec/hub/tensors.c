/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/hub/tensors.h"

#include <stddef.h>

#define FORM(place, own, hub, form)                                                                \
    {                                                                                              \
        WEFT_HUB_##place, own, hub, WEFT_HUB_##form                                                \
    }
#define ROW(place, own, hub) FORM(place, own, hub, AS_IS)
#define EMBEDDING(own, hub)  ROW(IN_EMBEDDING, own, hub)
#define BLOCK(own, hub)      ROW(IN_BLOCK, own, hub)
#define TURNED(own, hub)     FORM(IN_BLOCK, own, hub, TRANSPOSED)
#define NORM(own, hub)       ROW(IN_NORM, own, hub)
#define HEAD                 ROW(IN_HEAD, "weight", "lm_head.weight")
#define BUFFER(hub)          ROW(IN_BLOCK, NULL, hub)
#define LEFT_OUT(place, hub) FORM(place, NULL, hub, LEFT_OUT)
#define END                  ROW(PLACES, NULL, NULL)

/* GPT-2's products are written as input x weight. */
const struct weft_hub_row weft_hub_gpt2_rows[] = {
    EMBEDDING("tokens", "wte.weight"),
    EMBEDDING("positions", "wpe.weight"),
    BLOCK("ln1.weight", "h.{i}.ln_1.weight"),
    BLOCK("ln1.bias", "h.{i}.ln_1.bias"),
    TURNED("attn.qkv.weight", "h.{i}.attn.c_attn.weight"),
    BLOCK("attn.qkv.bias", "h.{i}.attn.c_attn.bias"),
    TURNED("attn.proj.weight", "h.{i}.attn.c_proj.weight"),
    BLOCK("attn.proj.bias", "h.{i}.attn.c_proj.bias"),
    BLOCK("ln2.weight", "h.{i}.ln_2.weight"),
    BLOCK("ln2.bias", "h.{i}.ln_2.bias"),
    TURNED("mlp.fc.weight", "h.{i}.mlp.c_fc.weight"),
    BLOCK("mlp.fc.bias", "h.{i}.mlp.c_fc.bias"),
    TURNED("mlp.proj.weight", "h.{i}.mlp.c_proj.weight"),
    BLOCK("mlp.proj.bias", "h.{i}.mlp.c_proj.bias"),
    NORM("weight", "ln_f.weight"),
    NORM("bias", "ln_f.bias"),
    HEAD,
    BUFFER("h.{i}.attn.bias"),
    BUFFER("h.{i}.attn.masked_bias"),
    END};

/* Llama, Mistral, Qwen 2, Qwen 3 and Gemma name the same tensors alike. */
const struct weft_hub_row weft_hub_llama_rows[] = {
    EMBEDDING("tokens", "embed_tokens.weight"),
    BLOCK("input_norm.weight", "layers.{i}.input_layernorm.weight"),
    BLOCK("attn.q.weight", "layers.{i}.self_attn.q_proj.weight"),
    BLOCK("attn.q.bias", "layers.{i}.self_attn.q_proj.bias"),
    BLOCK("attn.k.weight", "layers.{i}.self_attn.k_proj.weight"),
    BLOCK("attn.k.bias", "layers.{i}.self_attn.k_proj.bias"),
    BLOCK("attn.v.weight", "layers.{i}.self_attn.v_proj.weight"),
    BLOCK("attn.v.bias", "layers.{i}.self_attn.v_proj.bias"),
    BLOCK("attn.o.weight", "layers.{i}.self_attn.o_proj.weight"),
    BLOCK("attn.q_norm.weight", "layers.{i}.self_attn.q_norm.weight"),
    BLOCK("attn.k_norm.weight", "layers.{i}.self_attn.k_norm.weight"),
    BLOCK("post_norm.weight", "layers.{i}.post_attention_layernorm.weight"),
    BLOCK("mlp.gate.weight", "layers.{i}.mlp.gate_proj.weight"),
    BLOCK("mlp.up.weight", "layers.{i}.mlp.up_proj.weight"),
    BLOCK("mlp.down.weight", "layers.{i}.mlp.down_proj.weight"),
    NORM("weight", "norm.weight"),
    HEAD,
    BUFFER("layers.{i}.self_attn.rotary_emb.inv_freq"),
    END};

/* Phi-3's products of one input are one matrix. */
const struct weft_hub_row weft_hub_phi3_rows[] = {
    EMBEDDING("tokens", "embed_tokens.weight"),
    BLOCK("input_norm.weight", "layers.{i}.input_layernorm.weight"),
    BLOCK("attn.qkv.weight", "layers.{i}.self_attn.qkv_proj.weight"),
    BLOCK("attn.o.weight", "layers.{i}.self_attn.o_proj.weight"),
    BLOCK("post_norm.weight", "layers.{i}.post_attention_layernorm.weight"),
    BLOCK("mlp.gate_up.weight", "layers.{i}.mlp.gate_up_proj.weight"),
    BLOCK("mlp.down.weight", "layers.{i}.mlp.down_proj.weight"),
    NORM("weight", "norm.weight"),
    HEAD,
    BUFFER("layers.{i}.self_attn.rotary_emb.inv_freq"),
    END};

const struct weft_hub_row weft_hub_olmo2_rows[] = {
    EMBEDDING("tokens", "embed_tokens.weight"),
    BLOCK("attn.q.weight", "layers.{i}.self_attn.q_proj.weight"),
    BLOCK("attn.k.weight", "layers.{i}.self_attn.k_proj.weight"),
    BLOCK("attn.v.weight", "layers.{i}.self_attn.v_proj.weight"),
    BLOCK("attn.o.weight", "layers.{i}.self_attn.o_proj.weight"),
    BLOCK("attn.q_norm.weight", "layers.{i}.self_attn.q_norm.weight"),
    BLOCK("attn.k_norm.weight", "layers.{i}.self_attn.k_norm.weight"),
    BLOCK("post_norm.weight", "layers.{i}.post_attention_layernorm.weight"),
    BLOCK("mlp.gate.weight", "layers.{i}.mlp.gate_proj.weight"),
    BLOCK("mlp.up.weight", "layers.{i}.mlp.up_proj.weight"),
    BLOCK("mlp.down.weight", "layers.{i}.mlp.down_proj.weight"),
    BLOCK("post_mlp_norm.weight", "layers.{i}.post_feedforward_layernorm.weight"),
    NORM("weight", "norm.weight"),
    HEAD,
    END};

/* Gemma 2 and 3. */
const struct weft_hub_row weft_hub_gemma_rows[] = {
    EMBEDDING("tokens", "embed_tokens.weight"),
    BLOCK("input_norm.weight", "layers.{i}.input_layernorm.weight"),
    BLOCK("attn.q.weight", "layers.{i}.self_attn.q_proj.weight"),
    BLOCK("attn.k.weight", "layers.{i}.self_attn.k_proj.weight"),
    BLOCK("attn.v.weight", "layers.{i}.self_attn.v_proj.weight"),
    BLOCK("attn.o.weight", "layers.{i}.self_attn.o_proj.weight"),
    BLOCK("attn.q_norm.weight", "layers.{i}.self_attn.q_norm.weight"),
    BLOCK("attn.k_norm.weight", "layers.{i}.self_attn.k_norm.weight"),
    BLOCK("post_norm.weight", "layers.{i}.post_attention_layernorm.weight"),
    BLOCK("pre_mlp_norm.weight", "layers.{i}.pre_feedforward_layernorm.weight"),
    BLOCK("mlp.gate.weight", "layers.{i}.mlp.gate_proj.weight"),
    BLOCK("mlp.up.weight", "layers.{i}.mlp.up_proj.weight"),
    BLOCK("mlp.down.weight", "layers.{i}.mlp.down_proj.weight"),
    BLOCK("post_mlp_norm.weight", "layers.{i}.post_feedforward_layernorm.weight"),
    NORM("weight", "norm.weight"),
    HEAD,
    END};

const struct weft_hub_row weft_hub_bert_rows[] = {
    EMBEDDING("tokens", "embeddings.word_embeddings.weight"),
    EMBEDDING("positions", "embeddings.position_embeddings.weight"),
    ROW(IN_TYPES, "table", "embeddings.token_type_embeddings.weight"),
    ROW(IN_EMBEDDING_NORM, "weight", "embeddings.LayerNorm.weight"),
    ROW(IN_EMBEDDING_NORM, "bias", "embeddings.LayerNorm.bias"),
    BLOCK("attn.q.weight", "encoder.layer.{i}.attention.self.query.weight"),
    BLOCK("attn.q.bias", "encoder.layer.{i}.attention.self.query.bias"),
    BLOCK("attn.k.weight", "encoder.layer.{i}.attention.self.key.weight"),
    BLOCK("attn.k.bias", "encoder.layer.{i}.attention.self.key.bias"),
    BLOCK("attn.v.weight", "encoder.layer.{i}.attention.self.value.weight"),
    BLOCK("attn.v.bias", "encoder.layer.{i}.attention.self.value.bias"),
    BLOCK("attn.proj.weight", "encoder.layer.{i}.attention.output.dense.weight"),
    BLOCK("attn.proj.bias", "encoder.layer.{i}.attention.output.dense.bias"),
    BLOCK("ln1.weight", "encoder.layer.{i}.attention.output.LayerNorm.weight"),
    BLOCK("ln1.bias", "encoder.layer.{i}.attention.output.LayerNorm.bias"),
    BLOCK("mlp.fc.weight", "encoder.layer.{i}.intermediate.dense.weight"),
    BLOCK("mlp.fc.bias", "encoder.layer.{i}.intermediate.dense.bias"),
    BLOCK("mlp.proj.weight", "encoder.layer.{i}.output.dense.weight"),
    BLOCK("mlp.proj.bias", "encoder.layer.{i}.output.dense.bias"),
    BLOCK("ln2.weight", "encoder.layer.{i}.output.LayerNorm.weight"),
    BLOCK("ln2.bias", "encoder.layer.{i}.output.LayerNorm.bias"),
    ROW(IN_DENSE, "weight", "cls.predictions.transform.dense.weight"),
    ROW(IN_DENSE, "bias", "cls.predictions.transform.dense.bias"),
    /* No tensor: the row names the module. */
    ROW(IN_ACTIVATION, "-", "cls.predictions.transform.transform_act_fn.-"),
    ROW(IN_HEAD_NORM, "weight", "cls.predictions.transform.LayerNorm.weight"),
    ROW(IN_HEAD_NORM, "bias", "cls.predictions.transform.LayerNorm.bias"),
    ROW(IN_HEAD, "weight", "cls.predictions.decoder.weight"),
    ROW(IN_HEAD, "bias", "cls.predictions.bias"), BUFFER("embeddings.position_ids"),
    LEFT_OUT(IN_NORM, "pooler.dense.weight"), LEFT_OUT(IN_NORM, "pooler.dense.bias"),
    LEFT_OUT(IN_HEAD, "cls.seq_relationship.weight"),
    LEFT_OUT(IN_HEAD, "cls.seq_relationship.bias"), END};

const struct weft_hub_row weft_hub_vit_rows[] = {
    FORM(IN_EMBEDDING, "weight", "embeddings.patch_embeddings.projection.weight", PATCHES),
    EMBEDDING("bias", "embeddings.patch_embeddings.projection.bias"),
    FORM(IN_POSITIONS, "first", "embeddings.cls_token", BATCHED),
    FORM(IN_POSITIONS, "table", "embeddings.position_embeddings", BATCHED),
    BLOCK("ln1.weight", "encoder.layer.{i}.layernorm_before.weight"),
    BLOCK("ln1.bias", "encoder.layer.{i}.layernorm_before.bias"),
    BLOCK("attn.q.weight", "encoder.layer.{i}.attention.attention.query.weight"),
    BLOCK("attn.q.bias", "encoder.layer.{i}.attention.attention.query.bias"),
    BLOCK("attn.k.weight", "encoder.layer.{i}.attention.attention.key.weight"),
    BLOCK("attn.k.bias", "encoder.layer.{i}.attention.attention.key.bias"),
    BLOCK("attn.v.weight", "encoder.layer.{i}.attention.attention.value.weight"),
    BLOCK("attn.v.bias", "encoder.layer.{i}.attention.attention.value.bias"),
    BLOCK("attn.proj.weight", "encoder.layer.{i}.attention.output.dense.weight"),
    BLOCK("attn.proj.bias", "encoder.layer.{i}.attention.output.dense.bias"),
    BLOCK("ln2.weight", "encoder.layer.{i}.layernorm_after.weight"),
    BLOCK("ln2.bias", "encoder.layer.{i}.layernorm_after.bias"),
    BLOCK("mlp.fc.weight", "encoder.layer.{i}.intermediate.dense.weight"),
    BLOCK("mlp.fc.bias", "encoder.layer.{i}.intermediate.dense.bias"),
    BLOCK("mlp.proj.weight", "encoder.layer.{i}.output.dense.weight"),
    BLOCK("mlp.proj.bias", "encoder.layer.{i}.output.dense.bias"),
    NORM("weight", "layernorm.weight"),
    NORM("bias", "layernorm.bias"),
    ROW(IN_HEAD, "weight", "classifier.weight"),
    ROW(IN_HEAD, "bias", "classifier.bias"),
    LEFT_OUT(IN_NORM, "pooler.dense.weight"),
    LEFT_OUT(IN_NORM, "pooler.dense.bias"),
    END};
