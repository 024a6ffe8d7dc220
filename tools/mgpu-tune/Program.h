// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_PROGRAM_H
#define MGPU_TOOLS_MGPU_TUNE_PROGRAM_H

// A file the user named, as a DAG: an .mlir program through the compiler half,
// a bundle, an mgpu-dag/2 file, or a recorded trace.

#include "capture/replay/Bundle.h"
#include "device/api/BlobCache.h"
#include "kernels/space/KernelSpace.h"
#include "planner/dag/Program.h"
#include "planner/plan/Plan.h"
#include "planner/schedule/transform/Transform.h"
#include "tools/mgpu-tune/Options.h"

#include <memory>
#include <optional>
#include <vector>

namespace mgpu::tune {

/// A diagnostic as printed, for --json.
struct Message {
  std::string severity, location, text;
};

/// An argument or result a user can bind.
struct Binding {
  std::string name;
  bool isResult = false;
  std::string role;
  ElementType elementType = ElementType::F32;
  std::vector<int64_t> shape;
  std::optional<planner::BufferId> buffer;
  bool needsValue = false; ///< something reads it before anything writes it
};

struct Program : planner::Program {
  std::vector<Binding> bindings; ///< arguments, then results
  std::vector<Message> messages;
  uint32_t numRaces = 0;
  std::vector<std::string> notFused; ///< as planner::ImportedProgram has it
  std::shared_ptr<capture::Bundle> bundle; ///< null if it is not from one
  double recordedUs = 0; ///< of a recorded trace: how long it took
  /// As Options has it, or what passedForms() says (ProductForms.h).
  std::string tensorCores;
  bool pdl = false;            ///< as Options has it
  uint64_t compileSeconds = 0; ///< as Options has it
};

/// The argument (or, with `results`, result) a user means by the name or number
/// `key` of `option`.
Result<const Binding *> findBinding(const Program &program,
                                    const std::string &key, const char *option,
                                    bool results);

/// Usage for a --seed of a plan that is not drawn by it.
Result<void> checkSeed(const Options &options);

/// Whether a file can be put at `path`, before the work whose result it is to
/// hold: Usage if there is no such folder, or it takes no file.
Result<void> checkOutputPath(const std::string &path);

/// Usage where `path` is no file that can be read.
Result<void> checkReadable(const std::string &path);

/// Loads options.file and finds every --arg in it. The program's own
/// diagnostics go to stderr with their source lines as they are found, and into
/// `messages` when it is not null. Without `kernelTexts` an .mlir program's
/// kernels have no source: for who compiles none of them.
Result<Program> loadProgram(const Options &options, bool racesAreErrors,
                            std::vector<Message> *messages = nullptr,
                            bool kernelTexts = true);

/// The ways to build each kernel for the host target, by KernelId.
Result<std::vector<planner::KernelSpace>>
hostKernelSpaces(const planner::Dag &dag);
/// One of them, for "native" or a CPU level. May be called from several
/// threads.
Result<std::vector<std::byte>>
buildHostKernel(const planner::Dag &dag, planner::KernelId kernel,
                const planner::KernelSpace &space,
                const planner::KernelConfig &config,
                const std::string &cpu = "native");
/// The same kernel in f64, with the size of its errors
/// (kernels/host/ErrorBounds.h).
Result<std::vector<std::byte>> buildErrorKernel(const planner::Dag &dag,
                                                planner::KernelId kernel);

/// The host's kernels of a program, by KernelId: those of its bundle, else
/// compiled, on all cores. `cpu` is a level ("x86-64-v3"); "" is the best of a
/// bundle that this processor runs, else this processor itself.
struct HostKernels {
  std::string cpu; ///< the level chosen, or "native"
  std::vector<std::vector<std::byte>> objects;
};
Result<HostKernels> hostKernels(const Program &program, const std::string &cpu);

/// Every kernel of the program as CUDA C++, in its order: those of its bundle,
/// else emitted; an error then names the operation that cannot be. `cache`,
/// which may be null, keeps them.
Result<std::vector<Result<kernels::CudaText>>>
eachCudaText(const Program &program, device::BlobCache *cache);
/// Where there is none that cannot be.
Result<std::vector<kernels::CudaText>> cudaTexts(const Program &program,
                                                 device::BlobCache *cache);

/// Applies transforms to the program; gives their names back, as a plan keeps
/// them.
Result<std::vector<std::string>>
transformProgram(Program &program,
                 const std::vector<planner::Transform> &transforms);

/// The plan of options.scheduler for the host, verified. Applies --transforms
/// first, "auto" being none here.
Result<planner::Plan> makePlan(Program &program, const Options &options);

/// The plan a program is run with where no file names one: its bundle's,
/// unless the options choose another, else makePlan().
Result<planner::Plan> planOf(Program &program, const Options &options);

/// A plan written by `plan -o`, proven. Makes the transforms it names first.
Result<planner::Plan> readPlan(const std::string &path, Program &program);

/// The plan of --plan, else planOf(). What it is of is the program as it
/// leaves it: kernels are compiled after.
Result<planner::Plan> planFor(Program &program, const Options &options);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_PROGRAM_H
