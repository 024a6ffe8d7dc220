/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef MGPU_PIPELINE_C_MGT_H
#define MGPU_PIPELINE_C_MGT_H

/* Replays bundles (docs/bundles.md) from C, and builds programs (below):
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
 * A program is used by one thread at a time, but that any may ask for its
 * counters and swap it; different programs by any. A call that fails changes
 * nothing, unless it loses the program (MGT_LOST). Kernels are native code:
 * open a bundle only if you would run a program from the same source.
 *
 * A child of fork() has none of the threads and GPUs of the programs that its
 * parent opened: it opens its own. Calls that run those, or are about their
 * memory or arguments, are MGT_USAGE there, and mgt_close() frees nothing. */

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
  /* An earlier call lost the program: a GPU or a process failed or was late.
   * That call says why; all later ones on the program that use its target say
   * this. Close it. A step on the host that is late itself says so. */
  MGT_LOST = 6,
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

/* The processes that share the devices of a host target, or GPUs, each a rank
 * with some of them (docs/distributed.md). Set `size` to sizeof, and clear the
 * rest. */
typedef struct mgt_ranks {
  size_t size; /* sizeof(mgt_ranks) */
  /* How they meet: "openmpi", "mpich", "tcp", or NULL for what the environment
   * says, as mpirun, srun or torchrun set it. */
  const char *how;
  /* Of "openmpi" and "mpich": a pointer to the MPI_Comm of all ranks, which the
   * library duplicates. NULL is MPI_COMM_WORLD; where MPI has not been started,
   * the library starts it, and ends it in mgt_close(), so that the process
   * opens one such program in its life. A process that starts MPI itself asks
   * for MPI_THREAD_SERIALIZED, makes no MPI calls beside a call of this
   * library, and has one such program open at a time. */
  const void *communicator;
  /* Of "tcp", where `count` is not 0: this rank, the number of ranks, and the
   * address and port at which rank 0 listens. Else RANK, WORLD_SIZE,
   * MASTER_ADDR and MASTER_PORT say it. An address other than loopback is
   * MGT_INVALID unless MGPU_SECRET_FILE names the secret of all ranks
   * (docs/distributed.md). */
  uint32_t rank, count;
  const char *address;
  uint32_t port;
  /* The longest wait for another rank, in milliseconds; 0 is two minutes. */
  uint32_t deadline_ms;
} mgt_ranks;

/* What a line of the log is about. */
typedef enum mgt_level {
  MGT_INFO = 0,    /* opened, loaded, closed */
  MGT_WARNING = 1, /* something that was asked for is not there */
  MGT_FAULT = 2,   /* a call failed, or the program was lost */
} mgt_level;

/* Says what follows an audit that finds a difference: it is counted and logged,
 * and then the program goes on; is lost, and says so (MGT_INTERNAL); or goes on
 * as its reference, whose results are taken for this replay as well. A stale
 * argument alone is no reason to fall back; a reference that differs from
 * itself is no judge, and the program goes on. */
typedef enum mgt_audit_action {
  MGT_AUDIT_GO_ON = 0,
  MGT_AUDIT_STOP = 1,
  MGT_AUDIT_FALL_BACK = 2,
} mgt_audit_action;

/* The value of an argument. */
typedef struct mgt_input {
  const char *name;
  const void *data;
  size_t bytes;
} mgt_input;

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
  /* Not NULL: the program runs in several processes, on "host", or on "cuda" or
   * "cuda:K,L", the GPUs of each machine, of which each rank drives as many as
   * it has devices, from threads as above. Each opens the same bundle and makes
   * the same calls of mgt_open_with(), mgt_load(), mgt_replay(), mgt_times(),
   * mgt_fetch() and mgt_close() in the same order. Rank 0 alone has what the
   * program writes on the host: to write such an argument elsewhere does
   * nothing, to read it is MGT_USAGE. There is no mgt_bind(). A rank that is
   * late, gone or different is named on all others, and the program is then
   * lost. */
  const mgt_ranks *ranks;
  /* How long mgt_load(), mgt_replay(), mgt_times() and mgt_fetch() may take, in
   * milliseconds; 0 is two minutes on GPUs, and no limit on the host. On the
   * host they then run on a thread of the library's, and one that is late is
   * MGT_LOST: the call returns, the program's threads end at their next node,
   * and its memory, the caller's too that it has (mgt_bind), is in use until
   * then, past mgt_close(). MGT_UNSUPPORTED with ranks on the host, whose waits
   * mgt_ranks has. */
  uint32_t deadline_ms;
  /* Of the host: threads that replay, the calling one among them (0: as many as
   * are worth it); the level that its kernels are for, "x86-64-v3" (NULL: the
   * best of the bundle); not 0: each thread, the one that calls here too, stays
   * on a CPU of its own. MGT_USAGE, with what there is, for more threads than
   * this process has CPUs, and for a level that the processor does not run. */
  uint32_t threads;
  const char *cpu;
  int pin;
  /* The most bytes that the program's buffers may take, "4GB": on the host all
   * together, else on each GPU. MGT_ABSENT, with what they take, before any is
   * allocated. NULL: no limit. */
  const char *memory;
  /* Other roles than the bundle's, "x=output,w*=resident": the last that
   * matches counts. MGT_UNSUPPORTED for one that would change what is copied
   * when, and so the plan. NULL: none. */
  const char *roles;
  /* Told in a line what happens to the program, but not of single replays, by
   * the thread that calls; `level` is an mgt_level. It makes no call on the
   * program. NULL: not told. */
  void (*log)(void *user, int level, const char *line);
  void *log_user;
  /* Not 0: each replay is a range of NVTX, and on the host each node, where the
   * library of NVTX is found; else the log says so. */
  int ranges;
  /* Not 0: each replay of so many is audited, as mgt_audit() does it; 1 is
   * every one. MGT_UNSUPPORTED with ranks, on the host with deadline_ms, and
   * on GPUs of a program whose state is not fetched, all that replays write of
   * it. */
  uint32_t audit;
  int audit_action; /* an mgt_audit_action */
  /* Arguments that mgt_write() or mgt_bind() gives anew before each replay,
   * "x,y": an audited replay before which one was not is a difference. Writing
   * in place (mgt_memory) is not seen. NULL: none. */
  const char *audit_fresh;
  /* Values of resident arguments, as weights that lie beside the bundle. On the
   * host the program reads them where they are, in this process alone, if the
   * program copies them whole and they begin at a multiple of 64 bytes, so
   * that processes which map one file share its pages; else they are copied.
   * They are not changed, and stay until the program is closed; of one that was
   * lost, for good. mgt_write() gives the program a value of its own. */
  size_t num_constants;
  const mgt_input *constants;
  /* A .pt2 file: arguments that it has a weight or constant for get the file's
   * values, but inputs do not. It is mapped, and what it stores as the argument
   * has it is read as `constants` are. A call that finds the file cut or
   * written since then is MGT_INVALID, and the program is lost; pages that are
   * gone read as zeros until then, for which the library handles SIGBUS. A file
   * that takes its name changes nothing. NULL: none. */
  const char *weights;
} mgt_options;
/* NULL `options` is mgt_open(). */
mgt_status mgt_open_with(const char *path, const char *target,
                         const mgt_options *options, mgt_program **program);
/* The same of a bundle's bytes, which may be freed when this returns. */
mgt_status mgt_open_memory(const void *data, size_t bytes, const char *target,
                           const mgt_options *options, mgt_program **program);
/* `program` goes on as `next`, which is loaded and has the same arguments and
 * results, and `next` becomes what `program` was: to be closed, or kept for the
 * way back. It comes between two calls of whoever uses `program`, from any
 * thread that has `next` for itself, and the caller sees no other results than
 * before: arguments and results keep their values and their memory (mgt_bind,
 * mgt_memory), but that what is resident is as `next` has it. `next` is not
 * replayed while both have memory in common. Resident arguments go with their
 * values and memory: mgt_read() gives the value that replays use. Counters stay
 * with `program`, and so do the strings and shapes of mgt_get_argument(); those
 * of mgt_get_facts() go. MGT_USAGE where the programs are not alike, where a
 * run of `next` was begun and not waited for, where the file of its weights was
 * written since it was opened, where memory of either is another program's too
 * (mgt_share), and where an argument of `next` that is not resident has memory
 * that was given or told (mgt_bind, mgt_memory) and `program`'s has not.
 * MGT_UNSUPPORTED of several processes. Both then go on as they were. */
mgt_status mgt_swap(mgt_program *program, mgt_program *next);
/* Takes NULL as well. It waits for a run that was begun (mgt_replay_begin), but
 * not past its deadline. Call mgt_wait() before: if it says MGT_LOST, the run
 * may still write to memory that the caller gave (mgt_bind), which then stays
 * for good. */
void mgt_close(mgt_program *program);
/* Which of how many processes this is; 0 of 1 where it is alone. */
mgt_status mgt_get_rank(const mgt_program *program, uint32_t *rank,
                        uint32_t *count);

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

/* The device that an argument lies on (MGT_EXTERNAL), or MGT_HOST. */
mgt_status mgt_argument_device(const mgt_program *program, size_t index,
                               int32_t *device);

/* What an open program is. Its strings are valid until a call of any thread
 * that swaps or closes it: copy them before. */
typedef struct mgt_facts {
  size_t size;         /* sizeof(mgt_facts) */
  const char *name;    /* of the program */
  const char *version; /* of the mgpu that made it */
  const char
      *hash; /* SHA-256 of all that a bundle holds, which two alike share;
                "" of a program that was built here */
  const char *source,
      *source_hash;   /* the file it was made of, its SHA-256; "" */
  const char *target; /* "host:4", as it was opened */
  const char *code; /* what its kernels are for: "x86-64-v3", "sm_90"; or "" */
  const char *device; /* "host: 4 virtual devices on 2 threads" */
  uint32_t num_devices;
  uint64_t num_nodes;
  /* Of its buffers: on the device that has most, on all devices, on the host.
   */
  uint64_t most_device_bytes, device_bytes, host_bytes;
  /* Lines that say what else decided a bundle, "role x=resident"; or "" */
  const char *options;
} mgt_facts;
/* `facts` has its size. What is predicted of its plan: mgt_get_figures(). */
mgt_status mgt_get_facts(mgt_program *program, mgt_facts *facts);

/* What a program did since it was opened. */
typedef struct mgt_counters {
  size_t size;              /* sizeof(mgt_counters) */
  uint64_t replays;         /* that ended, and those of mgt_replay_on() */
  uint64_t failures;        /* calls on it that failed */
  uint64_t deadline_misses; /* steps on the host that were late */
  /* Of mgt_replay(), where it was not audited, in microseconds; quantiles are
   * within 1.6 %. */
  double last_us, total_us, p50_us, p90_us, p99_us, p999_us, most_us;
  uint64_t audits, differences; /* replays audited, and those that differed */
} mgt_counters;
/* `counters` has its size. From any thread, until mgt_close() is called. */
mgt_status mgt_get_counters(const mgt_program *program, mgt_counters *counters);
/* The counters of all programs of this process that are open, as the text that
 * Prometheus reads. From any thread; valid until its next call of this. */
mgt_status mgt_metrics_text(const char **text);
/* Writes that text to a file, whole or not at all. */
mgt_status mgt_write_metrics(const char *path);

/* Copies all bytes of an argument in, or of an argument or result out, wherever
 * it lies. A resident argument is taken over by mgt_load(), after which writing
 * it is MGT_USAGE; others by mgt_replay(). */
mgt_status mgt_write(mgt_program *program, const char *name, const void *data,
                     size_t bytes);
mgt_status mgt_read(mgt_program *program, const char *name, void *data,
                    size_t bytes);
/* The argument's own memory, to fill or read in place between calls; as long
 * as the program is open. It counts as written. One on a GPU has the GPU's
 * address. */
mgt_status mgt_memory(mgt_program *program, const char *name, void **data,
                      size_t *bytes);

/* From here on `data` is the argument's or result's memory, of as many bytes;
 * it stays the caller's, who keeps it until the program is closed or the
 * argument is bound again; of a program that was lost, for good. An argument on
 * a device takes memory of that device: a GPU's (cudaMalloc, a torch tensor),
 * or on the host target any. It begins at a multiple of the bytes of an
 * element, else MGT_USAGE. Memory that the program writes shares no bytes with
 * another argument. On a GPU other memory is pinned (cudaHostAlloc,
 * cudaHostRegister), on several for all of them (cudaHostRegisterPortable). It
 * counts as written. Nothing is copied by it; not for every replay, as graphs
 * are changed or built anew, on several GPUs always anew. A call that fails
 * otherwise than with MGT_USAGE may leave the program lost. */
mgt_status mgt_bind(mgt_program *program, const char *name, void *data,
                    size_t bytes);

/* From here on `program`'s argument `name`, on a device, is the memory of
 * `of`'s argument `of_name`, of as many bytes on the same device: weights that
 * two programs read, a state that one writes and the other goes on with. It
 * counts as written. The memory lives until both programs are closed; the
 * programs are not replayed at once, as nothing orders them but the caller.
 * MGT_USAGE while a run of `of` was begun and not waited for. An argument that
 * was never written or bound takes no memory of its own before.
 */
mgt_status mgt_share(mgt_program *program, const char *name, mgt_program *of,
                     const char *of_name);

/* Uploads what is resident, which programs of this process on the host then
 * have in common where they only read it, of 64 KiB and more. Once before the
 * replays, and again where resident arguments are to start anew. Usage error
 * while an argument that is read has not been written. */
mgt_status mgt_load(mgt_program *program);
/* One run, done when it returns; on the host it allocates nothing. A GPU that
 * does not end within two minutes, or whose context CUDA loses, is an error
 * that names the GPU and the collective; of several GPUs the others then give
 * up, within seconds. The program is lost: every later load, replay and fetch
 * says so, and what a GPU may still be writing is not freed, not by
 * mgt_close() either. Start the process again to use the GPU. */
mgt_status mgt_replay(mgt_program *program);
/* One run that is compared, bit by bit, with a reference: the same program, one
 * node after the other, in other memory, from the same values. On the host some
 * nodes are held up, so that a missing order shows; on GPUs none is, and before
 * the run what is resident and written is fetched into its arguments' memory.
 * `difference` is set to "", or to the sentence that names the first node whose
 * output differs, valid until the program's next call;
 * mgt_options::audit_action says what then becomes of the program. MGT_USAGE
 * unless the program was opened with mgt_options::audit;
 * MGT_UNSUPPORTED once it has fallen back. */
mgt_status mgt_audit(mgt_program *program, const char **difference);
/* One run behind the work of `stream`; what the caller gives the stream later
 * follows the run. On one GPU it is queued, and the call returns at once:
 * `stream` is a cudaStream_t or CUstream of the GPU's primary context, which
 * the runtime API uses; NULL is the default stream. On several GPUs, where it
 * is one of any of them and NULL the default stream of the caller's context,
 * and of a program that is audited, is of several processes or has a rolled
 * loop whose number has less than 32 bits, it returns once the stream's work
 * and then the run have ended. On the host `stream` is NULL, and it is
 * mgt_replay_begin(), or mgt_replay() where that is MGT_UNSUPPORTED.
 *
 * Runs of one program follow each other, in whatever streams. A run reads
 * arguments and writes results when its turn comes, so their memory (mgt_bind,
 * mgt_memory) is left alone until the stream has passed it. Every other call
 * that runs the program or is about its memory first waits for its runs, and
 * says what became of them; mgt_get_facts(), mgt_plan_text() and others that
 * only tell do not. MGT_UNSUPPORTED while the stream is being captured
 * (mgt_capture_into). */
mgt_status mgt_replay_on(mgt_program *program, void *stream);
/* Makes a run a part of the graph that `stream`, a stream as of
 * mgt_replay_on(), is being captured into: a child graph behind what the stream
 * has captured, which what it captures later follows. Each launch of the
 * caller's graph is then a run, which nothing orders with other calls on the
 * program but the caller, and no counter counts. The graph has the addresses of
 * the program's memory: from here on mgt_bind(), mgt_share() and mgt_swap() are
 * MGT_USAGE, and the program is closed after the graph is gone. MGT_USAGE where
 * the stream is not captured; MGT_UNSUPPORTED on the host, on several GPUs, and
 * of a rolled loop with a number. */
mgt_status mgt_capture_into(mgt_program *program, void *stream);
/* Begins a run on a thread of the library's and returns; on several GPUs too.
 * mgt_wait() returns once it has ended, as mgt_replay() would have, and so does
 * every other call that runs the program or is about its memory, which says
 * what became of it; mgt_get_facts(), mgt_get_figures(), mgt_plan_text(),
 * mgt_explain() and mgt_configuration() do not wait. Until then the program's
 * arguments and results are left alone. The deadline counts from here: a run on
 * the host that took longer is MGT_LOST, though it may have ended by then.
 * mgt_wait() is MGT_OK where nothing was begun, and waits for what
 * mgt_replay_on() queued. MGT_UNSUPPORTED of a program that is audited or of
 * several processes. */
mgt_status mgt_replay_begin(mgt_program *program);
mgt_status mgt_wait(mgt_program *program);
/* Brings back what is resident and was written. */
mgt_status mgt_fetch(mgt_program *program);

/* The sentence of the last call on this program that failed; "" before. Valid
 * until its next call. */
const char *mgt_program_error(const mgt_program *program);
/* The plan that is replayed, as `mgpu-tune plan -o` writes it, and in words:
 * where and when each node is expected to run, and what it waits for. Valid
 * until the program's next call. */
mgt_status mgt_plan_text(mgt_program *program, const char **text);
mgt_status mgt_explain(mgt_program *program, const char **text);
/* What was chosen for it: "scheduler=list streams=4 threads=2 ...", then a line
 * for each kernel whose tunables are not at their first values. "" where
 * nothing was tuned, and for a bundle. Valid until the program's next call. */
mgt_status mgt_configuration(mgt_program *program, const char **text);

/* What is predicted of a plan, in microseconds, and where its arguments lie. */
typedef struct mgt_figures {
  size_t size; /* sizeof(mgt_figures) */
  double load_us, replay_us, fetch_us;
  double bound_us; /* no replay is shorter under the plan's model */
  uint64_t resident_arguments, resident_bytes; /* they stay on the devices */
  /* Copies in each replay of arguments that nothing writes; of resident ones
   * they would be made once. Microseconds are of the device where they take
   * longest. */
  uint64_t upload_arguments, upload_bytes;
  double upload_us;
} mgt_figures;
/* Of the plan that is replayed. `figures` has its size. */
mgt_status mgt_get_figures(mgt_program *program, mgt_figures *figures);

typedef struct mgt_node_time {
  const char *name;        /* of the node, as in the plan */
  const char *location;    /* where it was built; "" if that is not known */
  double start_us, end_us; /* from the beginning of the replay */
} mgt_node_time;
/* Replays once, slower than mgt_replay(), and says when each node ran, in plan
 * order. Valid until the program's next call. */
mgt_status mgt_times(mgt_program *program, const mgt_node_time **times,
                     size_t *count);

/* Custom calls of a program (docs/from-jax.md) that were bundled with
 * `--custom NAME=registered` are functions of this process, which the host
 * target calls as it runs kernels. */

/* A tensor without gaps, row-major. */
typedef struct mgt_tensor {
  const char *type; /* of an element: "f32", "bf16", "i64", ... Integers have no
                       sign; those of 1, 2 and 4 bits take a byte */
  size_t rank;
  const int64_t *shape; /* rank sizes */
  void *data;
  size_t bytes;
} mgt_tensor;

/* One call. A newer library may have more at the end. */
typedef struct mgt_call {
  size_t size;
  const char *name;
  /* The call's `backend_config`: a string as it is, anything else as MLIR
   * prints it. A 0 follows its last byte. */
  const char *config;
  size_t config_bytes;
  size_t num_operands, num_results;
  const mgt_tensor *operands; /* not to be written */
  const mgt_tensor *results;  /* to be written, all bytes; one that takes an
                                 operand's place holds that operand before */
  /* For a sentence, ended by a 0, on what went wrong. */
  char *message;
  size_t message_bytes;
} mgt_call;

/* 0: it is done. Else the replay fails with MGT_INVALID and the message, and
 * nothing that follows is run. It is called in each replay, once for each call
 * of the program and device, by any thread and by several at once, for the
 * reference of an audit as well. It makes no call on the program, and its
 * results depend on its operands and configuration alone. */
typedef int (*mgt_function)(void *user, const mgt_call *call);

/* From here on calls of `name` are this function, in programs that are opened;
 * NULL takes it away. Without a function such a program does not open
 * (MGT_UNSUPPORTED). From any thread. */
mgt_status mgt_register(const char *name, mgt_function function, void *user);

/* Builds a program, without a file (docs/builder.md). Buffers and kernels are
 * declared, then launches, copies and collectives follow each other in program
 * order, each with the views that it reads and writes. The order follows from
 * those; there are no streams and no edges to declare.
 *
 * A call that fails leaves the builder as it was. Inside a loop calls are
 * judged when the loop ends. A builder is used by one thread at a time. */
typedef struct mgt_builder mgt_builder;
typedef uint32_t mgt_buffer; /* a number that is the builder's */
typedef uint32_t mgt_kernel;

/* `name` is the program's; NULL is "main". */
mgt_status mgt_builder_new(const char *name, uint32_t devices,
                           mgt_builder **builder);
void mgt_builder_free(mgt_builder *builder); /* takes NULL as well */
/* As mgt_program_error(). */
const char *mgt_builder_error(const mgt_builder *builder);
/* Where the calls that follow stand, as "step.py:12": messages, plans and times
 * name it. NULL is nowhere. */
mgt_status mgt_builder_place(mgt_builder *builder, const char *place);
/* The calls that follow compute `part` of a microbatch at a stage of a
 * pipeline: plans and reports are coloured by it. */
typedef enum mgt_part {
  MGT_NO_PART = -1,
  MGT_FORWARD = 0,
  MGT_BACKWARD = 1,
  MGT_WEIGHTS = 2, /* of backward work, what no other stage waits for */
} mgt_part;
mgt_status mgt_builder_part(mgt_builder *builder, int part, uint32_t microbatch,
                            uint32_t stage);

/* Structs with a `size` grow at their end; what is zero there has its default.
 * Set `size` to sizeof, and clear the rest. */

typedef enum mgt_kind {
  MGT_ARGUMENT = 0,  /* of the caller, on the host */
  MGT_RESULT = 1,    /* made by the program, on the host */
  MGT_TEMPORARY = 2, /* lives within a replay, of a device within a trip
                        where it is declared inside a loop */
  MGT_RESIDENT = 3,  /* of a device, lives across replays, 0 at first */
  MGT_CONSTANT = 4,  /* on the host, with contents */
  MGT_EXTERNAL = 5,  /* of the caller, on a device: kernels work on it where it
                        is (mgt_bind, mgt_share) */
} mgt_kind;
#define MGT_HOST (-1)

typedef struct mgt_buffer_spec {
  size_t size;
  const char *name;
  int kind;             /* an mgt_kind */
  int32_t device;       /* 0 ..., or MGT_HOST */
  const char *type;     /* "f32", "bf16", "i64", ... NULL is "f32" */
  size_t rank;          /* 0 is a single number */
  const int64_t *shape; /* row-major */
  const char *role;     /* of an argument: "input", "output", "inout",
                           "resident", "dynamic"; NULL: from its uses */
  const void *contents; /* of a constant: all its bytes */
} mgt_buffer_spec;
mgt_status mgt_builder_buffer(mgt_builder *builder, const mgt_buffer_spec *spec,
                              mgt_buffer *buffer);

/* A part of a buffer; all figures count elements. Where `sizes` is NULL it is
 * the whole buffer; where `strides` is NULL they are those of the buffer's own
 * shape, or, with another rank than it, those of `sizes` without gaps. */
typedef struct mgt_view {
  mgt_buffer buffer;
  int64_t offset;
  size_t rank;
  const int64_t *sizes, *strides;
} mgt_view;

/* A macro, and the values it may take; the first is the default. */
typedef struct mgt_tunable {
  const char *name;
  size_t num_values;
  const uint32_t *values;
} mgt_tunable;
typedef struct mgt_cubin {
  const char *arch; /* "sm_90" */
  const void *data; /* a cubin, or PTX ended by 0 */
  size_t bytes;
} mgt_cubin;

/* A kernel has one form or more: CUDA C++ whose entry is declared extern "C"
 * __global__, cubins, and C++ for the host, a function that computes one block
 * and takes an mgpu_block first (docs/builder.md). */
typedef struct mgt_kernel_spec {
  size_t size;
  const char *name;       /* NULL: `entry` */
  const char *entry;      /* of CUDA C++, of cubins, and of the host's C++ */
  const char *host_entry; /* of the host's C++, where it has another */
  const char *cuda;       /* a text, or NULL */
  const char *host;       /* a text, or NULL */
  uint32_t block[3];      /* 0 is 1 */
  uint32_t dynamic_shared_bytes;
  size_t num_tunables;
  const mgt_tunable *tunables;
  size_t num_cubins;
  const mgt_cubin *cubins;
  /* What the tunables keep to, beside their first values, which keep them too:
   * "TILE * STAGES <= 48", "ITEMS == 2 * UNROLL", "ITEMS % UNROLL == 0". */
  size_t num_rules;
  const char *const *rules;
} mgt_kernel_spec;
mgt_status mgt_builder_kernel(mgt_builder *builder, const mgt_kernel_spec *spec,
                              mgt_kernel *kernel);

/* What a kernel does with an argument. */
enum {
  MGT_READ = 1,
  MGT_WRITE = 2,
  /* The view is touched, and no argument of the kernel: it reaches it through
   * another one. */
  MGT_NOT_PASSED = 4,
};
/* A view's address with what the kernel does there, or, where `type` is not
 * NULL, a number of that type: its bits, zero-extended. */
typedef struct mgt_arg {
  int access;
  mgt_view view;
  const char *type;
  uint64_t bits;
} mgt_arg;

typedef struct mgt_launch_spec {
  size_t size;
  mgt_kernel kernel;
  int32_t device;
  uint32_t grid[3]; /* blocks; 0 is 1 */
  size_t num_args;
  const mgt_arg *args;
  const char *name;    /* in plans and times; NULL: the kernel's */
  double flops;        /* what it costs, for the model, */
  double microseconds; /* or how long it takes; 0: by the model */
  /* For the model: no more bytes of each argument's view are touched, as of a
   * table in which a kernel looks rows up. NULL or 0: those of the view. */
  const uint64_t *most_bytes;
} mgt_launch_spec;
mgt_status mgt_builder_launch(mgt_builder *builder,
                              const mgt_launch_spec *spec);

/* Views of as many elements, of one type. */
mgt_status mgt_builder_copy(mgt_builder *builder, const mgt_view *destination,
                            const mgt_view *source);
/* The same, and its name in plans and times; NULL is "copy". */
mgt_status mgt_builder_copy_as(mgt_builder *builder,
                               const mgt_view *destination,
                               const mgt_view *source, const char *name);
/* `element` has the bytes of one element. */
mgt_status mgt_builder_fill(mgt_builder *builder, const mgt_view *view,
                            const void *element, size_t bytes);

typedef enum mgt_collective {
  MGT_ALL_REDUCE = 0,
  MGT_ALL_GATHER = 1,
  MGT_REDUCE_SCATTER = 2,
  MGT_ALL_TO_ALL = 3,
  MGT_PERMUTE = 4,
  MGT_BROADCAST = 5,
  MGT_SEND_RECV = 6, /* from member 0's `send` to member 1's `receive` */
} mgt_collective;
typedef enum mgt_reduction {
  MGT_SUM = 0,
  MGT_PROD = 1,
  MGT_MIN = 2,
  MGT_MAX = 3,
} mgt_reduction;
typedef struct mgt_collective_spec {
  size_t size;
  int kind;                /* an mgt_collective */
  int reduction;           /* an mgt_reduction */
  size_t num_members;      /* each on another device; rank k is number k */
  const mgt_view *send;    /* by rank; */
  const mgt_view *receive; /* NULL: in place, or what is NULL is the other */
  int64_t axis;            /* cut, and joined, along it */
  int64_t concat_axis;     /* all_to_all: joined along it */
  int64_t root;            /* broadcast */
  size_t num_pairs;        /* permute: source and target ranks */
  const uint32_t *pairs;   /* 2 * num_pairs */
} mgt_collective_spec;
mgt_status mgt_builder_collective(mgt_builder *builder,
                                  const mgt_collective_spec *spec);

/* What is called until the loop's end runs `trips` times in each replay, from
 * one graph. `value`, where it is not NULL, is the buffer of an i64 that is
 * first + trip * step: a launch reads it through a pointer. One loop a
 * program. */
mgt_status mgt_builder_begin_loop(mgt_builder *builder, uint64_t trips,
                                  int64_t first, int64_t step,
                                  mgt_buffer *value);
mgt_status mgt_builder_end_loop(mgt_builder *builder);
/* In its place: forgets the loop, with all calls in it. */
mgt_status mgt_builder_drop_loop(mgt_builder *builder);

/* Whether what was built so far is a program: it says what is wrong. */
mgt_status mgt_builder_check(mgt_builder *builder);

/* Runs each launch on the host, in memory of its own, and compares what the
 * kernel touches with what the launch says: where it differs there is a race
 * that no other check finds. Kernels need C++ for the host. */
mgt_status mgt_builder_probe(mgt_builder *builder);

typedef struct mgt_plan_options {
  size_t size;
  const char *scheduler;  /* "list" (NULL), "serial", "shuffled" */
  uint64_t seed;          /* of "shuffled" */
  uint32_t streams;       /* of each device; 0 is 4 */
  const char *transforms; /* as mgpu-tune's --transforms; NULL is none */
  uint32_t threads;       /* that replay on the host; 0: as many as useful */
  /* The target to plan for without opening: a machine that is not here,
   * "sim:dgx-h200", or one that is, "cuda:0"; NULL is the host. The search
   * takes `budget`, "2s" or a number of plans (NULL: 100 for one that is not
   * here, where all transforms are tried if none are named). */
  const char *machine;
  const char *budget;
  int no_tuned; /* mgt_builder_open takes the defaults, whatever was tuned */
  uint32_t deadline_ms; /* of mgt_builder_open: as that of mgt_options */
  /* Of mgt_builder_open: as that of mgt_options; NULL: this process is alone.
   * All processes build the same. Nothing that was tuned is used. */
  const mgt_ranks *ranks;
  const char *memory; /* most bytes of each device, "4GB"; NULL: its own */
  /* Of mgt_builder_open on the host: as those of mgt_options, which `threads`
   * above is too. With `ranks` there is neither. */
  const char *cpu;
  int pin;
} mgt_plan_options;
/* As mgt_plan_text() and mgt_explain(), without a target to run on; NULL
 * `options` are the defaults. Valid until the builder's next call. */
mgt_status mgt_builder_plan_text(mgt_builder *builder,
                                 const mgt_plan_options *options,
                                 const char **text);
mgt_status mgt_builder_explain(mgt_builder *builder,
                               const mgt_plan_options *options,
                               const char **text);
/* As mgt_get_figures(), of the plan that `options` ask for. */
mgt_status mgt_builder_figures(mgt_builder *builder,
                               const mgt_plan_options *options,
                               mgt_figures *figures);
/* Plans it, compiles its kernels and opens it: "host", "host:N", "cuda:K",
 * "cuda:K/N". For several GPUs save it and open the bundle. A configuration
 * tuned for it on this machine is used, unless `options` choose a schedule or
 * say no_tuned. The builder may go on, or be freed. */
mgt_status mgt_builder_open(mgt_builder *builder, const char *target,
                            const mgt_plan_options *options,
                            mgt_program **program);

typedef struct mgt_save_options {
  size_t size;
  const mgt_plan_options *plan; /* NULL: the defaults */
  const char *cpu;  /* "x86-64-v2,x86-64-v3"; "none"; NULL: v2, v3 and v4 where
                       every kernel has C++ for the host, else none */
  const char *arch; /* GPUs to have cubins for: "sm_80,sm_90"; NULL is none */
  uint32_t alternatives; /* as many more ways to build each kernel for the host,
                            for mgpu-tune tune to choose among */
} mgt_save_options;
/* Writes a bundle, whole or not at all. */
mgt_status mgt_builder_save(mgt_builder *builder, const char *path,
                            const mgt_save_options *options);

typedef struct mgt_tune_options {
  size_t size;
  const char *budget; /* "60s" (NULL), or a number of candidates; what earlier
                         calls spent on the same program counts */
  uint64_t seed;
  /* Those that are missing are made up: random numbers, zeros for integers. */
  size_t num_inputs;
  const mgt_input *inputs;
  /* Told now and then how it goes; not 0 ends the search, and what was found so
   * far is kept. NULL: not told. */
  int (*progress)(void *user, const char *line);
  void *user;
} mgt_tune_options;
typedef struct mgt_tuned {
  size_t size;
  double default_us, tuned_us; /* medians of their last meeting; 0: none */
  int is_default;              /* nothing beats it */
  int is_known;                /* an earlier call had found it */
} mgt_tuned;
/* Searches for the fastest plan, tunables and number of threads of the program
 * on a target, and keeps it in the database (MGPU_DB, else the user's), where
 * mgt_builder_open() finds it. `text`, where it is not NULL, gets what
 * mgpu-tune tune prints of the times; valid until the builder's next call.
 * Candidates run in processes that are forked from this one: on a GPU call it
 * before anything in the process uses CUDA. */
mgt_status mgt_builder_tune(mgt_builder *builder, const char *target,
                            const mgt_tune_options *options, mgt_tuned *tuned,
                            const char **text);

/* The version of the library, with the commit and what it was built with. */
const char *mgt_version_text(void);

#ifdef __cplusplus
}
#endif

#endif /* MGPU_PIPELINE_C_MGT_H */
