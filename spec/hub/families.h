/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of Hugging Face's config.json: for each type of model, the sizes that Weft uses, their
 * defaults in transformers, and the changes that other keys make. */
#ifndef WEFT_SPEC_HUB_FAMILIES_H
#define WEFT_SPEC_HUB_FAMILIES_H

#include <stdbool.h>
#include <stdint.h>

/* The types of models, for messages and help: all, and those whose tensors are read and written. A
 * test compares the table of families. */
#define WEFT_HUB_TYPES                                                                             \
    "bert, gemma, gemma2, gemma3_text, gpt2, llama, mistral, mixtral, olmo2, phi3, qwen2, qwen3, " \
    "vit"
#define WEFT_HUB_TRAINED_TYPES                                                                     \
    "bert, gemma, gemma2, gemma3_text, gpt2, llama, mistral, olmo2, phi3, qwen2, qwen3, vit"

/* A size of the model. The default may be one of two rules. */
enum weft_hub_size {
    WEFT_HUB_HIDDEN,
    WEFT_HUB_HEADS,
    WEFT_HUB_KV_HEADS,
    WEFT_HUB_FFN,
    WEFT_HUB_EXPERTS,
    WEFT_HUB_ACTIVE,
    WEFT_HUB_LAYERS,
    WEFT_HUB_VOCAB,
    WEFT_HUB_POSITIONS,
    WEFT_HUB_TOKEN_TYPES,
    WEFT_HUB_IMAGE, /* pixels a side */
    WEFT_HUB_PATCH,
    WEFT_HUB_CHANNELS,
    WEFT_HUB_CLASSES, /* or the number of entries of "id2label" */
    WEFT_HUB_SIZES
};
enum { WEFT_HUB_AS_HEADS = -1, WEFT_HUB_FOUR_HIDDEN = -2 };

/* Key of a block's layer for a size; NULL: of no block. */
extern const char *const weft_hub_block_keys[WEFT_HUB_SIZES];

/* Members of "rope_scaling", or in transformers 5 "rope_parameters", and keys of a layer kind that
 * take them. */
enum { WEFT_HUB_ROPE_MEMBERS = 5 };
extern const struct weft_hub_rope_member {
    const char *member, *to;
} weft_hub_rope_members[WEFT_HUB_ROPE_MEMBERS];

struct weft_hub_size_key {
    const char *key, *alias; /* NULL: the family has no such size; no alias */
    int64_t missing;         /* transformers' value if the key is left out, or a rule above */
    int64_t null;            /* the value for null; 0: null is refused */
};

/* The change that a key makes if it has another value than Weft's layers stand for. */
enum weft_hub_change {
    WEFT_HUB_NOTHING,
    WEFT_HUB_LABELS,     /* hints at another head; nothing if the architecture is known */
    WEFT_HUB_START,      /* initial values */
    WEFT_HUB_DROPOUT,    /* told: no layer has it */
    WEFT_HUB_NUMBERS,    /* told: no memory and no time of a plan depends on it */
    WEFT_HUB_COMPUTATION /* refused */
};

struct weft_hub_key {
    const char *key;
    enum weft_hub_change change;
    const char *usual;   /* JSON values separated by '|' that change nothing; WEFT_HUB_HEAD_DIM:
                            hidden / heads; NULL for NOTHING */
    const char *missing; /* transformers' value if the key is left out; NULL: a usual one */
    const char *to;      /* key of a layer kind that takes the value, if the kind has it; NULL */
};
struct weft_hub_row; /* tensors.h */
#define WEFT_HUB_HEAD_DIM "hidden / heads"

enum { WEFT_HUB_PATTERN_KEYS = 2 };

struct weft_hub_family {
    const char *type;         /* "model_type" */
    const char *architecture; /* the class with a head on the vocabulary, or on classes */
    const char *block, *norm; /* layer kinds */
    const char *embed_name, *block_name, *norm_name;
    struct weft_hub_size_key sizes[WEFT_HUB_SIZES];
    bool ties;               /* if tie_word_embeddings is left out */
    const char *block_flag;  /* a key of the block that is true; NULL: none */
    const char *window;      /* key of the attention's window; NULL: none */
    const char *window_flag; /* key without which the window is not used; NULL: none */
    int64_t missing_window;  /* 0: none */
    int64_t pattern;         /* each so many layers, the last has no window; 0: all have one */
    const char *pattern_keys[WEFT_HUB_PATTERN_KEYS]; /* that take another; the first given counts */
    const char *local_base; /* key of the rotary base of layers with a window; NULL: none */
    double missing_base;
    bool scales_embedding; /* token rows are multiplied by the root of hidden */
    bool masked; /* predicts masked tokens: more layers, and a head with a bias (layers.h) */
    bool images; /* classifies patches of an image after a class token (layers.h) */
    const struct weft_hub_key *keys; /* up to one without a key */
    const char *prefix;              /* of tensors' names up to the head's */
    const char *block_module;        /* after the prefix; NULL: as tensors' names begin */
    const struct weft_hub_row *rows; /* tensors; NULL: the family can be planned alone */
};

/* The family of that "model_type"; NULL if there is none. */
const struct weft_hub_family *weft_hub_family_find(const char *type);
/* Family `index`, from 0; NULL after the last. */
const struct weft_hub_family *weft_hub_family_at(int32_t index);
/* The row of a key, of the family or of all models; NULL for an unknown key. */
const struct weft_hub_key *weft_hub_key_find(const struct weft_hub_family *family,
                                             const char *name);

#endif
