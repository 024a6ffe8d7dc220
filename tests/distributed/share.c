/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program of several processes by the C interface: the bundle of examples/ops
 * gives rank 0 the bits of one process. Usage: share BUNDLE. Without MPI the
 * ranks meet by TCP, where RANK, WORLD_SIZE and MASTER_PORT say; with MPI
 * (MGPU_TEST_MPI) by a communicator that has them in reverse order.
 * MGPU_TEST_TARGET is "host" where it is not set. */
#include "pipeline/c/mgt.h"

#ifdef MGPU_TEST_MPI
#include <mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(int holds, const char *what, int line) {
  if (holds)
    return;
  fprintf(stderr, "line %d: %s; last error: %s\n", line, what, mgt_error());
  exit(1);
}
#define REQUIRE(condition) require((condition), #condition, __LINE__)
#define FAILS(call, expected, words)                                           \
  (require((call) == (expected), #call, __LINE__),                             \
   require(strstr(mgt_error(), (words)) != NULL, (words), __LINE__))

static float a[16], b[10];

static void replay(mgt_program *program) {
  REQUIRE(mgt_write(program, "a", a, sizeof a) == MGT_OK);
  REQUIRE(mgt_write(program, "b", b, sizeof b) == MGT_OK);
  REQUIRE(mgt_load(program) == MGT_OK);
  REQUIRE(mgt_replay(program) == MGT_OK);
  REQUIRE(mgt_replay(program) == MGT_OK);
  REQUIRE(mgt_fetch(program) == MGT_OK);
}

/* What rank 0 has is what one process has; the others have nothing to read. */
static void compare(const char *path, mgt_program *shared, uint32_t rank) {
  mgt_program *alone;
  size_t k;
  REQUIRE(mgt_open(path, "host:4", &alone) == MGT_OK);
  replay(alone);
  for (k = 0; k < mgt_num_arguments(alone); ++k) {
    mgt_argument argument;
    char one[256], several[256];
    REQUIRE(mgt_get_argument(alone, k, &argument) == MGT_OK);
    REQUIRE(argument.bytes <= sizeof one);
    REQUIRE(mgt_read(alone, argument.name, one, argument.bytes) == MGT_OK);
    if (strcmp(argument.role, "output") != 0)
      continue;
    if (rank != 0) {
      FAILS(mgt_read(shared, argument.name, several, argument.bytes), MGT_USAGE,
            "is not in the memory of rank");
      continue;
    }
    REQUIRE(mgt_read(shared, argument.name, several, argument.bytes) == MGT_OK);
    REQUIRE(memcmp(one, several, argument.bytes) == 0);
  }
  mgt_close(alone);
}

static void refusals(const char *path, const mgt_ranks *good) {
  mgt_program *program;
  mgt_ranks ranks = *good;
  mgt_options options = {.size = sizeof options, .ranks = &ranks};
  ranks.how = "pigeon";
  FAILS(mgt_open_with(path, "host", &options, &program), MGT_USAGE,
        "do not meet by 'pigeon'");
  ranks.how = "tcp";
  ranks.rank = ranks.count = 2;
  FAILS(mgt_open_with(path, "host", &options, &program), MGT_USAGE,
        "rank 2 of 2");
  ranks = *good;
  FAILS(mgt_open_with(path, "sim:dgx-h200", &options, &program), MGT_USAGE,
        "share devices of the host or GPUs");
  options.nccl = "overlap";
  FAILS(mgt_open_with(path, "host", &options, &program), MGT_USAGE,
        "ranks share the host");
  ranks.size = 4;
  options.nccl = NULL;
  FAILS(mgt_open_with(path, "host", &options, &program), MGT_USAGE,
        "set it to sizeof(mgt_ranks)");
}

int main(int argc, char **argv) {
  const char *given = getenv("MGPU_TEST_TARGET");
  const char *target = given ? given : "host";
  mgt_ranks ranks = {0};
  const mgt_options options = {.size = sizeof options, .ranks = &ranks};
  uint32_t mine, rank, count;
  mgt_program *program;
  int round;
  size_t k;
  if (argc != 2)
    return 2;
  for (k = 0; k < 16; ++k)
    a[k] = (float)((k * 7) % 11) - 4;
  for (k = 0; k < 10; ++k)
    b[k] = (float)k / 4;
  ranks.size = sizeof ranks;
  ranks.deadline_ms = 20000;
#ifdef MGPU_TEST_MPI
  {
    static MPI_Comm reversed;
    int level, own, all;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    MPI_Comm_split(MPI_COMM_WORLD, 0, all - own, &reversed);
    ranks.how = MGPU_TEST_MPI;
    ranks.communicator = &reversed;
    mine = (uint32_t)(all - 1 - own);
  }
#else
  ranks.how = "tcp";
  ranks.address = "127.0.0.1";
  ranks.rank = mine = (uint32_t)atoi(getenv("RANK"));
  ranks.count = (uint32_t)atoi(getenv("WORLD_SIZE"));
  ranks.port = (uint32_t)atoi(getenv("MASTER_PORT"));
#endif
  refusals(argv[1], &ranks);
  for (round = 0; round < 2; ++round) {
    REQUIRE(mgt_open_with(argv[1], target, &options, &program) == MGT_OK);
    REQUIRE(mgt_get_rank(program, &rank, &count) == MGT_OK);
    REQUIRE(rank == mine && rank < count && count > 1);
    FAILS(mgt_bind(program, "a", a, sizeof a), MGT_UNSUPPORTED,
          "use mgt_write and mgt_read");
    replay(program);
    compare(argv[1], program, rank);
#ifdef MGPU_TEST_MPI
    {
      mgt_program *second;
      FAILS(mgt_open_with(argv[1], target, &options, &second), MGT_USAGE,
            "at a time");
    }
#endif
    mgt_close(program);
  }
#ifdef MGPU_TEST_MPI
  MPI_Finalize();
#endif
  if (mine == 0)
    printf("rank 0 has the bits of one process\n");
  return 0;
}
