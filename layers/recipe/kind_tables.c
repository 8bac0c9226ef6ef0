/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "layers/recipe/kind_json.h"

#define AT(type, member) offsetof(struct type, member)
#define ROWS(array)      (array), sizeof(array) / sizeof *(array)
/* A key that the reader decodes. */
#define ANY(name, fallback, text)                                                                  \
    {                                                                                              \
        name, WEFT_FIELD_ANY, 0, fallback, 0, 0, NULL, NULL, text                                  \
    }
#define WORD(name, member, choices, text)                                                          \
    {                                                                                              \
        name, WEFT_FIELD_CHOICE, AT(weft_step_decoded, member), "null", 0, 0, choices, NULL, text  \
    }

static const struct weft_op *const ops[] = {
#define OP(name) &weft_op_##name,
    WEFT_OPS(OP)
#undef OP
};
static const char *const op_names[] = {
#define OP(name) #name,
    WEFT_OPS(OP)
#undef OP
        NULL};
static const char *const word_names[WEFT_WORD_COUNT] = {
#define WORD_NAME(word, name) [WEFT_WORD_##word] = name,
    WEFT_WORDS(WORD_NAME)
#undef WORD_NAME
};

static const char *const inputs[] = {"rows", "tokens", NULL};
static const char *const types[] = {"integer", "number", "flag", NULL};
static const char *const kinds[] = {"layer",        "rms",      "gelu", "silu", "relu",
                                    "squared_relu", "gelu_erf", "tanh", NULL};
static const char *const thens[] = {"gelu", NULL};
static const char *const inits[] = {"fan_in", "residual", NULL};
static const char *const saves[] = {"log_sums", NULL};

static const struct weft_field key_fields[] = {
    {"name", WEFT_FIELD_STRING, AT(weft_key_decoded, name), NULL, 0, 0, NULL, NULL,
     "letters, digits and \"_\"; every kind has \"hidden\", and one with tokens or a loss "
     "\"vocab\" "
     "or \"classes\""},
    {"type", WEFT_FIELD_CHOICE, AT(weft_key_decoded, type), "\"integer\"", 0, 0, types, NULL,
     "expressions read integers and flags (0 or 1); attributes of steps read numbers"},
    ANY("default", "null",
        "the value if it is left out; of an integer also an expression of earlier keys; without "
        "one, the key is required"),
    ANY("least", "null", "smallest value; left out: 1, or the default if that is smaller"),
    ANY("most", "null", "largest value; left out: 2147483647, of a number 1e12"),
    {"text", WEFT_FIELD_STRING, AT(weft_key_decoded, text), "null", 0, 0, NULL, NULL,
     "one line for readers"},
};
const struct weft_field_table weft_kind_key_table = {"key", "One key of the kind's layers.",
                                                     ROWS(key_fields)};

static const struct weft_field step_fields[] = {
    {"op", WEFT_FIELD_CHOICE, AT(weft_step_decoded, op), NULL, 0, 0, op_names, NULL,
     "the computation; each op has some of the other keys"},
    ANY("in", NULL,
        "reference, or an array of them: a value, or columns of it as \"qkv[0:hidden]\"; \"x\" is "
        "the layer's input"),
    ANY("out", NULL, "name of the new value, or an array of names; \"y\" is the layer's output"),
    ANY("if", "null", "expression; 0 leaves the step out"),
    {"name", WEFT_FIELD_STRING, AT(weft_step_decoded, name), "null", 0, 0, NULL, NULL,
     "first part of the names of its tensors: \"attn.o\" for \"attn.o.weight\""},
    ANY("add", "null", "reference that a product adds to its result"),
    WORD("kind", kind, kinds, "of a norm, gate or activation"),
    WORD("then", then, thens, "activation of a product's result, its second value"),
    WORD("init", init, inits,
         "first values of a product's weight; left out: normal with deviation 0.02"),
    WORD("save", save, saves, "attention saves sums of rows; left out: probabilities"),
    ANY("from", "null",
        "matrices that a product's weight joins by rows: an object of names and ends of rows"),
#define SIZE(name, text)   ANY(#name, "null", text),
#define NUMBER(name, text) ANY(#name, "null", text),
    WEFT_STEP_SIZES(SIZE) WEFT_STEP_NUMBERS(NUMBER)
#undef SIZE
#undef NUMBER
};
const struct weft_field_table weft_kind_step_table = {
    "step",
    "One step of the recipe. Sizes are integers or expressions of keys and definitions; other "
    "numbers may be the name of a key.",
    ROWS(step_fields)};

static const struct weft_field kind_fields[] = {
    {"kind", WEFT_FIELD_STRING, AT(weft_kind_decoded, kind), NULL, 0, 0, NULL, NULL,
     "the `type` of its layers; letters, digits and \"_\""},
    {"text", WEFT_FIELD_STRING, AT(weft_kind_decoded, text), "null", 0, 0, NULL, NULL,
     "one line for readers"},
    {"input", WEFT_FIELD_CHOICE, AT(weft_kind_decoded, input), "\"rows\"", 0, 0, inputs, NULL,
     "`tokens` for a first layer"},
    {"keys", WEFT_FIELD_LIST, 0, NULL, 0, 0, NULL, &weft_kind_key_table,
     "keys of its layers, besides those that every layer has; at most 16"},
    ANY("define", "null", "object of names and expressions, in order; at most 8"),
    ANY("demands", "null", "array of expressions that must hold; at most 8"),
    {"steps", WEFT_FIELD_LIST, 0, NULL, 0, 0, NULL, &weft_kind_step_table,
     "the computation of a layer, at most 32 steps with 16 products"},
};
const struct weft_field_table weft_kind_table = {
    "kind",
    "A layer type of your own, as a recipe (docs/recipes.md). `weft explain --kind llama_block "
    "--json` prints one to copy.",
    ROWS(kind_fields)};

const struct weft_op *weft_kind_op(int choice)
{
    return ops[choice];
}

enum weft_word weft_kind_word(const char *field, int choice)
{
    if (choice < 0) return WEFT_WORD_NONE;
    const char *name = weft_field_find(&weft_kind_step_table, field)->choices[choice];
    for (int word = 1; word < WEFT_WORD_COUNT; word++)
        if (strcmp(word_names[word], name) == 0) return (enum weft_word)word;
    return WEFT_WORD_NONE;
}

const char *weft_word_name(enum weft_word word)
{
    return word_names[word];
}
