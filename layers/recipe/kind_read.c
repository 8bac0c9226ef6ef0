/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "layers/recipe/kind_json.h"
#include "layers/shared/keys.h"
#include "spec/names.h"

enum { MOST_NAME = 60, PATH_BYTES = 300 };

/* A kind while it is read. */
struct reader {
    const char *source, *path; /* path: of the kind */
    struct weft_pool *pool;
    struct weft_findings *findings;
    bool enough; /* memory */
    struct weft_recipe *recipe;
    struct weft_recipe_step *steps;
    struct weft_field *keys;
    size_t n_keys;
    bool outputs_given;
};

/* Adds a finding at a key below the kind: "steps[3].columns". */
WEFT_PRINTF(3, 4)
static void add_fault(struct reader *reader, const char *where, const char *format, ...)
{
    char text[400], path[PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(path, sizeof path, "%.150s.%.140s", reader->path, where);
    weft_findings_add(reader->findings, reader->source, path, "%s", text);
}

static char *copy_text(struct reader *reader, const char *text, size_t length)
{
    char *copy = weft_pool_format(reader->pool, "%.*s", (int)length, text);
    reader->enough = reader->enough && copy != NULL;
    return copy;
}

static bool is_word(const char *name)
{
    return weft_name_is_good(name, MOST_NAME) && strpbrk(name, ".-") == NULL &&
           !(name[0] >= '0' && name[0] <= '9');
}

/* An integer of at least 0, a flag or a text, as an expression. NULL with a finding otherwise. */
static const char *read_expression(struct reader *reader, const struct weft_json_value *value,
                                   const char *where)
{
    const char *text;
    int64_t integer;
    bool flag;
    if (weft_json_bool(value, &flag)) return flag ? "1" : "0";
    if (weft_json_integer(value, &integer) && integer >= 0) {
        char *copy = weft_pool_format(reader->pool, "%lld", (long long)integer);
        reader->enough = reader->enough && copy != NULL;
        return copy;
    }
    if (weft_json_string(value, &text) && text[0] != '\0')
        return copy_text(reader, text, strlen(text));
    add_fault(reader, where,
              "must be an integer of at least 0, or an expression such as \"2*hidden\"");
    return NULL;
}

/* A number as written, or the name of a key. */
static const char *read_number(struct reader *reader, const struct weft_json_value *value,
                               const char *where)
{
    const char *text;
    const size_t length = weft_json_number_text(value, &text);
    if (length > 0) return copy_text(reader, text, length);
    if (weft_json_string(value, &text) && text[0] != '\0')
        return copy_text(reader, text, strlen(text));
    add_fault(reader, where, "must be a number, or the name of a key that is one");
    return NULL;
}

/* A text, or an array of at most `most`. */
static void read_texts(struct reader *reader, const struct weft_json_value *value,
                       const char *where, const char **out, int32_t most)
{
    const bool many = weft_json_kind(value) == WEFT_JSON_ARRAY;
    const struct weft_json_value *at = many ? weft_json_first(value) : value;
    const char *text;
    int32_t n = 0;
    for (; at != NULL; at = many ? weft_json_next(at) : NULL) {
        if (n == most || !weft_json_string(at, &text) || text[0] == '\0') {
            n = 0;
            break;
        }
        out[n++] = copy_text(reader, text, strlen(text));
    }
    if (n == 0) add_fault(reader, where, "must be a text, or an array of 1 to %d", (int)most);
}

/* Keys. */

/* Members of every layer that a key of the name sets. */
static const struct {
    const char *name;
    size_t offset;
    double least, most;
} members[] = {{"hidden", WEFT_LAYER_AT(hidden), 1, WEFT_WIDTH_MOST},
               {"vocab", WEFT_LAYER_AT(vocab), 1, WEFT_INT32_MOST},
               {"outputs", WEFT_LAYER_AT(outputs), 1, WEFT_WIDTH_MOST},
               {"classes", WEFT_LAYER_AT(outputs), 2, WEFT_WIDTH_MOST}};

static bool is_key(const struct reader *reader, const char *name)
{
    for (size_t i = 0; i < reader->n_keys; i++)
        if (strcmp(reader->keys[i].name, name) == 0) return true;
    return false;
}

static bool check_key_name(struct reader *reader, const char *name, const char *where)
{
    static const char *const taken[] = {"name", "type", "repeat",  "frozen",
                                        "tie",  "rows", "samples", "seq_len"};
    if (!is_word(name))
        add_fault(
            reader, where,
            "\"%.60s\" cannot be a name; at most %d letters, digits and \"_\", a letter first",
            name, MOST_NAME);
    if (!is_word(name)) return false;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        if (strcmp(name, taken[i]) != 0) continue;
        add_fault(reader, where,
                  "every layer or expression has \"%s\" already; choose another name", name);
        return false;
    }
    if (is_key(reader, name)) add_fault(reader, where, "two keys are named \"%s\"", name);
    return !is_key(reader, name);
}

/* Adds the default: a value, or an expression of earlier keys. */
static void read_default(struct reader *reader, const struct weft_json_value *value,
                         const char *where, struct weft_field *field)
{
    const char *text;
    double number;
    int64_t integer;
    bool flag;
    if (value == NULL) return;
    const bool is_flag = field->kind == WEFT_FIELD_BOOL;
    if (is_flag && weft_json_integer(value, &integer) && (integer == 0 || integer == 1)) {
        field->fallback = integer == 1 ? "true" : "false";
    } else if (is_flag && weft_json_bool(value, &flag)) {
        field->fallback = flag ? "true" : "false";
    } else if (field->kind == WEFT_FIELD_NUMBER && weft_json_number(value, &number)) {
        field->fallback = read_number(reader, value, where);
        if (number < field->least) field->least = number;
    } else if (field->kind == WEFT_FIELD_INTEGER && weft_json_integer(value, &integer)) {
        field->fallback = weft_pool_format(reader->pool, "%lld", (long long)integer);
        if ((double)integer < field->least) field->least = (double)integer;
    } else if (field->kind == WEFT_FIELD_INTEGER && weft_json_string(value, &text)) {
        int32_t n = 0;
        while (reader->recipe->defaults[n].key != NULL)
            n++;
        field->fallback = "null";
        reader->recipe->defaults[n] =
            (struct weft_recipe_default){field->name, read_expression(reader, value, where)};
    } else {
        add_fault(reader, where, "is no value of the key's type");
    }
}

static void read_limits(struct reader *reader, const struct weft_json_value *object, int32_t index,
                        struct weft_field *field)
{
    const char *const names[] = {"least", "most"};
    double *const limits[] = {&field->least, &field->most};
    char where[64];
    for (int i = 0; i < 2; i++) {
        const struct weft_json_value *value = weft_json_member(object, names[i]);
        snprintf(where, sizeof where, "keys[%d].%s", (int)index, names[i]);
        if (value != NULL &&
            (field->kind == WEFT_FIELD_BOOL || !weft_json_number(value, limits[i]) ||
             *limits[i] < 0 || *limits[i] > 0x1p53))
            add_fault(reader, where, "must be a number from 0 to 2^53, of a key that is no flag");
    }
    if (field->least > field->most)
        add_fault(reader, where, "is %g, below the least value, %g", field->most, field->least);
    if (field->fallback != NULL && strcmp(field->fallback, "null") == 0 && field->least < 1)
        add_fault(reader, where,
                  "a key with an expression as default takes 0 for left out; its least value must "
                  "be at least 1");
}

static void read_key(struct reader *reader, const struct weft_json_value *object, int32_t index)
{
    static const enum weft_field_kind kinds[] = {
        [WEFT_KEY_INTEGER_TYPE] = WEFT_FIELD_INTEGER,
        [WEFT_KEY_NUMBER_TYPE] = WEFT_FIELD_NUMBER,
        [WEFT_KEY_FLAG_TYPE] = WEFT_FIELD_BOOL,
    };
    struct weft_key_decoded decoded = {0};
    char path[PATH_BYTES], where[64];
    const int32_t before = reader->findings->count;
    snprintf(path, sizeof path, "%.200s.keys[%d]", reader->path, (int)index);
    weft_field_decode(&weft_kind_key_table, object, reader->source, path, reader->pool, &decoded,
                      reader->findings);
    snprintf(where, sizeof where, "keys[%d].name", (int)index);
    if (reader->findings->count > before || !check_key_name(reader, decoded.name, where)) return;
    struct weft_field *field = &reader->keys[reader->n_keys];
    *field = (struct weft_field){
        .name = decoded.name,
        .kind = kinds[decoded.type],
        .offset = WEFT_KEY_AT(reader->n_keys),
        .least = decoded.type == WEFT_KEY_INTEGER_TYPE ? 1 : 0,
        .most = decoded.type == WEFT_KEY_INTEGER_TYPE ? WEFT_INT32_MOST : 1e12,
        .text = decoded.text != NULL ? decoded.text : decoded.name,
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (strcmp(members[i].name, field->name) != 0 || field->kind != WEFT_FIELD_INTEGER)
            continue;
        field->offset = members[i].offset;
        field->least = members[i].least;
        field->most = members[i].most;
        reader->outputs_given |= members[i].offset == WEFT_LAYER_AT(outputs);
    }
    if (strcmp(field->name, "bias") == 0 && field->kind == WEFT_FIELD_BOOL)
        field->offset = WEFT_LAYER_AT(bias);
    snprintf(where, sizeof where, "keys[%d].default", (int)index);
    read_default(reader, weft_json_member(object, "default"), where, field);
    read_limits(reader, object, index, field);
    reader->n_keys++;
}

static void read_keys(struct reader *reader, const struct weft_json_value *list)
{
    int32_t n = 0;
    reader->keys = weft_pool_array(reader->pool, WEFT_RECIPE_KEYS, sizeof *reader->keys);
    if (reader->keys == NULL) {
        reader->enough = false;
        return;
    }
    if (weft_json_count(list) > WEFT_RECIPE_KEYS) {
        add_fault(reader, "keys", "has %d elements; a kind has at most %d keys",
                  (int)weft_json_count(list), WEFT_RECIPE_KEYS);
        return;
    }
    for (const struct weft_json_value *at = weft_json_first(list); at != NULL;
         at = weft_json_next(at))
        read_key(reader, at, n++);
}

/* Definitions and demands. */

static void read_definitions(struct reader *reader, const struct weft_json_value *object)
{
    if (object == NULL) return;
    if (weft_json_kind(object) != WEFT_JSON_OBJECT ||
        weft_json_count(object) > WEFT_RECIPE_DEFINITIONS) {
        add_fault(reader, "define", "must be an object of at most %d names and expressions",
                  WEFT_RECIPE_DEFINITIONS);
        return;
    }
    int32_t n = 0;
    for (const struct weft_json_value *at = weft_json_first(object); at != NULL;
         at = weft_json_next(at)) {
        const char *name = weft_json_name(at);
        char where[MOST_NAME + 16];
        snprintf(where, sizeof where, "define.%.60s", name);
        if (!check_key_name(reader, name, where)) continue;
        reader->recipe->definitions[n].expression = read_expression(reader, at, where);
        reader->recipe->definitions[n++].name = copy_text(reader, name, strlen(name));
    }
}

/* Steps. */

/* Whether a step of the op may have the attribute. */
static bool has_attribute(const struct weft_op *op, const char *name)
{
    static const char *const sizes[] = {
#define NAME(name, text) #name,
        WEFT_STEP_SIZES(NAME)};
    static const char *const numbers[] = {WEFT_STEP_NUMBERS(NAME)};
#undef NAME
    const struct {
        const char *name;
        bool has;
    } words[] = {{"op", true},
                 {"in", true},
                 {"out", true},
                 {"if", true},
                 {"name", op->tensors[0] != NULL},
                 {"add", op->adds_value},
                 {"kind", op->kinds != 0},
                 {"then", op->has_weight},
                 {"init", op->has_weight},
                 {"from", op->has_weight},
                 {"save", op->saves != 0}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].name, name) == 0) return words[i].has;
    for (int i = 0; i < WEFT_SIZE_COUNT; i++)
        if (strcmp(sizes[i], name) == 0) return ((op->required | op->optional) & 1u << i) != 0;
    for (int i = 0; i < WEFT_NUMBER_COUNT; i++)
        if (strcmp(numbers[i], name) == 0) return (op->numbers & 1u << i) != 0;
    return name[0] == '$';
}

/* Refuses an attribute that only other ops have. */
static void check_attribute(struct reader *reader, const struct weft_op *op, const char *name,
                            const char *where)
{
    enum { MOST = 64 };
    const char *names[MOST];
    size_t n = 0;
    if (weft_field_find(&weft_kind_step_table, name) == NULL || has_attribute(op, name)) return;
    struct weft_text own;
    weft_text_init(&own);
    for (size_t i = 0; i < weft_kind_step_table.n_fields && n < MOST; i++) {
        const char *other = weft_kind_step_table.fields[i].name;
        if (!has_attribute(op, other)) continue;
        weft_text_addf(&own, "%s%s", n == 0 ? "" : ", ", other);
        names[n++] = other;
    }
    const char *near = weft_field_nearest(name, names, n);
    if (near != NULL)
        add_fault(reader, where, "%s has no such attribute; did you mean \"%s\"?", op->name, near);
    else
        add_fault(reader, where, "%s has no such attribute; it has: %s", op->name,
                  weft_text_chars(&own));
    weft_text_finish(&own);
}

/* Joins an object's names and ends of rows as "attn.q:q attn.k:k". */
static const char *read_from(struct reader *reader, const struct weft_json_value *object,
                             const char *where)
{
    struct weft_text text;
    bool good = weft_json_kind(object) == WEFT_JSON_OBJECT && weft_json_first(object) != NULL;
    weft_text_init(&text);
    for (const struct weft_json_value *at = good ? weft_json_first(object) : NULL; at != NULL;
         at = weft_json_next(at)) {
        const char *name = weft_json_name(at), *end = read_expression(reader, at, where);
        good =
            good && weft_name_is_good(name, MOST_NAME) && end != NULL && strchr(end, ' ') == NULL;
        weft_text_addf(&text, "%s%s:%s", text.length > 0 ? " " : "", name, end != NULL ? end : "");
    }
    const char *joined = copy_text(reader, weft_text_chars(&text), text.length);
    weft_text_finish(&text);
    if (!good)
        add_fault(
            reader, where,
            "must be an object of matrices' names and the ends of their rows, without spaces: "
            "{\"attn.q\": \"q\", \"attn.k\": \"k\"}");
    return joined;
}

static void read_attributes(struct reader *reader, const struct weft_json_value *object,
                            const char *path, struct weft_recipe_step *step)
{
    const struct {
        const char *name, **out;
        bool number;
    } attributes[] = {
#define SIZE(name, text)   {#name, &step->name, false},
#define NUMBER(name, text) {#name, &step->name, true},
        WEFT_STEP_SIZES(SIZE) WEFT_STEP_NUMBERS(NUMBER)
#undef SIZE
#undef NUMBER
            {"if", &step->when, false}};
    char where[128];
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        const struct weft_json_value *value = weft_json_member(object, attributes[i].name);
        snprintf(where, sizeof where, "%s.%s", path, attributes[i].name);
        if (value != NULL)
            *attributes[i].out = attributes[i].number ? read_number(reader, value, where)
                                                      : read_expression(reader, value, where);
    }
    const char *text;
    const struct weft_json_value *add = weft_json_member(object, "add");
    snprintf(where, sizeof where, "%s.add", path);
    if (add != NULL && (!weft_json_string(add, &text) || text[0] == '\0'))
        add_fault(reader, where, "must be the name of a value");
    else if (add != NULL)
        step->add = copy_text(reader, text, strlen(text));
    const struct weft_json_value *from = weft_json_member(object, "from");
    snprintf(where, sizeof where, "%s.from", path);
    if (from != NULL) step->from = read_from(reader, from, where);
}

/* Names tensors "name.weight", or "weight" without a name; and checks the names of values. */
static void read_names(struct reader *reader, const char *name, const char *path,
                       struct weft_recipe_step *step)
{
    char where[128];
    snprintf(where, sizeof where, "%s.name", path);
    if (name != NULL && !weft_name_is_good(name, MOST_NAME))
        add_fault(reader, where,
                  "\"%.60s\" cannot be a name; at most %d letters, digits, \"_\", \"-\" and \".\"",
                  name, MOST_NAME);
    for (int i = 0; i < WEFT_STEP_TENSORS && step->op->tensors[i] != NULL; i++)
        step->tensors[i] = weft_pool_format(reader->pool, "%s%s%s", name != NULL ? name : "",
                                            name != NULL ? "." : "", step->op->tensors[i]);
    snprintf(where, sizeof where, "%s.out", path);
    for (int i = 0; i < WEFT_STEP_OUTPUTS && step->out[i] != NULL; i++)
        if (!is_word(step->out[i]))
            add_fault(reader, where, "\"%.60s\" cannot be a name; letters, digits and \"_\"",
                      step->out[i]);
}

static void read_step(struct reader *reader, const struct weft_json_value *object, int32_t index)
{
    struct weft_step_decoded decoded = {.op = -1, .kind = -1, .then = -1, .init = -1, .save = -1};
    char path[PATH_BYTES], at[64], where[128];
    const int32_t before = reader->findings->count;
    snprintf(at, sizeof at, "steps[%d]", (int)index);
    snprintf(path, sizeof path, "%.200s.%.60s", reader->path, at);
    weft_field_decode(&weft_kind_step_table, object, reader->source, path, reader->pool, &decoded,
                      reader->findings);
    if (reader->findings->count > before) return;
    struct weft_recipe_step *step = &reader->steps[index];
    step->op = weft_kind_op(decoded.op);
    for (const struct weft_json_value *value = weft_json_first(object); value != NULL;
         value = weft_json_next(value)) {
        snprintf(where, sizeof where, "%s.%.60s", at, weft_json_name(value));
        check_attribute(reader, step->op, weft_json_name(value), where);
    }
    step->kind = weft_kind_word("kind", decoded.kind);
    step->then = weft_kind_word("then", decoded.then);
    step->init = weft_kind_word("init", decoded.init);
    step->save = weft_kind_word("save", decoded.save);
    snprintf(where, sizeof where, "%s.in", at);
    read_texts(reader, weft_json_member(object, "in"), where, step->in, WEFT_STEP_INPUTS);
    snprintf(where, sizeof where, "%s.out", at);
    read_texts(reader, weft_json_member(object, "out"), where, step->out, WEFT_STEP_OUTPUTS);
    read_attributes(reader, object, at, step);
    read_names(reader, decoded.name, at, step);
}

static void read_steps(struct reader *reader, const struct weft_json_value *list)
{
    const size_t n = weft_json_count(list);
    if (n < 1 || n > WEFT_RECIPE_STEPS) {
        add_fault(reader, "steps", "has %d elements; a recipe has 1 to %d steps", (int)n,
                  WEFT_RECIPE_STEPS);
        return;
    }
    reader->steps = weft_pool_array(reader->pool, n, sizeof *reader->steps);
    if (reader->steps == NULL) {
        reader->enough = false;
        return;
    }
    int32_t i = 0;
    for (const struct weft_json_value *at = weft_json_first(list); at != NULL;
         at = weft_json_next(at))
        read_step(reader, at, i++);
    reader->recipe->steps = reader->steps;
    reader->recipe->n_steps = (int32_t)n;
}

/* Kinds. */

static bool check_type(struct reader *reader, const char *type, const struct weft_kinds *known)
{
    if (!is_word(type)) {
        add_fault(
            reader, "kind",
            "\"%.60s\" cannot be a type; at most %d letters, digits and \"_\", a letter first",
            type, MOST_NAME);
        return false;
    }
    if (weft_kind_find(known, type) == NULL) return true;
    add_fault(reader, "kind", "there is a type \"%s\" already; choose another name", type);
    return false;
}

/* The loss of the last step; and keys that the layer's place in a model needs. */
static enum weft_kind_loss find_loss(struct reader *reader, int input)
{
    const struct weft_recipe *recipe = reader->recipe;
    bool pools = false;
    for (int32_t i = 0; i < recipe->n_steps; i++) {
        pools = pools || recipe->steps[i].op->pools;
        if (!recipe->steps[i].op->is_loss || i == recipe->n_steps - 1) continue;
        add_fault(reader, "steps", "steps[%d] is a loss; a loss is the last step", (int)i);
        return WEFT_NO_LOSS;
    }
    const bool is_loss = recipe->steps[recipe->n_steps - 1].op->is_loss;
    if (!is_key(reader, "hidden"))
        add_fault(reader, "keys", "have no \"hidden\", the columns of a layer's input");
    else if ((input == 1 || (is_loss && !pools)) && !is_key(reader, "vocab"))
        add_fault(reader, "keys", "have no \"vocab\", the number of tokens");
    else if (is_loss && pools && !is_key(reader, "classes"))
        add_fault(reader, "keys", "have no \"classes\", the number of classes of a sample");
    return !is_loss ? WEFT_NO_LOSS : pools ? WEFT_LOSS_OF_SAMPLES : WEFT_LOSS_OF_ROWS;
}

/* The digits of the hash of everything that computations depend on. */
static const char *identify_kind(const struct weft_kind *kind, struct weft_pool *pool)
{
    char digits[WEFT_HASH_TEXT_BYTES];
    struct weft_json_writer writer;
    struct weft_text text;
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    weft_json_begin_object(&writer);
    weft_recipe_encode(kind, &writer);
    weft_json_end_object(&writer);
    weft_hash_show(weft_hash_bytes(weft_text_chars(&text), text.length), digits);
    const bool whole = weft_text_ok(&text);
    weft_text_finish(&text);
    return whole ? weft_pool_format(pool, "%.8s", digits) : NULL;
}

/* NULL with a finding, or without memory. */
static const struct weft_kind *make_kind(struct reader *reader,
                                         const struct weft_kind_decoded *decoded)
{
    struct weft_recipe *recipe = reader->recipe;
    const int32_t before = reader->findings->count;
    const enum weft_kind_loss loss = find_loss(reader, decoded->input);
    struct weft_kind *kind = weft_pool_array(reader->pool, 1, sizeof *kind);
    reader->enough = reader->enough && kind != NULL;
    if (reader->findings->count > before || !reader->enough) return NULL;
    const bool tokens = decoded->input == 1;
    recipe->recomputes = !tokens && loss == WEFT_NO_LOSS;
    recipe->outputs_follow = !reader->outputs_given && loss == WEFT_NO_LOSS;
    *kind = (struct weft_kind){
        .type = decoded->kind,
        .text = decoded->text != NULL ? decoded->text : "a kind of the config",
        .keys = reader->keys,
        .n_keys = reader->n_keys,
        .trains = true,
        .input = tokens ? WEFT_READS_TOKENS : WEFT_READS_ROWS,
        .loss = loss,
        .outputs_given = reader->outputs_given,
        .complete = weft_recipe_complete,
        .check = weft_recipe_check,
        WEFT_RECIPE(*recipe),
    };
    for (int32_t i = 0; i < recipe->n_steps; i++) {
        const struct weft_op *op = recipe->steps[i].op;
        kind->closes_residual |= recipe->steps[i].init == WEFT_WORD_RESIDUAL;
        kind->reads_tensors |= tokens && (op == &weft_op_product || op == &weft_op_norm);
    }
    kind->identity = identify_kind(kind, reader->pool);
    reader->enough = kind->identity != NULL;
    return kind;
}

static const struct weft_kind *read_kind(struct reader *reader,
                                         const struct weft_json_value *object,
                                         const struct weft_kinds *known)
{
    struct weft_kind_decoded decoded = {0};
    const int32_t before = reader->findings->count;
    weft_field_decode(&weft_kind_table, object, reader->source, reader->path, reader->pool,
                      &decoded, reader->findings);
    if (reader->findings->count > before || !check_type(reader, decoded.kind, known)) return NULL;
    reader->recipe = weft_pool_array(reader->pool, 1, sizeof *reader->recipe);
    reader->enough = reader->recipe != NULL;
    if (!reader->enough) return NULL;
    read_keys(reader, weft_json_member(object, "keys"));
    read_definitions(reader, weft_json_member(object, "define"));
    const struct weft_json_value *demands = weft_json_member(object, "demands");
    if (demands != NULL)
        read_texts(reader, demands, "demands", reader->recipe->demands, WEFT_RECIPE_DEMANDS);
    read_steps(reader, weft_json_member(object, "steps"));
    if (reader->findings->count > before || !reader->enough) return NULL;
    return make_kind(reader, &decoded);
}

bool weft_kinds_decode(const struct weft_json_value *list, const char *source, const char *path,
                       const struct weft_kinds *others, struct weft_pool *pool,
                       const struct weft_kinds **out, struct weft_findings *findings)
{
    const int32_t n_others = others == NULL ? 0 : others->n, before = findings->count;
    *out = others;
    if (list == NULL || weft_json_kind(list) != WEFT_JSON_ARRAY) return true;
    const size_t n = weft_json_count(list);
    if (n == 0) weft_findings_add(findings, source, path, "is empty; leave it out");
    struct weft_kinds *all = weft_pool_array(pool, 1, sizeof *all);
    const struct weft_kind **kinds = weft_pool_array(pool, (size_t)n_others + n, sizeof *kinds);
    if (all == NULL || kinds == NULL) return false;
    for (int32_t i = 0; i < n_others; i++)
        kinds[i] = others->kinds[i];
    *all = (struct weft_kinds){.kinds = kinds, .n = n_others};
    int32_t index = 0;
    for (const struct weft_json_value *at = weft_json_first(list); at != NULL;
         at = weft_json_next(at)) {
        char place[PATH_BYTES];
        snprintf(place, sizeof place, "%.250s[%d]", path, (int)index++);
        struct reader reader = {
            .source = source, .path = place, .pool = pool, .findings = findings, .enough = true};
        const struct weft_kind *kind = read_kind(&reader, at, all);
        if (!reader.enough) return false;
        if (kind != NULL) kinds[all->n++] = kind;
    }
    if (findings->count == before) *out = all;
    return true;
}
