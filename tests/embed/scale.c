/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Functions for the calls of calls.mlir, which need no library. */
#include "mgt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number in "3", or in {by = 2 : i64}. */
int scale(void *user, const mgt_call *call) {
  const char *digits = call->config + strcspn(call->config, "0123456789");
  const float by = (float)atof(digits) * (user ? *(float *)user : 1);
  if (call->num_operands != 1 || call->num_results != 1 || by == 0 ||
      call->config[call->config_bytes] != 0) {
    snprintf(call->message, call->message_bytes, "no factor in '%s'",
             call->config);
    return 7;
  }
  const float *from = call->operands[0].data;
  float *to = call->results[0].data;
  for (size_t k = 0; k < call->results[0].bytes / sizeof *to; ++k)
    to[k] = from[k] * by;
  return 0;
}

int fails(void *user, const mgt_call *call) {
  (void)user, (void)call;
  return 9;
}
