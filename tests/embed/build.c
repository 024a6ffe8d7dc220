/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The builder from C: a loop that adds its value to resident memory of two
 * devices, a sum over both, and what handles and structs of other sizes say.
 * Usage: embed_build BUNDLE, which is written. */
#include <mgt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(int holds, const char *what, int line) {
  if (holds)
    return;
  fprintf(stderr, "line %d: %s; last error: %s\n", line, what, mgt_error());
  exit(1);
}
#define REQUIRE(condition) require(!!(condition), #condition, __LINE__)
#define OK(call) REQUIRE((call) == MGT_OK)

enum { SIZE = 8, TRIPS = 5 };

static mgt_buffer buffer(mgt_builder *builder, const char *name, mgt_kind kind,
                         int32_t device) {
  const int64_t shape[] = {SIZE};
  mgt_buffer number;
  OK(mgt_builder_buffer(builder,
                        &(mgt_buffer_spec){.size = sizeof(mgt_buffer_spec),
                                           .name = name,
                                           .kind = (int)kind,
                                           .device = device,
                                           .type = "i64",
                                           .rank = 1,
                                           .shape = shape},
                        &number));
  return number;
}

static void build(mgt_builder *builder) {
  const uint32_t steps[] = {2, 1, 4};
  const mgt_tunable step = {"STEP", 3, steps};
  const mgt_buffer total[] = {buffer(builder, "t0", MGT_RESIDENT, 0),
                              buffer(builder, "t1", MGT_RESIDENT, 1)};
  const mgt_buffer sum[] = {buffer(builder, "s0", MGT_TEMPORARY, 0),
                            buffer(builder, "s1", MGT_TEMPORARY, 1)};
  const mgt_view sums[] = {{.buffer = sum[0]}, {.buffer = sum[1]}};
  const mgt_view result = {.buffer =
                               buffer(builder, "r", MGT_RESULT, MGT_HOST)};
  mgt_kernel add;
  mgt_buffer trip;
  OK(mgt_builder_kernel(
      builder,
      &(mgt_kernel_spec){
          .size = sizeof(mgt_kernel_spec),
          .entry = "add",
          .host = "void add(mgpu_block b, int64_t *y, const int64_t *trip, "
                  "int64_t by) { for (uint32_t t = 0; t < b.size.x; t += STEP) "
                  "for (int k = 0; k < STEP; ++k) y[t + k] += by * *trip; }",
          .block = {SIZE},
          .num_tunables = 1,
          .tunables = &step},
      &add));
  OK(mgt_builder_begin_loop(builder, TRIPS, 1, 1, &trip));
  for (int32_t device = 0; device < 2; ++device) {
    const mgt_arg args[] = {
        {.access = MGT_READ | MGT_WRITE, .view = {.buffer = total[device]}},
        {.access = MGT_READ, .view = {.buffer = trip}},
        {.type = "i64", .bits = (uint64_t)(device == 0 ? 1 : -3)}};
    OK(mgt_builder_launch(builder,
                          &(mgt_launch_spec){.size = sizeof(mgt_launch_spec),
                                             .kernel = add,
                                             .device = device,
                                             .num_args = 3,
                                             .args = args}));
  }
  OK(mgt_builder_end_loop(builder));
  for (int device = 0; device < 2; ++device)
    OK(mgt_builder_copy(builder, &sums[device],
                        &(mgt_view){.buffer = total[device]}));
  OK(mgt_builder_collective(
      builder, &(mgt_collective_spec){.size = sizeof(mgt_collective_spec),
                                      .kind = MGT_ALL_REDUCE,
                                      .reduction = MGT_SUM,
                                      .num_members = 2,
                                      .send = sums}));
  OK(mgt_builder_copy(builder, &result, &sums[1]));
}

/* Each replay adds -2 * (1 + 2 + ... + TRIPS). */
static void replay(mgt_program *program) {
  const mgt_node_time *times;
  const char *text;
  size_t count;
  int64_t got[SIZE];
  OK(mgt_load(program));
  for (int64_t replays = 1; replays <= 3; ++replays) {
    OK(mgt_replay(program));
    OK(mgt_fetch(program));
    OK(mgt_read(program, "r", got, sizeof got));
    for (int k = 0; k < SIZE; ++k)
      REQUIRE(got[k] == replays * -TRIPS * (TRIPS + 1));
  }
  OK(mgt_explain(program, &text));
  REQUIRE(strstr(text, "all_reduce") != NULL);
  mgt_figures figures = {.size = sizeof figures};
  OK(mgt_get_figures(program, &figures));
  REQUIRE(figures.replay_us > 0 && figures.replay_us >= figures.bound_us);
  figures.size = 8;
  REQUIRE(mgt_get_figures(program, &figures) == MGT_USAGE);
  OK(mgt_times(program, &times, &count));
  REQUIRE(count > 4 && times[0].end_us >= times[0].start_us);
  REQUIRE(mgt_read(program, "nothing", got, sizeof got) == MGT_USAGE);
  REQUIRE(strstr(mgt_program_error(program), "no argument 'nothing'") != NULL);
  mgt_close(program);
}

int main(int argc, char **argv) {
  mgt_builder *builder, *other;
  mgt_program *program;
  const char *text;
  mgt_buffer number;
  REQUIRE(argc == 2);
  OK(mgt_builder_new("total", 2, &builder));
  OK(mgt_builder_new(NULL, 1, &other));
  build(builder);
  /* Of an older header, and of a newer one. */
  mgt_buffer_spec spec = {.size = sizeof spec.size, .name = "x"};
  REQUIRE(mgt_builder_buffer(builder, &spec, &number) == MGT_USAGE);
  REQUIRE(strstr(mgt_builder_error(builder), "mgt_buffer_spec.size is 8"));
  REQUIRE(strcmp(mgt_builder_error(other), "") == 0);
  struct {
    mgt_plan_options known;
    const char *unknown;
  } newer = {{.size = sizeof newer}, NULL};
  OK(mgt_builder_plan_text(builder, &newer.known, &text));
  newer.unknown = "";
  REQUIRE(mgt_builder_plan_text(builder, &newer.known, &text) ==
          MGT_UNSUPPORTED);
  OK(mgt_builder_check(builder));
  OK(mgt_builder_probe(builder));
  OK(mgt_builder_open(builder, "host:2", NULL, &program));
  OK(mgt_builder_save(builder, argv[1], NULL));
  mgt_builder_free(builder);
  mgt_builder_free(other);
  replay(program);
  OK(mgt_open(argv[1], "host", &program));
  replay(program);
  printf("built from C: %s\n", argv[1]);
  return 0;
}
