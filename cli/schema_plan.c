#include "cli/schema_keys.h"

#define INDEX      "\"type\": \"integer\", \"minimum\": -1"
#define RATE       COUNT ", \"maximum\": 1024"
#define OR_NULL(T) "\"oneOf\": [{" T "}, {\"type\": \"null\"}]"

/* The problem */

static const struct weft_schema_key blocks_keys[] = {
    {"least_bytes", BYTES, "smaller neighbours are fused, larger units split", NULL, false, false},
    {"count", COUNT, "of blocks of every unit; 0: least_bytes says", NULL, false, false},
    {"efficiency_ppm", COUNT, "of the best bandwidth that least_bytes reaches", NULL, false, false},
    {"fused", COUNT, "1: small neighbours share a unit", NULL, false, false},
};
static const struct weft_schema_object blocks =
    OBJECT("How units were cut, for people.", blocks_keys);

static const struct weft_schema_key tier_keys[] = {
    {"name", TEXT, "by which holds and items name it", NULL, false, false},
    {"kind", TEXT, "device, host or disk", NULL, false, false},
    {"limit_bytes", OR_NULL(BYTES), "of every row; null: none", NULL, false, false},
};
static const struct weft_schema_object tier = OBJECT("A memory.", tier_keys);

static const struct weft_schema_key lane_keys[] = {
    {"name", TEXT, "for people", NULL, false, false},
    {"kind", TEXT, "compute, network ...", NULL, false, false},
    {"compute_rate", RATE, "of compute while the lane is busy", NULL, false, false},
    {"rate", RATE, "of the lane while compute is busy", NULL, false, false},
};
static const struct weft_schema_object lane = OBJECT("What does one thing at a time.", lane_keys);

static const struct weft_schema_key period_keys[] = {
    {"micro_steps", COUNT, "of a step", NULL, false, false},
    {"reduce", TEXT, "gradients: every micro-step or step", NULL, false, false},
    {"rotated", TRUTH, "it begins behind the last forward", NULL, false, false},
    {"update_ahead", COUNT, "layers from an update to its first use", NULL, false, false},
    {"agreed_updates", TRUTH, "ranks agree in every update", NULL, false, true},
    {"away", TRUTH, "state may be elsewhere than on the device", NULL, false, true},
};
static const struct weft_schema_object period = OBJECT("Which slots there are.", period_keys);

static const struct weft_schema_key slot_keys[] = {
    {"name", TEXT, "for people", NULL, false, false},
    {"kind", TEXT, "update, fill, forward, backward, drain, norm, open", NULL, false, false},
    {"index", INDEX, "of its decision or layer", NULL, false, false},
    {"micro", COUNT, "micro-step", NULL, false, false},
    {"time_ns", NS, "of compute, whatever the strategies", NULL, false, false},
};
static const struct weft_schema_object slot = OBJECT("A part of the period.", slot_keys);

static const struct weft_schema_key time_keys[] = {
    {"slot", COUNT, "that takes longer", NULL, false, false},
    {"time_ns", NS, "by so much", NULL, false, false},
};
static const struct weft_schema_object slot_time =
    OBJECT("What a strategy adds to a slot.", time_keys);

static const struct weft_schema_key hold_keys[] = {
    {"category", TEXT, "of memory", NULL, false, false},
    {"first", COUNT, "slot", NULL, false, false},
    {"last", COUNT, "slot; before `first`: round the period's end", NULL, false, false},
    {"bytes", BYTES, "in each of them", NULL, false, false},
    {"tier", TEXT, "in which; left out: the first", NULL, false, true},
};
static const struct weft_schema_object hold = OBJECT("Bytes that live in slots.", hold_keys);

static const struct weft_schema_key strategy_keys[] = {
    {"name", TEXT, "one of the kinds", NULL, false, false},
    {"times", NULL, "by slot", &slot_time, true, false},
    {"holds", NULL, "wherever its blocks move", &hold, true, false},
};
static const struct weft_schema_object strategy =
    OBJECT("What a decision can come to.", strategy_keys);

static const struct weft_schema_key decision_keys[] = {
    {"name", TEXT, "of its unit, or of what a layer saved", NULL, false, false},
    {"update_slot", INDEX, "-1: it has none", NULL, false, false},
    {"elements", COUNT, "of its parameters, padded", NULL, false, false},
    {"layer", COUNT, "that saved it; left out: a unit's", NULL, false, true},
    {"strategies", NULL, "of which it has one", &strategy, true, false},
};
static const struct weft_schema_object decision = OBJECT("What is decided.", decision_keys);

static const struct weft_schema_key item_keys[] = {
    {"decision", COUNT, "whose it is", NULL, false, false},
    {"kind", TEXT,
     "a collective; read, write, state_up, state_down; gradient_down, host_update, parameters_up; "
     "saved_down, saved_up",
     NULL, false, false},
    {"gather", COUNT, "which of its kind in a step", NULL, false, false},
    {"strategies", TEXTS, "under which it exists", NULL, false, false},
    {"acquires", TRUTH, "else it releases", NULL, false, false},
    {"may_block", TRUTH, "the slot that uses it may wait for it", NULL, false, false},
    {"lane", COUNT, "on which it moves", NULL, false, false},
    {"after", INDEX, "item that it comes after, block by block; -1: none", NULL, false, false},
    {"blocks", COUNT, "all alike", NULL, false, false},
    {"first", COUNT, "slot of its window", NULL, false, false},
    {"last", COUNT, "slot of its window", NULL, false, false},
    {"block_bytes", BYTES, "that a block moves", NULL, false, false},
    {"block_ns", NS, "that it takes on the lane", NULL, false, false},
    {"held_bytes", BYTES, "of a block while it is held", NULL, false, false},
    {"category", TEXT, "of memory", NULL, false, false},
    {"tier", TEXT, "in which it is held; left out: the first", NULL, false, true},
};
static const struct weft_schema_object item = OBJECT("Blocks that move alike.", item_keys);

static const struct weft_schema_key problem_keys[] = {
    {"config_hash", HASH, "of the config", NULL, false, false},
    {"profile_hash", HASH, "of the profile", NULL, false, false},
    {"profile_source", TEXT, "measured or analytic", NULL, false, false},
    {"ranks", COUNT, "that train together", NULL, false, false},
    {"blocks", NULL, "where it is known", &blocks, false, true},
    {"tiers", NULL, "the device's memory first", &tier, true, false},
    {"lanes", NULL, "compute first", &lane, true, false},
    {"agree_ns", NS, "of one agreement of all ranks", NULL, false, false},
    {"period", NULL, "of the slots", &period, false, false},
    {"slots", NULL, "of one period", &slot, true, false},
    {"kinds", TEXTS, "names of strategies", NULL, false, false},
    {"decisions", NULL, "in order of first use", &decision, true, false},
    {"common", NULL, "held whatever is decided", &hold, true, false},
    {"items", NULL, "in order of decision", &item, true, false},
};
static const struct weft_schema_object problem = OBJECT("All that a planner knows.", problem_keys);

/* The certificate */

static const struct weft_schema_key group_keys[] = {
    {"strategies", TEXTS, "of which they have one, or not", NULL, false, false},
    {"decisions", COUNTS, "increasing", NULL, false, false},
};
static const struct weft_schema_object group = OBJECT("Decisions that are counted.", group_keys);

static const struct weft_schema_key whole_keys[] = {
    {"slot", COUNT, "of the row", NULL, false, false},
    {"tier", COUNT, "of the row; left out: the first", NULL, false, true},
    {"step_bytes", BYTES, "in which it counts", NULL, false, false},
    {"nu", COUNT, "price of a byte, 2^-40 ns", NULL, false, false},
    {"reference", COUNTS, "strategy of each decision", NULL, false, false},
    {"relies", COUNTS, "1 or 0 by group", NULL, false, false},
};
static const struct weft_schema_object whole = OBJECT("A whole row.", whole_keys);

static const struct weft_schema_key prices_keys[] = {
    {"lambda", COUNTS, "by lane but compute and slot, 2^-40", NULL, false, false},
    {"mu", COUNTS, "of a byte by tier and slot, 2^-40 ns", NULL, false, false},
    {"pi", "\"type\": \"array\", \"items\": {\"type\": \"integer\"}", "by group, ns", NULL, false,
     false},
    {"whole", NULL, "prices of whole rows", &whole, true, false},
};
static const struct weft_schema_object prices = OBJECT("Prices of a leaf.", prices_keys);

static const struct weft_schema_key node_keys[] = {
    {"prices", COUNT, "a leaf: its prices", NULL, false, true},
    {"decision", COUNT, "it has one of `strategies`", NULL, false, true},
    {"strategies", TEXTS, "of that decision", NULL, false, true},
    {"item", COUNT, "of which `blocks` have come to `moment` by `slot`", NULL, false, true},
    {"blocks", COUNT, "at least so many", NULL, false, true},
    {"slot", COUNT, "by whose end", NULL, false, true},
    {"moment", "\"type\": \"string\", \"pattern\": \"^(begun|ended)$\"", "left out: placed", NULL,
     false, true},
    {"group", COUNT, "of which `decisions` have one of its strategies", NULL, false, true},
    {"decisions", COUNT, "at least so many", NULL, false, true},
};
static const struct weft_schema_object node =
    OBJECT("A leaf, or what divides plans in those behind it.", node_keys);

static const struct weft_schema_key certificate_keys[] = {
    {"problem", HASH, "that it is of", NULL, false, false},
    {"groups", NULL, "that nodes and whole rows name", &group, true, false},
    {"prices", NULL, "that leaves name", &prices, true, false},
    {"tree", NULL, "in preorder", &node, true, false},
};
static const struct weft_schema_object certificate = {
    "Proof of a bound; null where that is 0.", certificate_keys,
    sizeof certificate_keys / sizeof *certificate_keys, true};

/* The plan */

static const struct weft_schema_key prediction_keys[] = {
    {"step_ns", NS, "the sum of compute, slowdown and exposed", NULL, false, false},
    {"exposed_ns", NS, "that compute waits", NULL, false, false},
    {"compute_ns", NS, "of all slots", NULL, false, false},
    {"slowdown_ns", NS, "by which they are longer beside communication", NULL, false, false},
    {"channel_ns", NS, "that lanes are busy", NULL, false, false},
    {"peak_bytes", BYTES, "of the device's fullest row", NULL, false, false},
    {"peak_slot", COUNT, "the first that is as full", NULL, false, false},
    {"arena_bytes", BYTES, "of all pages", NULL, false, false},
    {"total_bytes", BYTES, "with the base: what the limit binds", NULL, false, false},
};
static const struct weft_schema_object prediction =
    OBJECT("What the simulator finds.", prediction_keys);

static const struct weft_schema_key bound_keys[] = {
    {"bound_ns", NS, "no plan is faster; 0: nothing is proven", NULL, false, false},
    {"by", TEXT, "for people", NULL, false, false},
};
static const struct weft_schema_object bound = OBJECT("The proven bound.", bound_keys);

static const struct weft_schema_key solver_keys[] = {
    {"gap", OR_NULL(NUMBER), "the solver's own; null: none", NULL, false, false},
    {"stop", TEXT, "why planning ended", NULL, false, false},
};
static const struct weft_schema_object solver = OBJECT("What the planner says.", solver_keys);

static const struct weft_schema_key placement_keys[] = {
    {"item", COUNT, "of the problem", NULL, false, false},
    {"block", COUNT, "of the item", NULL, false, false},
    {"launch", COUNT, "slot at whose start", NULL, false, false},
    {"deadline", COUNT, "slot before whose start it is complete; its launch: it blocks", NULL,
     false, false},
};
static const struct weft_schema_object placement = OBJECT("Where a block is.", placement_keys);

static const struct weft_schema_key pages_keys[] = {
    {"page_bytes", BYTES, "a power of two", NULL, false, false},
    {"tables", COUNT, "1, or 2: for even and odd periods", NULL, false, false},
    {"stretches", "\"type\": \"array\", \"items\": {" COUNTS "}",
     "by range and table: first page, count, first page, count ...", NULL, false, false},
};
static const struct weft_schema_object pages = OBJECT("The program's memory.", pages_keys);

static const struct weft_schema_key other_keys[] = {
    {"bound_ns", NS, "no plan of it is faster", NULL, false, false},
    {"certificate", NULL, "of that", &certificate, false, false},
    {"problem", NULL, "of that period", &problem, false, false},
};
static const struct weft_schema_object other =
    OBJECT("A period that the config left open too.", other_keys);

static const struct weft_schema_key plan_keys[] = {
    {"format", ONE("weft-plan"), "of this file", NULL, false, false},
    {"version", COUNT, "of the format", NULL, false, false},
    {"weft", TEXT, "version of the program that wrote it", NULL, false, false},
    {"planner", TEXT, "that made it", NULL, false, false},
    {"decision_hash", HASH, "of strategies, placements and pages", NULL, false, false},
    {"prediction", NULL, "of a step", &prediction, false, false},
    {"bound", NULL, "of this period", &bound, false, false},
    {"certificate", NULL, "of that bound", &certificate, false, false},
    {"solver", NULL, "as it ended", &solver, false, false},
    {"strategies", TEXTS, "one for each decision", NULL, false, false},
    {"placements", NULL, "in the order of every lane", &placement, true, false},
    {"pages", NULL, "of one rank, as of all", &pages, false, false},
    {"problem", NULL, "that it solves", &problem, false, false},
    {"other_periods", NULL, "with their bounds", &other, true, false},
};
const struct weft_schema_object weft_schema_plan =
    OBJECT("What is decided, with its proof: docs/plan-file.md.", plan_keys);

/* The plan of a model of one unit. */
const char weft_schema_plan_examples[] =
    "[{\"format\": \"weft-plan\", \"version\": 10, \"weft\": \"0.1.0\", \"planner\": \"ilp\", "
    "\"decision_hash\": \"e2efbc6022ca6294c4720ab12cb50795\", \"prediction\": {\"step_ns\": "
    "15819, \"exposed_ns\": 13216, \"compute_ns\": 2603, \"slowdown_ns\": 0, \"channel_ns\": "
    "13216, \"peak_bytes\": 20736, \"peak_slot\": 4, \"arena_bytes\": 32768, \"total_bytes\": "
    "32768}, \"bound\": {\"bound_ns\": 15819, \"by\": \"relaxation, weak duality\"}, "
    "\"certificate\": {\"problem\": \"74284f4a715378a4d05d203b91a05993\", \"groups\": [], "
    "\"prices\": [{\"lambda\": [0, 1099511627776, 0, 0, 0, 0, 1099511627776, 0], \"mu\": [0, "
    "0, 0, 0, 0, 0, 0, 0], \"pi\": [], \"whole\": []}], \"tree\": [{\"prices\": 0}]}, "
    "\"solver\": {\"gap\": null, \"stop\": \"gap closed\"}, \"strategies\": [\"sdp\"], "
    "\"placements\": [{\"item\": 0, \"block\": 0, \"launch\": 1, \"deadline\": 2}, {\"item\": 1, "
    "\"block\": 0, \"launch\": 6, \"deadline\": 7}], \"pages\": {\"page_bytes\": 4096, "
    "\"tables\": 1, \"stretches\": [[0, 5], [5, 1], [7, 1], [5, 1], [6, 1]]}, \"problem\": "
    "{\"config_hash\": \"189662a994415e9a27d0d1cc0142977e\", \"profile_hash\": "
    "\"0dc0c03fb13de99e47d0b186212d486a\", \"profile_source\": \"analytic\", \"ranks\": 2, "
    "\"blocks\": {\"least_bytes\": 18017, \"count\": 0, \"efficiency_ppm\": 900000, \"fused\": "
    "1}, \"tiers\": [{\"name\": \"device\", \"kind\": \"device\", \"limit_bytes\": 65536}], "
    "\"lanes\": [{\"name\": \"compute\", \"kind\": \"compute\", \"compute_rate\": 1024, "
    "\"rate\": 1024}, {\"name\": \"network\", \"kind\": \"network\", \"compute_rate\": 1024, "
    "\"rate\": 1024}], \"agree_ns\": 10192, \"period\": {\"micro_steps\": 1, \"reduce\": "
    "\"step\", \"rotated\": false, \"update_ahead\": 0}, \"slots\": [{\"name\": \"U:fc+head\", "
    "\"kind\": \"update\", \"index\": 0, \"micro\": 0, \"time_ns\": 0}, {\"name\": \"fill\", "
    "\"kind\": \"fill\", \"index\": -1, \"micro\": 0, \"time_ns\": 0}, {\"name\": \"F:fc\", "
    "\"kind\": \"forward\", \"index\": 0, \"micro\": 0, \"time_ns\": 32}, {\"name\": \"F:head\", "
    "\"kind\": \"forward\", \"index\": 1, \"micro\": 0, \"time_ns\": 23}, {\"name\": \"B:head\", "
    "\"kind\": \"backward\", \"index\": 1, \"micro\": 0, \"time_ns\": 29}, {\"name\": \"B:fc\", "
    "\"kind\": \"backward\", \"index\": 0, \"micro\": 0, \"time_ns\": 61}, {\"name\": \"drain\", "
    "\"kind\": \"drain\", \"index\": -1, \"micro\": 0, \"time_ns\": 0}, {\"name\": \"norm\", "
    "\"kind\": \"norm\", \"index\": -1, \"micro\": 0, \"time_ns\": 410}], \"kinds\": [\"sdp\"], "
    "\"decisions\": [{\"name\": \"fc+head\", \"update_slot\": 0, \"elements\": 256, "
    "\"strategies\": [{\"name\": \"sdp\", \"times\": [{\"slot\": 0, \"time_ns\": 2048}], "
    "\"holds\": [{\"category\": \"sharded_parameters\", \"first\": 0, \"last\": 7, \"bytes\": "
    "512}, {\"category\": \"gathered_parameters\", \"first\": 2, \"last\": 5, \"bytes\": 1024}, "
    "{\"category\": \"optimizer_state\", \"first\": 0, \"last\": 7, \"bytes\": 512}, "
    "{\"category\": \"full_gradients\", \"first\": 4, \"last\": 5, \"bytes\": 1024}, "
    "{\"category\": \"sharded_gradients\", \"first\": 6, \"last\": 0, \"bytes\": 512}]}]}], "
    "\"common\": [{\"category\": \"communication\", \"first\": 0, \"last\": 7, \"bytes\": 8192}, "
    "{\"category\": \"communication\", \"first\": 0, \"last\": 7, \"bytes\": 8192}, "
    "{\"category\": \"activations\", \"first\": 2, \"last\": 5, \"bytes\": 256}, {\"category\": "
    "\"activations\", \"first\": 2, \"last\": 4, \"bytes\": 256}, {\"category\": "
    "\"activations\", \"first\": 2, \"last\": 3, \"bytes\": 256}, {\"category\": "
    "\"activations\", \"first\": 4, \"last\": 5, \"bytes\": 256}, {\"category\": "
    "\"activations\", \"first\": 3, \"last\": 4, \"bytes\": 256}, {\"category\": \"temporary\", "
    "\"first\": 4, \"last\": 4, \"bytes\": 256}], \"items\": [{\"decision\": 0, \"kind\": "
    "\"all_gather\", \"gather\": 0, \"strategies\": [\"sdp\"], \"acquires\": true, "
    "\"may_block\": true, \"lane\": 1, \"after\": -1, \"blocks\": 1, \"first\": 1, \"last\": 1, "
    "\"block_bytes\": 1024, \"block_ns\": 1512, \"held_bytes\": 1024, \"category\": "
    "\"gathered_parameters\"}, {\"decision\": 0, \"kind\": \"reduce_scatter\", \"gather\": 0, "
    "\"strategies\": [\"sdp\"], \"acquires\": false, \"may_block\": false, \"lane\": 1, "
    "\"after\": -1, \"blocks\": 1, \"first\": 6, \"last\": 6, \"block_bytes\": 1024, "
    "\"block_ns\": 1512, \"held_bytes\": 1024, \"category\": \"full_gradients\"}]}, "
    "\"other_periods\": []}]";
