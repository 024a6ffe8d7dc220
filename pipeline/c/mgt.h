/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef MGPU_PIPELINE_C_MGT_H
#define MGPU_PIPELINE_C_MGT_H

/* Replays bundles (docs/bundles.md) from C:
 *
 *   mgt_program *program;
 *   if (mgt_open("mlp.mgpu", "host", &program) != MGT_OK)
 *     fprintf(stderr, "%s\n", mgt_error());
 *   mgt_write(program, "w1", weights, sizeof weights);
 *   mgt_load(program);
 *   for (;;) {
 *     mgt_write(program, "x", x, sizeof x);
 *     mgt_replay(program);
 *     mgt_read(program, "y", y, sizeof y);
 *   }
 *
 * A program is used by one thread at a time; different programs by any. A call
 * that fails changes nothing. Kernels are native code: open a bundle only if
 * you would run a program from the same source. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes where a program compiled against an older header would break. */
#define MGT_VERSION 1
int mgt_version(void); /* MGT_VERSION of the library */

/* As the exit codes of mgpu-tune. */
typedef enum mgt_status {
  MGT_OK = 0,
  MGT_INVALID = 1,     /* the bundle or data is wrong */
  MGT_USAGE = 2,       /* the call is wrong, or the file is not there */
  MGT_ABSENT = 3,      /* no such device, no kernels for it, no memory */
  MGT_INTERNAL = 4,    /* a fault of mgpu */
  MGT_UNSUPPORTED = 5, /* a newer bundle, a feature this version lacks */
} mgt_status;

/* The sentence of this thread's last call that failed; "" before. Valid until
 * the next call of this thread. */
const char *mgt_error(void);

typedef struct mgt_program mgt_program;

/* Opens a bundle on `target`:
 *   "host", "host:N"   this machine; NULL is "host"
 *   "cuda:K/N"         NVIDIA GPU K as N devices; "cuda:K" as one
 *   "cuda:K,L,..."     several GPUs, a device each; "cuda" as many as it takes
 * A GPU takes the bundle's cubins for its architecture (MGT_ABSENT where it
 * has none); NVRTC is needed for bundles of older versions alone. The driver
 * and NCCL are looked for here; nothing of CUDA is linked. The GPU's primary
 * context is used, and the caller's current one, streams and environment stay
 * as they are.
 *
 * Several GPUs are driven by a thread of the library's for each, with a rank
 * of NCCL; all meet before each launch, as one may block until the others are
 * launched. NCCL_GRAPH_MIXING_SUPPORT must be 0 in the environment before the
 * process starts. Programs that share two GPUs are replayed one after the
 * other, never at once, and no call of NCCL's of the caller's own runs on these
 * GPUs beside a replay. */
mgt_status mgt_open(const char *path, const char *target,
                    mgt_program **program);

/* What else mgt_open_with() is told; what is zero is as mgt_open() has it. A
 * newer header may have more at the end, so a program that sets `size` and
 * clears the rest works with older and newer libraries; one that asks an older
 * library for what it lacks is told so (MGT_UNSUPPORTED). */
typedef struct mgt_options {
  size_t size; /* sizeof(mgt_options) */
  /* Of NCCL on several GPUs, as mgpu-tune's --nccl: "overlap" (communicators
   * that share at most one rank run at once), "windows" (arenas in symmetric
   * memory), "min-ctas=N", "max-ctas=N", "ctas=default|efficiency|zero", with
   * commas between. Read by the call. MGT_USAGE on other targets. */
  const char *nccl;
} mgt_options;
/* NULL `options` is mgt_open(). */
mgt_status mgt_open_with(const char *path, const char *target,
                         const mgt_options *options, mgt_program **program);
/* Takes NULL as well. */
void mgt_close(mgt_program *program);

/* An argument or result, valid as long as the program is open. */
typedef struct mgt_argument {
  const char *name;
  const char *role;     /* "input", "output", "inout", "resident", "dynamic",
                           "specialised" */
  const char *type;     /* of an element: "f32", "bf16", "i64", "index", ... */
  size_t rank;          /* 0 for a scalar */
  const int64_t *shape; /* rank sizes, row-major */
  size_t bytes;         /* 0 for a specialised scalar, which is fixed */
  const char *value;    /* of a specialised scalar; else "" */
  int is_result;
} mgt_argument;

/* Arguments first, in the order of the function, then results. */
size_t mgt_num_arguments(const mgt_program *program);
mgt_status mgt_get_argument(const mgt_program *program, size_t index,
                            mgt_argument *argument);

/* Copies all bytes of an argument in, or of an argument or result out. A
 * resident argument is taken over by mgt_load(), others by mgt_replay(). */
mgt_status mgt_write(mgt_program *program, const char *name, const void *data,
                     size_t bytes);
mgt_status mgt_read(mgt_program *program, const char *name, void *data,
                    size_t bytes);
/* The argument's own memory, to fill or read in place between calls; as long
 * as the program is open. It counts as written. */
mgt_status mgt_memory(mgt_program *program, const char *name, void **data,
                      size_t *bytes);

/* From here on `data` is the argument's or result's memory, of as many bytes;
 * it stays the caller's, who keeps it until the program is closed or the
 * argument is bound again; of a program that was lost, for good. On a GPU it
 * is pinned (cudaHostAlloc, cudaHostRegister), on several for all of them
 * (cudaHostRegisterPortable). It counts as written. Nothing is copied by it;
 * not for every replay, as graphs are changed or built anew, on several GPUs
 * always anew. A call that fails otherwise than with MGT_USAGE may leave the
 * program lost. */
mgt_status mgt_bind(mgt_program *program, const char *name, void *data,
                    size_t bytes);

/* Uploads what is resident. Once before the replays, and again where resident
 * arguments are to start anew. Usage error while an argument that is read has
 * not been written. */
mgt_status mgt_load(mgt_program *program);
/* One run, done when it returns; on the host it allocates nothing. A GPU that
 * does not end within two minutes, or whose context CUDA loses, is an error
 * that names the GPU and the collective; of several GPUs the others then give
 * up, within seconds. The program is lost: every later load, replay and fetch
 * says so, and what a GPU may still be writing is not freed, not by
 * mgt_close() either. Start the process again to use the GPU. */
mgt_status mgt_replay(mgt_program *program);
/* Brings back what is resident and was written. */
mgt_status mgt_fetch(mgt_program *program);

#ifdef __cplusplus
}
#endif

#endif /* MGPU_PIPELINE_C_MGT_H */
