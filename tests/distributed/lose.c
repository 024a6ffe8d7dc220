/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program of several processes is lost, by a rank that is killed or by one
 * that is late: the first call that notices names the rank, and every later one
 * is MGT_LOST. Usage: lose BUNDLE killed|late FILE, with the environment of
 * share.c without MPI. Rank 1 is the one; who is late waits for FILE, which
 * rank 0 makes when it has given up. */
#include "tests/bundles/lost.h"

#include <signal.h>
#include <unistd.h>

static void require(int holds, const char *what, int line) {
  if (holds)
    return;
  fprintf(stderr, "line %d: %s; last error: %s\n", line, what, mgt_error());
  exit(1);
}
#define REQUIRE(condition) require((condition), #condition, __LINE__)

static float a[16], b[10];

static void replay(mgt_program *program) {
  REQUIRE(mgt_write(program, "a", a, sizeof a) == MGT_OK);
  REQUIRE(mgt_write(program, "b", b, sizeof b) == MGT_OK);
  REQUIRE(mgt_load(program) == MGT_OK);
  REQUIRE(mgt_replay(program) == MGT_OK);
  REQUIRE(mgt_fetch(program) == MGT_OK);
}

static mgt_program *open(const char *path, uint32_t rank) {
  mgt_ranks ranks = {0};
  mgt_options options = {0};
  mgt_program *program = NULL;
  ranks.size = sizeof ranks;
  ranks.how = "tcp";
  ranks.address = "127.0.0.1";
  ranks.rank = rank;
  ranks.count = (uint32_t)atoi(getenv("WORLD_SIZE"));
  ranks.port = (uint32_t)atoi(getenv("MASTER_PORT"));
  ranks.deadline_ms = 5000;
  options.size = sizeof options;
  options.ranks = &ranks;
  REQUIRE(mgt_open_with(path, "host", &options, &program) == MGT_OK);
  return program;
}

/* Nothing of the lost one is in the way of another. */
static void replayAlone(const char *path) {
  mgt_program *program = NULL;
  float gathered[16];
  REQUIRE(mgt_open(path, "host:4", &program) == MGT_OK);
  replay(program);
  REQUIRE(mgt_read(program, "gathered", gathered, sizeof gathered) == MGT_OK);
  REQUIRE(memcmp(gathered, a, sizeof a) == 0);
  mgt_close(program);
}

int main(int argc, char **argv) {
  const uint32_t rank = (uint32_t)atoi(getenv("RANK"));
  const char *words = "rank 1";
  mgt_program *program;
  size_t k;
  if (argc != 4)
    return 2;
  for (k = 0; k < 16; ++k)
    a[k] = (float)k - 4;
  program = open(argv[1], rank);
  replay(program);
  if (rank == 1) {
    if (strcmp(argv[2], "killed") == 0)
      raise(SIGKILL);
    while (access(argv[3], F_OK) != 0)
      usleep(10000);
    words = "";
  }
  REQUIRE(mgt_replay(program) != MGT_OK);
  require(strstr(mgt_error(), words) != NULL, "the rank is named", __LINE__);
  printf("rank %u: %s\n", (unsigned)rank, mgt_error());
  if (rank == 0)
    fclose(fopen(argv[3], "w"));
  closeLost(program, "a", words);
  replayAlone(argv[1]);
  return 0;
}
