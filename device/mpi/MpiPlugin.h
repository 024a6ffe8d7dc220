/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef MGPU_DEVICE_MPI_MPIPLUGIN_H
#define MGPU_DEVICE_MPI_MPIPLUGIN_H

/* The little of MPI that is needed. Each MPI has an ABI of its own, so a
   plug-in is built against each that is there, and one is opened at run time.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MGPU_MPI_PLUGIN_VERSION 4
#define MGPU_MPI_MOST_BYTES ((size_t)1 << 30) /* of one message */

/* One call at a time, from any thread. Requests are freed by test(). */
struct MgpuMpi {
  uint32_t version;
  /* Makes a communicator of our own with the ranks of `communicator`, a pointer
     to an MPI_Comm. Null is MPI_COMM_WORLD, and starts MPI unless it runs. 0,
     or else a text is written to `why`. */
  int (*begin)(const void *communicator, char *why, size_t whyBytes);
  /* The name and version of MPI, cut to `bytes`. */
  void (*library)(char *text, size_t bytes);
  int (*rank)(void);
  int (*count)(void);
  /* A request, or null. The bytes stay where they are until it is done. */
  void *(*send)(int to, int tag, const void *bytes, size_t size);
  void *(*receive)(int from, int tag, void *bytes, size_t size);
  /* 1: done, of `size` bytes; 0: not yet; -1: failed. */
  int (*test)(void *request, size_t *size);
  /* What is received need not come any more; test() then says that it is done.
   */
  void (*cancel)(void *request);
  /* 1 where a message of any rank with this tag has come. */
  int (*probe)(int tag, int *from, size_t *size);
  /* Ends MPI where begin() started it. All ranks call it. */
  void (*end)(void);
};

typedef const struct MgpuMpi *(*MgpuMpiEntry)(void);
const struct MgpuMpi *mgpuMpi(void);

#ifdef __cplusplus
}
#endif

#endif /* MGPU_DEVICE_MPI_MPIPLUGIN_H */
