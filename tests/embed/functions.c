/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Registers functions for the calls of a bundle of calls.mlir's @scaled.
 *
 * Usage: embed_functions BUNDLE
 */
#include "mgt.h"

#include <stdio.h>
#include <string.h>

int scale(void *user, const mgt_call *call); /* scale.c */
int fails(void *user, const mgt_call *call);

#define EXPECT(ok)                                                             \
  if (!(ok))                                                                   \
  return printf("line %d: %s: %s\n", __LINE__, #ok, mgt_error()), 1

int main(int argc, char **argv) {
  mgt_program *program;
  float x[6] = {0, 1, 2, 3, 4, 5}, y[6], twice = 2;
  if (argc != 2)
    return printf("usage: embed_functions BUNDLE\n"), 2;
  EXPECT(mgt_open(argv[1], "host", &program) == MGT_UNSUPPORTED);
  EXPECT(strstr(mgt_error(), "no function is registered as 'scale$all'"));
  EXPECT(mgt_register("", scale, NULL) == MGT_USAGE);
  EXPECT(mgt_register("scale$all", scale, NULL) == MGT_OK);
  EXPECT(mgt_open(argv[1], "host", &program) == MGT_OK);
  /* An open program keeps the function that it was opened with. */
  EXPECT(mgt_register("scale$all", scale, &twice) == MGT_OK);
  EXPECT(mgt_write(program, "x", x, sizeof x) == MGT_OK);
  EXPECT(mgt_load(program) == MGT_OK && mgt_replay(program) == MGT_OK);
  EXPECT(mgt_read(program, "r0", y, sizeof y) == MGT_OK);
  for (int k = 0; k < 6; ++k)
    EXPECT(y[k] == (x[k] + 1) * 6 + 1);
  mgt_close(program);
  EXPECT(mgt_open(argv[1], "host", &program) == MGT_OK);
  EXPECT(mgt_write(program, "x", x, sizeof x) == MGT_OK);
  EXPECT(mgt_load(program) == MGT_OK && mgt_replay(program) == MGT_OK);
  EXPECT(mgt_read(program, "r0", y, sizeof y) == MGT_OK && y[1] == 49);
  mgt_close(program);
  EXPECT(mgt_register("scale$all", fails, NULL) == MGT_OK);
  EXPECT(mgt_open(argv[1], "host", &program) == MGT_OK);
  EXPECT(mgt_write(program, "x", x, sizeof x) == MGT_OK);
  EXPECT(mgt_load(program) == MGT_OK);
  EXPECT(mgt_replay(program) == MGT_INVALID);
  EXPECT(strstr(mgt_error(), "the function registered as 'scale$all' failed: "
                             "it returned 9"));
  mgt_close(program);
  EXPECT(mgt_register("scale$all", NULL, NULL) == MGT_OK);
  EXPECT(mgt_open(argv[1], "host", &program) == MGT_UNSUPPORTED);
  printf("functions are called\n");
  return 0;
}
