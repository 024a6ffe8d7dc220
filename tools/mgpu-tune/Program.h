// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_PROGRAM_H
#define MGPU_TOOLS_MGPU_TUNE_PROGRAM_H

// A file the user named, as a DAG: an .mlir program through the compiler half,
// or an mgpu-dag/2 file.

#include "planner/plan/Plan.h"
#include "planner/schedule/transform/Transform.h"
#include "tools/mgpu-tune/Options.h"

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

struct Program {
  planner::Dag dag;
  std::vector<Binding> bindings;
  std::vector<Message> messages;
  uint32_t numRaces = 0;
};

/// The argument (or, with `results`, result) a user means by the name or number
/// `key` of `option`.
Result<const Binding *> findBinding(const Program &program,
                                    const std::string &key, const char *option,
                                    bool results);

/// Whether a file can be put at `path`, before the work whose result it is to
/// hold: Usage if there is no such folder, or it takes no file.
Result<void> checkOutputPath(const std::string &path);

/// Usage where `path` is no file that can be read.
Result<void> checkReadable(const std::string &path);

/// Loads options.file and finds every --arg in it. The program's own
/// diagnostics go to stderr with their source lines as they are found, and into
/// `messages` when it is not null.
Result<Program> loadProgram(const Options &options, bool racesAreErrors,
                            std::vector<Message> *messages = nullptr);

/// Compiles every kernel for the host target, on all cores.
Result<std::vector<std::vector<std::byte>>>
compileKernels(const planner::Dag &dag);

/// A kernel as CUDA C++, and what a launcher must know of it.
struct CudaText {
  std::string name, source, reason;
  Dim3 block;
  bool reshapable = false;
  uint32_t dynamicSharedBytes = 0;
};

/// Every kernel of the DAG, in its order; an error names the operation that
/// cannot be emitted.
Result<std::vector<CudaText>> emitCudaKernels(const planner::Dag &dag);

/// What --transforms names: all for "auto", none for "none".
Result<std::vector<planner::TransformKind>>
parseTransforms(const std::string &text);

/// Applies transforms to the program; gives their names back, as a plan keeps
/// them.
Result<std::vector<std::string>>
transformProgram(Program &program,
                 const std::vector<planner::TransformKind> &kinds);

/// The plan of options.scheduler for the host, verified. Applies --transforms
/// first, "auto" being none here.
Result<planner::Plan> makePlan(Program &program, const Options &options);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_PROGRAM_H
