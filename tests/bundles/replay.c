/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The C interface from C: replays the bundle of examples/ops and compares with
 * what its operations mean. Usage: mgt_test BUNDLE [TARGET [WORDS [SETTINGS]]];
 * with WORDS a GPU fails sooner or later, or takes longer than five seconds,
 * and they are in what is said of it;
 * with SETTINGS of NCCL it cannot be opened. */
#include "tests/bundles/lost.h"

static void require(int holds, const char *what, int line) {
  if (holds)
    return;
  fprintf(stderr, "line %d: %s; last error: %s\n", line, what, mgt_error());
  exit(1);
}
#define REQUIRE(condition) require((condition), #condition, __LINE__)

static void fails(mgt_status status, mgt_status expected, const char *words,
                  int line) {
  require(status == expected, "another status", line);
  require(strstr(mgt_error(), words) != NULL, words, line);
}
#define FAILS(call, status, words) fails((call), (status), (words), __LINE__)

static void errors(const char *path) {
  mgt_program *program = (mgt_program *)&program;
  FAILS(mgt_open("/nowhere/x.mgpu", NULL, &program), MGT_USAGE,
        "cannot be opened");
  REQUIRE(program == NULL);
  FAILS(mgt_open(NULL, NULL, &program), MGT_USAGE, "must not be null");
  FAILS(mgt_open(path, NULL, NULL), MGT_USAGE, "must not be null");
  FAILS(mgt_open(path, "abacus", &program), MGT_USAGE, "unknown target");
  FAILS(mgt_open(path, "host:1", &program), MGT_ABSENT, "is of 4 devices");
  FAILS(mgt_open(path, "cuda:0/x", &program), MGT_USAGE, "the forms are cuda");
  FAILS(mgt_open(path, "cuda:0", &program), MGT_ABSENT, "is of 4 devices");
  FAILS(mgt_replay(NULL), MGT_USAGE, "must not be null");
  REQUIRE(mgt_num_arguments(NULL) == 0);
  mgt_close(NULL);

  float a[16] = {0};
  REQUIRE(mgt_open(path, "host:4", &program) == MGT_OK);
  FAILS(mgt_write(program, "z", a, sizeof a), MGT_USAGE, "no argument 'z'");
  FAILS(mgt_write(program, "a", a, 8), MGT_USAGE, "'a' has 64 bytes, and 8");
  FAILS(mgt_write(program, "a", NULL, 64), MGT_USAGE, "and none are given");
  FAILS(mgt_replay(program), MGT_USAGE, "call mgt_load first");
  FAILS(mgt_load(program), MGT_USAGE, "argument 'a' is read but has no value");
  mgt_close(program);
}

/* What a replay made of `a` and `b`. */
static void results(mgt_program *program, const float *a, const float *b) {
  static const char *const outputs[] = {"gathered", "maximum", "minimum",
                                        "product", "broadcasted"};
  float out[16];
  size_t k;
  REQUIRE(mgt_read(program, "gathered", out, 64) == MGT_OK);
  REQUIRE(memcmp(out, a, 64) == 0);
  REQUIRE(mgt_read(program, "uneven", out, 40) == MGT_OK);
  REQUIRE(memcmp(out, b, 40) == 0);
  REQUIRE(mgt_read(program, "chained", out, 64) == MGT_OK);
  for (k = 0; k < 16; ++k)
    REQUIRE(out[k] == a[k] + 1);
  for (k = 1; k < 5; ++k) {
    size_t i, rank;
    REQUIRE(mgt_read(program, outputs[k], out, 16) == MGT_OK);
    for (i = 0; i < 4; ++i) {
      float most = a[i], least = a[i], product = 1;
      for (rank = 0; rank < 4; ++rank) {
        float value = a[4 * rank + i];
        most = value > most ? value : most;
        least = value < least ? value : least;
        product *= value;
      }
      REQUIRE(out[i] == (k == 1   ? most
                         : k == 2 ? least
                         : k == 3 ? product
                                  : a[4 + i]));
    }
  }
}

/* What mgt_open_with() is told, by older and newer programs as well. */
static void options(const char *path) {
  mgt_program *program;
  struct {
    mgt_options known;
    const char *unknown;
  } newer = {{.size = sizeof newer}, NULL};
  FAILS(mgt_open_with(path, "host:4", &newer.known, NULL), MGT_USAGE,
        "must not be null");
  REQUIRE(mgt_open_with(path, "host:4", &newer.known, &program) == MGT_OK);
  mgt_close(program);
  newer.unknown = "";
  FAILS(mgt_open_with(path, "host:4", &newer.known, &program), MGT_UNSUPPORTED,
        "does not know");
  newer.known.size = sizeof newer.known.size;
  FAILS(mgt_open_with(path, "host:4", &newer.known, &program), MGT_USAGE,
        "size is 8: set it to sizeof(mgt_options)");
  newer.known.size = sizeof newer.known;
  newer.known.nccl = "overlap";
  FAILS(mgt_open_with(path, "host:4", &newer.known, &program), MGT_USAGE,
        "NCCL's settings (overlap) are for several GPUs");
  newer.known.nccl = "overlap,fast";
  FAILS(mgt_open_with(path, "cuda:0,1,2,3", &newer.known, &program), MGT_USAGE,
        "NCCL setting 'fast'");
  newer.known.nccl = "min-ctas=9,max-ctas=8";
  FAILS(mgt_open_with(path, "cuda:0,1,2,3", &newer.known, &program), MGT_USAGE,
        "min-ctas=9 is more than max-ctas=8");
  REQUIRE(program == NULL);
}

/* In the program's place: memory of the caller's, which for GPUs is pinned for
 * all of them, and so here another program's. */
static void bind(mgt_program *program, const char *path, const char *target) {
  static float own[4][16];
  float *bound[4] = {own[0], own[1], own[2], own[3]}, out[16];
  static const char *const pinned[4] = {"a", "gathered", "chained", NULL};
  mgt_program *other = NULL;
  size_t replay, k, bytes;
  void *memory;
  FAILS(mgt_bind(program, "a", own, 4), MGT_USAGE, "'a' has 64 bytes");
  FAILS(mgt_bind(program, "nothing", own, 64), MGT_USAGE, "no argument");
  FAILS(mgt_bind(program, "a", (char *)own + 1, 64), MGT_USAGE,
        "must begin at a multiple of the 4 bytes of its elements");
  if (target) {
    REQUIRE(mgt_open(path, target, &other) == MGT_OK);
    for (k = 0; pinned[k]; ++k) {
      REQUIRE(mgt_memory(other, pinned[k], &memory, &bytes) == MGT_OK);
      bound[k] = memory;
    }
    bound[3] = bound[2];
  }
  for (replay = 0; replay < 2; ++replay) {
    float *in = bound[replay], *result = bound[2 + replay];
    REQUIRE(mgt_bind(program, "a", in, 64) == MGT_OK);
    REQUIRE(mgt_bind(program, "chained", result, 64) == MGT_OK);
    for (k = 0; k < 16; ++k)
      in[k] = (float)(100 * replay + k);
    REQUIRE(mgt_replay(program) == MGT_OK);
    REQUIRE(mgt_fetch(program) == MGT_OK);
    for (k = 0; k < 16; ++k)
      REQUIRE(result[k] == in[k] + 1);
    REQUIRE(mgt_read(program, "chained", out, 64) == MGT_OK);
    REQUIRE(memcmp(out, result, 64) == 0);
  }
  mgt_close(program);
  mgt_close(other);
}

/* Until a GPU fails or is late; then the program is lost, and says so. */
static void lose(mgt_program *program, const char *words) {
  size_t replay;
  for (replay = 0; replay < 100; ++replay)
    if (mgt_replay(program) != MGT_OK)
      break;
  require(strstr(mgt_error(), words) != NULL, words, __LINE__);
  printf("after %u replays: %s\n", (unsigned)replay, mgt_error());
  closeLost(program, "a", words);
}

/* With settings of NCCL the results are what they are without. */
static void settings(const char *path, const char *target) {
  mgt_options options = {.size = sizeof options,
                         .nccl = "overlap,windows,max-ctas=4"};
  mgt_program *program;
  float a[16], b[10];
  size_t k;
  REQUIRE(mgt_open_with(path, target, &options, &program) == MGT_OK);
  for (k = 0; k < 16; ++k)
    a[k] = (float)(k * 5 % 16);
  for (k = 0; k < 10; ++k)
    b[k] = (float)k - 3;
  REQUIRE(mgt_write(program, "a", a, sizeof a) == MGT_OK);
  REQUIRE(mgt_write(program, "b", b, sizeof b) == MGT_OK);
  REQUIRE(mgt_load(program) == MGT_OK);
  for (k = 0; k < 2; ++k) {
    REQUIRE(mgt_replay(program) == MGT_OK);
    REQUIRE(mgt_fetch(program) == MGT_OK);
    results(program, a, b);
  }
  mgt_close(program);
}

/* Runs that are begun, and a program in the place of another, whose memory the
 * caller knows. */
static void beside(const char *path, const char *target) {
  mgt_program *programs[2];
  float a[16], b[10], *known;
  void *memory;
  size_t bytes;
  int k, round;
  for (k = 0; k < 2; ++k) {
    const float none[16] = {0};
    REQUIRE(mgt_open(path, target, &programs[k]) == MGT_OK);
    REQUIRE(mgt_write(programs[k], "a", none, sizeof none) == MGT_OK);
    REQUIRE(mgt_write(programs[k], "b", none, sizeof b) == MGT_OK);
    REQUIRE(mgt_load(programs[k]) == MGT_OK);
  }
  REQUIRE(mgt_memory(programs[0], "a", &memory, &bytes) == MGT_OK);
  known = memory;
  for (round = 0; round < 4; ++round) {
    for (k = 0; k < 16; ++k)
      known[k] = a[k] = (float)(k + 3 * round);
    for (k = 0; k < 10; ++k)
      b[k] = (float)(k - round);
    REQUIRE(mgt_write(programs[0], "b", b, sizeof b) == MGT_OK);
    if (round > 0)
      REQUIRE(mgt_swap(programs[0], programs[1]) == MGT_OK);
    REQUIRE(mgt_replay_begin(programs[0]) == MGT_OK);
    REQUIRE(mgt_wait(programs[0]) == MGT_OK);
    REQUIRE(mgt_replay_begin(programs[0]) == MGT_OK);
    REQUIRE(mgt_fetch(programs[0]) == MGT_OK); /* which waits as well */
    results(programs[0], a, b);
  }
  FAILS(mgt_capture_into(programs[0], NULL),
        target && !strchr(target, '/') ? MGT_UNSUPPORTED
        : target                       ? MGT_USAGE
                                       : MGT_UNSUPPORTED,
        target && strchr(target, '/') ? "begin a capture"
        : target                      ? "several GPUs"
                                      : "no streams that are captured");
  mgt_close(programs[1]);
  mgt_close(programs[0]);
}

int main(int argc, char **argv) {
  mgt_program *program;
  mgt_argument argument;
  float a[16], *b;
  void *memory;
  size_t bytes, k, replay, input_count = 0;
  const char *target = argc > 2 ? argv[2] : NULL;
  if (argc < 2)
    return 2;
  REQUIRE(mgt_version() == MGT_VERSION);
  REQUIRE(strcmp(mgt_error(), "") == 0);
  errors(argv[1]);
  options(argv[1]);
  if (argc > 4) {
    const mgt_options refused = {.size = sizeof refused, .nccl = argv[4]};
    FAILS(mgt_open_with(argv[1], target, &refused, &program), MGT_ABSENT,
          argv[3]);
    printf("%s: %s\n", argv[4], mgt_error());
    return 0;
  }

  if (argc > 3) { /* it takes what a loaded machine may need */
    const mgt_options hasty = {.size = sizeof hasty, .deadline_ms = 5000};
    REQUIRE(mgt_open_with(argv[1], target, &hasty, &program) == MGT_OK);
  } else {
    REQUIRE(mgt_open(argv[1], target, &program) == MGT_OK);
  }
  REQUIRE(mgt_num_arguments(program) == 9);
  for (k = 0; k < mgt_num_arguments(program); ++k) {
    REQUIRE(mgt_get_argument(program, k, &argument) == MGT_OK);
    REQUIRE(argument.rank == 1 && strcmp(argument.type, "f32") == 0);
    REQUIRE(argument.bytes == 4 * (size_t)argument.shape[0]);
    REQUIRE(!argument.is_result && strcmp(argument.value, "") == 0);
    input_count += strcmp(argument.role, "input") == 0;
  }
  REQUIRE(input_count == 2);
  FAILS(mgt_get_argument(program, 9, &argument), MGT_USAGE, "no argument 9");

  REQUIRE(mgt_memory(program, "b", &memory, &bytes) == MGT_OK && bytes == 40);
  b = memory;
  for (replay = 0; replay < 3; ++replay) {
    for (k = 0; k < 16; ++k)
      a[k] = (float)((k * 7 + replay) % 16) - 5;
    for (k = 0; k < 10; ++k)
      b[k] = (float)(k * k + replay);
    REQUIRE(mgt_write(program, "a", a, sizeof a) == MGT_OK);
    if (replay == 0)
      REQUIRE(mgt_load(program) == MGT_OK);
    REQUIRE(mgt_replay(program) == MGT_OK);
    REQUIRE(mgt_fetch(program) == MGT_OK);
    results(program, a, b);
  }
  if (argc > 3) {
    lose(program, argv[3]);
    return 0;
  }
  bind(program, argv[1], target);
  beside(argv[1], target);
  if (target && !strchr(target, '/')) /* of four devices: several GPUs */
    settings(argv[1], target);
  printf("replays through the C interface on %s give what they should\n",
         target ? target : "the host");
  return 0;
}
