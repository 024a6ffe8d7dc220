/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Replays a bundle three times, with 0, 1, 2, ... in its arrays of f32, and
 * prints the first number of each output. Usage: replay BUNDLE [TARGET]
 *
 *   cc replay.c $(pkg-config --cflags --libs mgpu) -o replay */
#include <mgt.h>
#include <stdio.h>
#include <string.h>

#define TRY(call)                                                              \
  if ((call) != MGT_OK)                                                        \
  return fprintf(stderr, "%s\n", mgt_error()), 1

int main(int argc, char **argv) {
  mgt_program *program;
  mgt_argument about;
  size_t bytes;
  void *data;
  TRY(mgt_open(argv[1], argc > 2 ? argv[2] : "host", &program));
  size_t count = mgt_num_arguments(program);
  for (size_t k = 0; k < count; ++k) {
    TRY(mgt_get_argument(program, k, &about));
    TRY(mgt_memory(program, about.name, &data, &bytes));
    for (size_t i = 0; strcmp(about.type, "f32") == 0 && i < bytes / 4; ++i)
      ((float *)data)[i] = (float)i;
  }
  TRY(mgt_load(program));
  for (int replay = 0; replay < 3; ++replay)
    TRY(mgt_replay(program));
  TRY(mgt_fetch(program));
  for (size_t k = 0; k < count; ++k) {
    TRY(mgt_get_argument(program, k, &about));
    TRY(mgt_memory(program, about.name, &data, &bytes));
    if (strcmp(about.role, "output") == 0)
      printf("%s[0] = %g\n", about.name, *(float *)data);
  }
  mgt_close(program);
}
