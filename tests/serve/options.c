/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What an operator asks of a program: deadline, memory, roles, log, facts,
 * counters, metrics and ranges of NVTX, by right and wrong calls.
 * Usage: serve_options FOLDER, where libnvToolsExt.so.1 is the double's. */
#define _GNU_SOURCE
#include "tests/bundles/lost.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static void require(int holds, const char *what, int line) {
  if (holds)
    return;
  fprintf(stderr, "line %d: %s; last error: %s\n", line, what, mgt_error());
  exit(1);
}
#define REQUIRE(condition) require(!!(condition), #condition, __LINE__)
#define OK(call) require((call) == MGT_OK, #call, __LINE__)
static void fails(mgt_status status, mgt_status expected, const char *words,
                  int line) {
  require(status == expected, "another status", line);
  require(strstr(mgt_error(), words) != NULL, words, line);
}
#define FAILS(call, status, words) fails((call), (status), (words), __LINE__)

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* Counts to `n`, by which it may last as long as it is told, on two devices;
 * what follows on each adds one. The result is the sum. */
static mgt_builder *build(void) {
  static const int64_t shape[] = {4};
  mgt_builder *builder;
  mgt_buffer x, y, n, part[2];
  mgt_kernel spin, bump;
  mgt_buffer_spec buffer = {.size = sizeof buffer, .rank = 1, .shape = shape};
  mgt_kernel_spec kernel = {.size = sizeof kernel};
  mgt_view all[2];
  int d;
  OK(mgt_builder_new("served", 2, &builder));
  buffer.name = "x", buffer.kind = MGT_ARGUMENT, buffer.device = MGT_HOST;
  OK(mgt_builder_buffer(builder, &buffer, &x));
  buffer.name = "w", buffer.role = "resident";
  OK(mgt_builder_buffer(builder, &buffer, &n));
  buffer.name = "y", buffer.role = "output";
  OK(mgt_builder_buffer(builder, &buffer, &y));
  buffer.role = NULL, buffer.kind = MGT_TEMPORARY;
  kernel.entry = "spin";
  kernel.host = "void spin(mgpu_block, float *y, const float *n) {"
                " volatile float i = 0;"
                " for (float k = 0; k < n[0]; ++k)"
                "  for (int j = 0; j < 1000; ++j) i = i + 1;"
                " y[0] += n[1]; }";
  OK(mgt_builder_kernel(builder, &kernel, &spin));
  kernel.entry = "bump";
  kernel.host = "void bump(mgpu_block, float *y) { y[0] += 1; }";
  OK(mgt_builder_kernel(builder, &kernel, &bump));
  for (d = 0; d < 2; ++d) {
    const mgt_view from = {.buffer = x}, weights = {.buffer = n};
    mgt_view w;
    mgt_arg args[2] = {{.access = 3}, {.access = 1}};
    mgt_launch_spec launch = {
        .size = sizeof launch, .device = d, .grid = {1, 1, 1}, .args = args};
    buffer.device = d, buffer.name = d ? "a1" : "a0";
    OK(mgt_builder_buffer(builder, &buffer, &part[d]));
    all[d] = (mgt_view){.buffer = part[d]};
    OK(mgt_builder_copy(builder, &all[d], &from));
    buffer.name = d ? "w1" : "w0";
    OK(mgt_builder_buffer(builder, &buffer, &w.buffer));
    w = (mgt_view){.buffer = w.buffer};
    OK(mgt_builder_copy(builder, &w, &weights));
    args[0].view = all[d], args[1].view = w;
    launch.kernel = spin, launch.num_args = 2;
    launch.name = d ? "spin_1" : "spin_0";
    OK(mgt_builder_launch(builder, &launch));
    launch.kernel = bump, launch.num_args = 1, launch.name = "bump";
    OK(mgt_builder_launch(builder, &launch));
  }
  {
    const mgt_view to = {.buffer = y};
    mgt_collective_spec sum = {
        .size = sizeof sum, .num_members = 2, .send = all, .receive = all};
    OK(mgt_builder_collective(builder, &sum));
    OK(mgt_builder_copy(builder, &to, &all[0]));
  }
  return builder;
}

static const float few[4] = {1, 1}, long_[4] = {2e6f, 1}, in[4] = {5};

static void feed(mgt_program *program, const float *weights) {
  OK(mgt_write(program, "x", in, sizeof in));
  OK(mgt_write(program, "w", weights, sizeof few));
  OK(mgt_load(program));
}

struct told {
  char lines[40][400];
  int levels[40], count;
};
static void log_(void *user, int level, const char *line) {
  struct told *told = user;
  REQUIRE(told->count < 40);
  told->levels[told->count] = level;
  snprintf(told->lines[told->count++], 400, "%s", line);
}
static int saw(const struct told *told, int level, const char *words) {
  int k;
  for (k = 0; k < told->count; ++k)
    if (told->levels[k] == level && strstr(told->lines[k], words))
      return 1;
  fprintf(stderr, "no line of level %d with '%s' among:\n", level, words);
  for (k = 0; k < told->count; ++k)
    fprintf(stderr, "%d %s\n", told->levels[k], told->lines[k]);
  return 0;
}

/* A replay that is late returns, what follows its node is left out, and the
 * program's memory is there until then; so is the caller's. */
static void deadline(const char *path, int threads) {
  static float y[4];
  struct told told = {.count = 0};
  mgt_options options = {.size = sizeof options,
                         .deadline_ms = 5000,
                         .threads = (uint32_t)threads,
                         .log = log_,
                         .log_user = &told};
  mgt_counters counters = {.size = sizeof counters};
  mgt_program *program;
  double start;
  int k;
  OK(mgt_open_with(path, "host", &options, &program));
  OK(mgt_bind(program, "y", y, sizeof y));
  feed(program, few);
  for (k = 0; k < 100; ++k)
    OK(mgt_replay(program));
  REQUIRE(y[0] == 2 * (5 + 1 + 1));
  OK(mgt_get_counters(program, &counters));
  REQUIRE(counters.replays == 100 && counters.deadline_misses == 0);
  mgt_close(program);

  options.deadline_ms = 60;
  OK(mgt_open_with(path, "host", &options, &program));
  OK(mgt_bind(program, "y", y, sizeof y));
  feed(program, long_);
  y[0] = -1;
  start = now();
  FAILS(mgt_replay(program), MGT_LOST, "'spin_");
  REQUIRE(strstr(mgt_error(), "mgt_replay: it has not ended within 60 ms"));
  REQUIRE(now() - start < 1);
  OK(mgt_get_counters(program, &counters));
  REQUIRE(counters.replays == 0 && counters.deadline_misses == 1 &&
          counters.failures == 1);
  closeLost(program, "x", "it has not ended within 60 ms");
  REQUIRE(saw(&told, MGT_FAULT, "lost: mgt_replay: it has not ended"));
  REQUIRE(saw(&told, MGT_INFO, "closed 'served' after 0 replays"));
  sleep(1);
  REQUIRE(y[0] == -1);
}

static void memoryAndRoles(const char *path) {
  static const struct {
    const char *memory, *roles, *words;
    mgt_status status;
  } cases[] = {{"100kB", NULL, NULL, MGT_OK},
               {"1kB", NULL, "buffers take", MGT_ABSENT},
               {"lots", NULL, "memory", MGT_USAGE},
               {"", NULL, "memory", MGT_USAGE},
               {"-5", NULL, "memory", MGT_USAGE},
               {NULL, "w=resident", NULL, MGT_OK},
               {NULL, "*=resident,x=input,y=output", NULL, MGT_OK},
               {NULL, "x=resident", "make the bundle again", MGT_UNSUPPORTED},
               {NULL, "w=input", "make the bundle again", MGT_UNSUPPORTED},
               {NULL, "z*=input", "z*", MGT_USAGE},
               {NULL, "x", "'x' is not name=role", MGT_USAGE},
               {NULL, ",", "'' is not name=role", MGT_USAGE},
               {NULL, "x=lord", "lord", MGT_USAGE},
               {NULL, "y=input", "the program writes it", MGT_USAGE}};
  size_t k;
  for (k = 0; k < sizeof cases / sizeof *cases; ++k) {
    const mgt_options options = {.size = sizeof options,
                                 .memory = cases[k].memory,
                                 .roles = cases[k].roles};
    mgt_program *program;
    const mgt_status status = mgt_open_with(path, NULL, &options, &program);
    if (status != cases[k].status)
      fprintf(stderr, "case %d gives %d\n", (int)k, (int)status);
    REQUIRE(status == cases[k].status);
    REQUIRE(!cases[k].words || strstr(mgt_error(), cases[k].words));
    mgt_close(program);
  }
}

/* Programs that were built against older headers, whose structs end sooner,
 * with anything behind them. */
static void olderHeaders(const char *path) {
  static const size_t ends[] = {offsetof(mgt_options, nccl) + sizeof(char *),
                                offsetof(mgt_options, pin) + sizeof(int),
                                offsetof(mgt_options, memory)};
  size_t k;
  for (k = 0; k < sizeof ends / sizeof *ends; ++k) {
    mgt_options options;
    mgt_program *program;
    memset(&options, 0xab, sizeof options);
    memset(&options, 0, ends[k]);
    options.size = ends[k];
    OK(mgt_open_with(path, NULL, &options, &program));
    feed(program, few);
    OK(mgt_replay(program));
    mgt_close(program);
  }
}

static void facts(const char *path) {
  mgt_program *program, *other;
  mgt_facts one = {.size = sizeof one}, two = {.size = sizeof two};
  const mgt_options single = {.size = sizeof single, .threads = 1};
  OK(mgt_open(path, NULL, &program));
  OK(mgt_open_with(path, "host:2", &single, &other));
  OK(mgt_get_facts(program, &one));
  OK(mgt_get_facts(other, &two));
  REQUIRE(strcmp(one.name, "served") == 0 && strlen(one.hash) == 64);
  REQUIRE(strcmp(one.hash, two.hash) == 0 && one.num_devices == 2);
  REQUIRE(strstr(mgt_version_text(), one.version) != NULL);
  REQUIRE(strcmp(one.target, "host") == 0 && strcmp(two.target, "host:2") == 0);
  REQUIRE(strncmp(one.code, "x86-64", 6) == 0);
  REQUIRE(strstr(two.device, "on 1 thread") != NULL);
  REQUIRE(one.num_nodes > 8 && one.host_bytes == 48);
  REQUIRE(one.most_device_bytes > 0 &&
          one.device_bytes >= one.most_device_bytes);
  one.size = 9;
  FAILS(mgt_get_facts(program, &one), MGT_USAGE, "sizeof(mgt_facts)");
  FAILS(mgt_get_facts(program, NULL), MGT_USAGE, "must not be null");
  FAILS(mgt_get_facts(NULL, &two), MGT_USAGE, "must not be null");
  mgt_close(program);
  mgt_close(other);
}

static void *scrape(void *of) {
  mgt_counters counters = {.size = sizeof counters};
  const char *text;
  uint64_t last = 0;
  while (last < 2000) {
    OK(mgt_get_counters(of, &counters));
    OK(mgt_metrics_text(&text));
    REQUIRE(counters.replays >= last && strstr(text, "mgpu_replays_total"));
    last = counters.replays;
  }
  return NULL;
}

static void counters(const char *path, const char *folder) {
  mgt_counters counters = {.size = sizeof counters};
  mgt_program *program, *other;
  char file[500], read[1 << 14];
  const char *text;
  pthread_t thread;
  FILE *stream;
  size_t bytes;
  int k;
  OK(mgt_open(path, NULL, &program));
  OK(mgt_open(path, NULL, &other));
  feed(program, few);
  REQUIRE(pthread_create(&thread, NULL, scrape, program) == 0);
  for (k = 0; k < 2000; ++k)
    OK(mgt_replay(program));
  REQUIRE(pthread_join(thread, NULL) == 0);
  FAILS(mgt_replay(other), MGT_USAGE, "mgt_load");
  OK(mgt_get_counters(program, &counters));
  REQUIRE(counters.replays == 2000 && counters.failures == 0);
  REQUIRE(counters.p50_us > 0 && counters.p50_us <= counters.p90_us &&
          counters.p90_us <= counters.p99_us &&
          counters.p99_us <= counters.p999_us &&
          counters.p999_us <= counters.most_us);
  REQUIRE(counters.last_us > 0 && counters.last_us <= counters.most_us);
  REQUIRE(counters.total_us >= counters.most_us &&
          counters.total_us <= 2000 * counters.most_us);
  OK(mgt_get_counters(other, &counters));
  REQUIRE(counters.replays == 0 && counters.failures == 1);
  REQUIRE(counters.p50_us == 0 && counters.most_us == 0);
  counters.size = 7;
  FAILS(mgt_get_counters(program, &counters), MGT_USAGE, "sizeof");
  FAILS(mgt_get_counters(NULL, &counters), MGT_USAGE, "null");
  FAILS(mgt_metrics_text(NULL), MGT_USAGE, "null");
  FAILS(mgt_write_metrics(NULL), MGT_USAGE, "null");
  FAILS(mgt_write_metrics("/nowhere/x.prom"), MGT_USAGE, "/nowhere/x.prom");
  snprintf(file, sizeof file, "%s/metrics.prom", folder);
  OK(mgt_metrics_text(&text));
  OK(mgt_write_metrics(file));
  stream = fopen(file, "r");
  REQUIRE(stream != NULL);
  bytes = fread(read, 1, sizeof read - 1, stream);
  fclose(stream);
  read[bytes] = 0;
  REQUIRE(strcmp(read, text) == 0);
  REQUIRE(strstr(text, "mgpu_replay_seconds_count{program=\"served\""));
  REQUIRE(strstr(text, "\"} 2000\n") && strstr(text, "quantile=\"0.99\"} "));
  mgt_close(program);
  mgt_close(other);
  OK(mgt_metrics_text(&text));
  REQUIRE(!strstr(text, "served"));
}

/* The double counts what is pushed and popped, and knows the last names. */
static void ranges(const char *path) {
  struct told told = {.count = 0};
  const mgt_options options = {
      .size = sizeof options, .ranges = 1, .log = log_, .log_user = &told};
  mgt_program *program;
  void *library;
  int (*count)(const char *name), (*open)(void);
  int k;
  OK(mgt_open_with(path, NULL, &options, &program));
  library = dlopen("libnvToolsExt.so.1", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != NULL);
  *(void **)&count = dlsym(library, "doubleCount");
  *(void **)&open = dlsym(library, "doubleOpen");
  REQUIRE(count && open);
  feed(program, few);
  for (k = 0; k < 3; ++k)
    OK(mgt_replay(program));
  REQUIRE(count("served") == 3 && count("spin_0_2") == 3);
  REQUIRE(count("spin_1_6") == 3 && count("bump_3") == 3 && open() == 0);
  REQUIRE(!strstr(told.lines[0], "NVTX"));
  mgt_close(program);
}

/* A kernel whose result is of how often it was called, which no replay should
 * be: its reference is called at audits alone. */
static void drifting(const char *path, const char *host) {
  static const int64_t shape[] = {4};
  const mgt_save_options save = {.size = sizeof save, .cpu = "x86-64-v2"};
  mgt_buffer_spec buffer = {.size = sizeof buffer, .rank = 1, .shape = shape};
  mgt_kernel_spec kernel = {.size = sizeof kernel, .entry = "drift"};
  mgt_view x = {.buffer = 0}, a = {.buffer = 0}, y = {.buffer = 0};
  mgt_arg arg = {.access = 3};
  mgt_launch_spec launch = {
      .size = sizeof launch, .grid = {1, 1, 1}, .num_args = 1, .args = &arg};
  mgt_builder *builder;
  kernel.host = host;
  OK(mgt_builder_new("drifting", 1, &builder));
  buffer.name = "x", buffer.kind = MGT_ARGUMENT, buffer.device = MGT_HOST;
  OK(mgt_builder_buffer(builder, &buffer, &x.buffer));
  buffer.name = "y", buffer.role = "output";
  OK(mgt_builder_buffer(builder, &buffer, &y.buffer));
  buffer.name = "a", buffer.role = NULL;
  buffer.kind = MGT_TEMPORARY, buffer.device = 0;
  OK(mgt_builder_buffer(builder, &buffer, &a.buffer));
  OK(mgt_builder_kernel(builder, &kernel, &launch.kernel));
  arg.view = a;
  OK(mgt_builder_copy(builder, &a, &x));
  OK(mgt_builder_launch(builder, &launch));
  OK(mgt_builder_copy(builder, &y, &a));
  OK(mgt_builder_save(builder, path, &save));
  mgt_builder_free(builder);
}

/* A reference that differs from itself is no judge: that is told, and the
 * program goes on. */
static void unsteady(const char *folder) {
  struct told told = {.count = 0};
  mgt_options options = {
      .size = sizeof options, .audit = 3, .log = log_, .log_user = &told};
  char path[500];
  int k;
  snprintf(path, sizeof path, "%s/unsteady.mgpu", folder);
  drifting(path, "void drift(mgpu_block, float *y) { static float calls = 0;"
                 " y[0] += calls++; }");
  for (k = MGT_AUDIT_STOP; k <= MGT_AUDIT_FALL_BACK; ++k) {
    mgt_program *program;
    float y[4];
    int replay;
    options.audit_action = k;
    OK(mgt_open_with(path, NULL, &options, &program));
    OK(mgt_write(program, "x", in, sizeof in));
    OK(mgt_load(program));
    for (replay = 0; replay < 4; ++replay) {
      OK(mgt_replay(program));
      OK(mgt_read(program, "y", y, sizeof y));
      REQUIRE(y[0] == 5 + (float)replay); /* its own */
    }
    REQUIRE(saw(&told, MGT_FAULT,
                "audit of replay 3: the reference differs from itself, first "
                "in node 'drift_1'"));
    mgt_close(program);
  }
}

static void audits(const char *good, const char *drifts, const char *folder) {
  struct told told = {.count = 0};
  mgt_options options = {
      .size = sizeof options, .audit = 3, .log = log_, .log_user = &told};
  mgt_counters counters = {.size = sizeof counters};
  mgt_program *program;
  const char *difference;
  float y[4];
  int k;
  OK(mgt_open_with(good, NULL, &options, &program));
  FAILS(mgt_audit(program, &difference), MGT_USAGE, "mgt_load");
  feed(program, few);
  for (k = 0; k < 300; ++k)
    OK(mgt_replay(program));
  OK(mgt_audit(program, &difference));
  REQUIRE(!*difference);
  FAILS(mgt_audit(program, NULL), MGT_USAGE, "null");
  OK(mgt_get_counters(program, &counters));
  REQUIRE(counters.audits == 101 && counters.differences == 0);
  REQUIRE(counters.replays == 301);
  /* The audited are held up, so they tell nothing of how long one takes. */
  OK(mgt_metrics_text(&difference));
  REQUIRE(strstr(difference, "mgpu_replay_seconds_count{program=\"served\""));
  REQUIRE(strstr(difference, "\"} 200\n") != NULL);
  mgt_close(program);
  for (k = MGT_AUDIT_GO_ON; k <= MGT_AUDIT_FALL_BACK; ++k) {
    options.audit_action = k;
    OK(mgt_open_with(drifts, NULL, &options, &program));
    OK(mgt_write(program, "x", in, sizeof in));
    OK(mgt_load(program));
    OK(mgt_replay(program));
    OK(mgt_replay(program)); /* the next call adds one */
    if (k == MGT_AUDIT_STOP) {
      FAILS(mgt_replay(program), MGT_INTERNAL,
            "audit of replay 3: node 'drift_1' wrote something else");
      closeLost(program, "x", "drift_1");
      continue;
    }
    OK(mgt_replay(program));
    OK(mgt_read(program, "y", y, sizeof y));
    REQUIRE(y[0] == (k == MGT_AUDIT_GO_ON ? 5 + 1 : 5));
    /* The reference was called twice, to find out whether it is steady. */
    OK(mgt_replay(program));
    OK(mgt_read(program, "y", y, sizeof y));
    REQUIRE(y[0] == 5 + 1);
    OK(mgt_get_counters(program, &counters));
    REQUIRE(counters.differences == 1);
    if (k == MGT_AUDIT_FALL_BACK) {
      const mgt_node_time *times;
      size_t count;
      FAILS(mgt_times(program, &times, &count), MGT_UNSUPPORTED, "reference");
      FAILS(mgt_audit(program, &difference), MGT_UNSUPPORTED, "reference");
    }
    REQUIRE(saw(&told, MGT_FAULT, "node 'drift_1' wrote something else"));
    mgt_close(program);
  }
  unsteady(folder);
  options.audit_action = MGT_AUDIT_FALL_BACK, options.audit_fresh = "x";
  OK(mgt_open_with(drifts, NULL, &options, &program));
  OK(mgt_write(program, "x", in, sizeof in));
  OK(mgt_load(program));
  OK(mgt_replay(program));
  OK(mgt_replay(program));
  OK(mgt_audit(program, &difference)); /* stale, and another result */
  REQUIRE(strstr(difference, "'x' is stale"));
  REQUIRE(strstr(difference, "; node 'drift_1' wrote something else"));
  OK(mgt_read(program, "y", y, sizeof y));
  REQUIRE(y[0] == 5); /* the reference's */
  mgt_close(program);
  options.audit = 1; /* what is stale alone is nothing to fall back for */
  OK(mgt_open_with(good, NULL, &options, &program));
  feed(program, few);
  OK(mgt_audit(program, &difference));
  REQUIRE(!*difference);
  OK(mgt_audit(program, &difference));
  REQUIRE(strstr(difference, "'x' is stale") != NULL);
  OK(mgt_write(program, "x", in, sizeof in));
  OK(mgt_audit(program, &difference));
  REQUIRE(!*difference);
  mgt_close(program);
  options.audit_fresh = "x,w";
  FAILS(mgt_open_with(good, NULL, &options, &program), MGT_USAGE,
        "'w' is resident");
  options.audit_fresh = "x,z";
  FAILS(mgt_open_with(good, NULL, &options, &program), MGT_USAGE, "'z'");
  options.audit_fresh = NULL, options.audit_action = 3;
  FAILS(mgt_open_with(good, NULL, &options, &program), MGT_USAGE, "audit");
  options.audit_action = MGT_AUDIT_STOP, options.audit = 0;
  FAILS(mgt_open_with(good, NULL, &options, &program), MGT_USAGE, "audit");
  options.audit = 1, options.deadline_ms = 5;
  FAILS(mgt_open_with(good, NULL, &options, &program), MGT_UNSUPPORTED,
        "deadline_ms");
  OK(mgt_open(good, NULL, &program));
  FAILS(mgt_audit(program, &difference), MGT_USAGE, "mgt_options::audit");
  mgt_close(program);
}

int main(int argc, char **argv) {
  mgt_builder *builder = build();
  const mgt_save_options save = {.size = sizeof save, .cpu = "x86-64-v2"};
  char path[500], drifts[500];
  if (argc < 2)
    return 2;
  snprintf(path, sizeof path, "%s/served.mgpu", argv[1]);
  OK(mgt_builder_save(builder, path, &save));
  mgt_builder_free(builder);
  deadline(path, 1);
  deadline(path, 2);
  memoryAndRoles(path);
  olderHeaders(path);
  facts(path);
  counters(path, argv[1]);
  ranges(path);
  snprintf(drifts, sizeof drifts, "%s/drifting.mgpu", argv[1]);
  drifting(drifts, "void drift(mgpu_block, float *y) { static int calls = 0;"
                   " y[0] += calls++ < 2 ? 0 : 1; }");
  audits(path, drifts, argv[1]);
  printf("a program is served as its options say\n");
  return 0;
}
