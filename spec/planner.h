/* Planners' names: the one list for the scheduler's table, messages, the key reference and help.
 * scheduler/planners/ has the code. */
#ifndef WEFT_SPEC_PLANNER_H
#define WEFT_SPEC_PLANNER_H

/* X(identifier, name, literal, text). `literal`: blocks stay in the planner's slots. Otherwise they
 * may move apart in the same order, as far as memory allows. */
#define WEFT_PLANNER_OTHERS_MAP(X)                                                                 \
    X(greedy, "greedy", false, "from the leanest policies upwards, by gain; no solver")            \
    X(all_fsdp, "all-fsdp", false, "every unit fsdp, gathered one use ahead, reduced at once")     \
    X(all_sdp, "all-sdp", false, "every unit sdp, gathered once updated, reduced at once")         \
    X(all_zero1, "all-zero1", false, "every unit zero1, gathered once updated, reduced at once")   \
    X(all_dp, "all-dp", false, "every unit dp, reduced at once")                                   \
    X(random, "random", false, "random policies and slots that fit, from a seed")                  \
    X(ddp, "ddp", true, "PyTorch DDP: every unit dp, AllReduce in buckets")                        \
    X(zero1, "zero1", true, "ZeRO 1: reduced in buckets, gathered all behind the update")          \
    X(zero2, "zero2", true, "ZeRO 2: reduced at once, gathered all behind the update")             \
    X(fairscale, "fairscale", true, "FairScale FSDP: gathered on demand, reduced in buckets")      \
    X(fsdp2, "fsdp2", true, "PyTorch FSDP2: one unit ahead, one reduction at a time")              \
    X(fsdp2_mix, "fsdp2-mix", true, "fsdp2, the last units kept after forward while they fit")     \
    X(deepspeed, "deepspeed", true, "DeepSpeed ZeRO 3: prefetched by elements, small units whole") \
    X(deepcompile, "deepcompile", true, "DeepCompile: prefetched by profiled memory, then kept")   \
    X(bytescheduler, "bytescheduler", true, "ByteScheduler: AllReduces by priority and credit")    \
    X(mg_wfbp, "mg-wfbp", true, "MG-WFBP: AllReduces merged by a cost line")                       \
    X(dear, "dear", true, "DeAR: reduced in backward, gathered a group ahead in forward")          \
    X(osdp, "osdp", true, "OSDP: dp or fsdp by a knapsack without overlap, then fsdp2")            \
    X(fsdp_milp, "fsdp-milp", true, "PyTorch fsdp_milp: units by exposed time, then fsdp2")        \
    X(zero_infinity, "zero-infinity", true, "ZeRO-Infinity: deepspeed, with all state on a disk")  \
    X(offload_stream, "offload-stream", true, "fsdp2, with all state in the host's memory")        \
    X(offload_greedy, "offload-greedy", true, "fsdp2, state away by bytes freed a second")         \
    X(deepcompile_offload, "deepcompile-offload", true,                                            \
      "DeepCompile: on demand, state on the host while forward has no room")                       \
    X(zero_offload, "zero-offload", true, "ZeRO-Offload: all state on the host, updated there")    \
    X(twin_flow, "twin-flow", true,                                                                \
      "Twin-Flow: of zero-offload the best share of 16, from an end")                              \
    X(fsdp2_cpu_offload, "fsdp2-cpu-offload", true, "fsdp2, with all state updated on the host")   \
    X(two_stage, "two-stage", false, "policies by a knapsack without overlap, then blocks placed")

#define WEFT_PLANNER_MAP(X)                                                                        \
    X(ilp, "ilp", false, "the fastest plan that fits, with a proven bound")                        \
    WEFT_PLANNER_OTHERS_MAP(X)

/* "ilp, greedy, all-fsdp, ...": */
#define WEFT_PLANNER_NAMES "ilp" WEFT_PLANNER_OTHERS_MAP(WEFT_PLANNER_COMMA)

#define WEFT_PLANNER_COMMA(identifier, name, literal, text) ", " name

#endif
