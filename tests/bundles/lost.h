/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program that was lost: every call that uses its target says so, what is
 * known without it is still told, and it is closed without waiting. */
#ifndef MGPU_TESTS_BUNDLES_LOST_H
#define MGPU_TESTS_BUNDLES_LOST_H

#include "pipeline/c/mgt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void saysLost(mgt_status status, const mgt_program *program,
                     const char *call, const char *words) {
  if (status == MGT_LOST && strncmp(mgt_error(), call, strlen(call)) == 0 &&
      strstr(mgt_error(), "the program was lost before (") &&
      strstr(mgt_error(), words) &&
      strcmp(mgt_error(), mgt_program_error(program)) == 0)
    return;
  fprintf(stderr, "%s gives %d: %s\n", call, (int)status, mgt_error());
  exit(1);
}

/* `argument` is one of the program, and `words` are why it was lost. */
static void closeLost(mgt_program *program, const char *argument,
                      const char *words) {
  const mgt_node_time *times;
  const char *text;
  char bytes[8] = {0};
  void *memory;
  size_t count;
  mgt_argument about;
  mgt_figures figures = {.size = sizeof figures};
  mgt_facts facts = {.size = sizeof facts};
#define SAYS_LOST(call, ...)                                                   \
  saysLost(call(program __VA_ARGS__), program, #call, words)
#define WITH(...) , __VA_ARGS__
  SAYS_LOST(mgt_write, WITH(argument, bytes, sizeof bytes));
  SAYS_LOST(mgt_read, WITH(argument, bytes, sizeof bytes));
  SAYS_LOST(mgt_memory, WITH(argument, &memory, &count));
  SAYS_LOST(mgt_bind, WITH(argument, bytes, sizeof bytes));
  SAYS_LOST(mgt_share, WITH(argument, program, argument));
  SAYS_LOST(mgt_load, );
  SAYS_LOST(mgt_replay, );
  SAYS_LOST(mgt_replay_on, WITH(NULL));
  SAYS_LOST(mgt_audit, WITH(&text));
  SAYS_LOST(mgt_fetch, );
  SAYS_LOST(mgt_times, WITH(&times, &count));
  SAYS_LOST(mgt_plan_text, WITH(&text));
  SAYS_LOST(mgt_explain, WITH(&text));
  SAYS_LOST(mgt_configuration, WITH(&text));
  SAYS_LOST(mgt_get_figures, WITH(&figures));
  SAYS_LOST(mgt_get_facts, WITH(&facts));
#undef WITH
#undef SAYS_LOST
  if (mgt_get_argument(program, 0, &about) != MGT_OK || !*about.name) {
    fprintf(stderr, "its arguments are not told: %s\n", mgt_error());
    exit(1);
  }
  mgt_close(program);
}

#endif /* MGPU_TESTS_BUNDLES_LOST_H */
