/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * In the place of NVTX's library: counts the ranges by name. */
#include <pthread.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char names[64][64];
static int counts[64], isOpen;

int nvtxRangePushA(const char *name) {
  int k = 0;
  pthread_mutex_lock(&mutex);
  while (k < 63 && counts[k] && strcmp(names[k], name) != 0)
    ++k;
  strncpy(names[k], name, 63);
  ++counts[k];
  ++isOpen;
  pthread_mutex_unlock(&mutex);
  return 0;
}

int nvtxRangePop(void) {
  pthread_mutex_lock(&mutex);
  --isOpen;
  pthread_mutex_unlock(&mutex);
  return 0;
}

int doubleOpen(void) { return isOpen; }

int doubleCount(const char *name) {
  for (int k = 0; k < 64; ++k)
    if (counts[k] && strcmp(names[k], name) == 0)
      return counts[k];
  return 0;
}
