// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_PROGRAMBUILDER_H
#define MGPU_PLANNER_RECORD_PROGRAMBUILDER_H

// Builds a Program by calls, for callers without MLIR. The caller declares
// buffers, and in program order launches, copies, collectives and at most one
// counted loop, each with what it reads and writes. There are no streams and no
// edges to declare: the Recorder finds what each call must follow.
//
//   ProgramBuilder builder("main", 2);
//   MGPU_TRY_ASSIGN(BuiltBuffer x, builder.addBuffer({.name = "x", ...}));
//   MGPU_TRY(builder.copy(builder.whole(a), builder.whole(x)));
//   MGPU_TRY_ASSIGN(const Program *program, builder.program());
//
// A call that fails leaves the builder as it was. Inside a loop, calls are
// judged when the loop ends; a loop that fails is dropped whole.

#include "planner/record/Recorder.h"

#include <memory>
#include <set>

namespace mgpu::planner {

/// The number of a buffer of the builder. It is no BufferId of the program.
struct BuiltBuffer {
  uint32_t value = 0;
};
struct BuiltKernel {
  uint32_t value = 0;
};

enum class BuiltKind : uint8_t {
  Argument,  ///< the caller's, on the host
  Result,    ///< made by the program, on the host
  Temporary, ///< on a device or the host, within a replay; on a device within
             ///< a trip where it is declared inside a loop
  Resident,  ///< on a device, across replays; 0 in the beginning
  Constant,  ///< on the host, with contents
  External,  ///< the caller's, on a device
};

struct BuiltBufferSpec {
  std::string name;
  BuiltKind kind = BuiltKind::Temporary;
  DeviceId device = DeviceId::host();
  ElementType elementType = ElementType::F32;
  std::vector<int64_t> shape = {};
  std::optional<ArgumentRole> role = std::nullopt; ///< an Argument's role
  std::vector<std::byte> contents = {};            ///< a Constant's bytes
};

/// A part of a buffer; offset and strides count its elements.
struct BuiltView {
  BuiltBuffer buffer;
  int64_t offset = 0;
  std::vector<int64_t> sizes = {}, strides = {};
};

/// The bits of a number, zero-extended.
struct BuiltScalar {
  ElementType type = ElementType::I64;
  uint64_t bits = 0;
};

/// One argument of a launch: a number, or the address of a view's first element
/// and what the kernel does with the view.
struct BuiltArgument {
  std::variant<BuiltView, BuiltScalar> value;
  bool reads = false, writes = false;
  /// Else it only says what the kernel touches through another argument.
  bool isPassed = true;
  /// No more bytes of the view are touched, as of a table in which it looks
  /// something up.
  uint64_t mostBytes = UINT64_MAX;
};

struct BuiltLaunch {
  BuiltKernel kernel;
  DeviceId device;
  Dim3 grid = {};
  std::vector<BuiltArgument> arguments = {};
  std::string name = {}; ///< empty: the kernel's
  double flops = 0;
  std::optional<double> durationUs = std::nullopt; ///< DagNode::durationUs
};

/// All members of one collective, by rank. For a broadcast `receive` counts,
/// for SendRecv what rank 0 sends and rank 1 receives.
struct BuiltCollective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  ReductionKind reduction = ReductionKind::Sum;
  int64_t splitAxis = 0, concatAxis = 0; ///< the same but for all_to_all
  int64_t root = 0;                      ///< broadcast
  std::vector<RankPair> pairs = {};      ///< permute
  std::vector<BuiltView> send = {}, receive = {};
};

class BuilderRecording;

class ProgramBuilder {
public:
  ProgramBuilder(std::string name, uint32_t numDevices);
  ~ProgramBuilder();

  /// Where later calls stand, as "step.py:12", for messages and reports.
  void setPlace(std::string place) { current.text = std::move(place); }
  /// Later calls compute `part` of a pipeline, for reports; nullopt: none.
  void setPart(std::optional<PipelinePart> part) { current.part = part; }

  Result<BuiltBuffer> addBuffer(BuiltBufferSpec spec);
  /// The view of a whole buffer; Usage where there is none of that number.
  Result<BuiltView> whole(BuiltBuffer buffer) const;
  /// `kernel` has a name, a block, and a CudaFile without parameters, which its
  /// launches give. The name gets a number where another kernel has it.
  Result<BuiltKernel> addKernel(KernelSpec kernel);

  Result<void> launch(BuiltLaunch launch);
  Result<void> copy(BuiltView destination, BuiltView source,
                    std::string name = "copy");
  /// `element` has the bytes of one element.
  Result<void> fill(BuiltView view, std::vector<std::byte> element);
  Result<void> collective(BuiltCollective collective);
  /// Calls until endLoop() run `trips` times. The result is the loop's value,
  /// first + trip * step, a number that launches may read.
  Result<BuiltBuffer> beginLoop(uint64_t trips, int64_t first = 0,
                                int64_t step = 1);
  Result<void> endLoop();
  /// Forgets the loop that is open, with all calls in it.
  Result<void> dropLoop();

  /// The program built so far, which passes Program::check(); valid until the
  /// next call. Usage inside a loop.
  Result<const Program *> program();

private:
  friend class BuilderRecording;
  struct Copy {
    BuiltView destination, source;
    std::string name;
  };
  struct Fill {
    BuiltView view;
    std::vector<std::byte> element;
  };
  struct Loop;
  struct Where {
    std::string text;
    std::optional<PipelinePart> part = std::nullopt;
    bool operator<(const Where &other) const;
  };
  struct Call {
    Where place;
    std::variant<BuiltBuffer, BuiltLaunch, Copy, Fill, BuiltCollective,
                 std::shared_ptr<Loop>>
        what; ///< a BuiltBuffer is declared
  };
  struct Loop {
    uint64_t trips = 0;
    int64_t first = 0, step = 1;
    BuiltBuffer value;
    Where place;
    std::vector<Call> body;
  };
  struct Declared {
    BuiltBufferSpec spec;
    uint64_t bytes = 0;
    enum class State { Plain, LoopValue, OldLoopValue } state = State::Plain;
  };

  tl::unexpected<Error> refuse(std::string text,
                               ErrorKind kind = ErrorKind::Usage) const;
  Result<void> checkView(const BuiltView &view) const;
  Result<void> checkLaunch(const BuiltLaunch &launch) const;
  Result<void> takeParameters(const BuiltLaunch &launch);
  Result<void> declare(Call buffer);
  Result<std::shared_ptr<Loop>> closeLoop();
  static std::set<uint32_t> usesOf(const std::vector<Call> &calls);
  static std::vector<Call> takeBuffers(Loop &loop,
                                       const std::set<uint32_t> &used);
  Result<void> addAll(std::vector<Call> buffers);
  Result<void> add(Call call);
  Result<BuilderRecording *> live();

  std::string name;
  Where current;
  uint32_t numDevices;
  std::vector<Declared> buffers;   ///< by BuiltBuffer
  std::vector<KernelSpec> kernels; ///< by BuiltKernel
  std::vector<bool> hasParameters; ///< by kernel: a launch has given them
  std::vector<Call> calls;         ///< all that were accepted
  std::shared_ptr<Loop> open;      ///< between beginLoop() and endLoop()
  bool hasLoop = false;
  std::unique_ptr<BuilderRecording> recording; ///< null: to be made anew
  std::optional<Program> made;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_PROGRAMBUILDER_H
