// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_RANDOMPROGRAM_H
#define MGPU_TESTS_CONFORMANCE_RANDOMPROGRAM_H

// Random mgpu programs. A program is a list of Ops, which Machine runs one
// after the other in plain C++ and printProgram() writes as MLIR: two readings
// of the same list that share no code with the compiler or the runtime.
// All values are small whole numbers, so every type holds them exactly and no
// order of summation changes a bit.

#include "support/Types.h"
#include "tests/conformance/Execute.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mgpu::conformance {

struct Root {
  int device = -1; ///< -1: the host
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  bool isArgument = false;
  std::string role; ///< `mgpu.role` of an argument, or none
  bool isAlive = true;
};

/// A box of a root: offsets, sizes and steps per dimension.
struct View {
  int root = -1;
  std::vector<int64_t> offsets, sizes, steps;
  bool isWholeRoot = false;    ///< printed as the root itself
  bool hasDynamicType = false; ///< its type leaves the offset open

  int64_t numElements() const;
};

enum class KernelTemplate {
  Fill,    ///< d = (3i + 2j + s) mod 5 - 2
  Axpy,    ///< d = clamp(s a + b)
  Stencil, ///< d = clamp(a + right neighbour)
  Reverse, ///< d = a, last dimension backwards
  RowSum,  ///< d = clamp(sum of a's row - a)
  Evens,   ///< d's even columns = a's first half
  Guarded, ///< where i + j < s: d = clamp(d + a)
};

struct Op {
  enum Kind {
    Alloc,
    Free,
    Copy,       ///< to[0] = from[0]
    Scatter,    ///< to[...] = parts of from[0]
    Gather,     ///< parts of to[0] = from[...]
    Replicate,  ///< to[...] = from[0]
    Launch,     ///< to[0] from from[...]
    Collective, ///< by rank: to[r] (recv), from[r] (send)
    SendRecv,   ///< to[0] = from[0]
    StreamWait, ///< streams[0] waits for the others
    SyncStream,
    SyncDevice,
  };
  explicit Op(Kind kind) : kind(kind) {}

  Kind kind;
  std::vector<View> to, from;
  std::vector<int> roots;   ///< Alloc, Free
  std::vector<int> streams; ///< one per part, -1: none; or empty
  bool isUneven = false;    ///< Scatter
  int axis = 0;             ///< all_to_all: the axis that is cut
  int concatAxis = 0;       ///< all_to_all
  KernelTemplate kernel = KernelTemplate::Fill;
  int64_t scalar = 0;
  int device = -1; ///< SyncDevice
  CollectiveKind collective = CollectiveKind::AllReduce;
  ReductionKind reduction = ReductionKind::Sum;
  int communicator = 0, root = 0;
  std::vector<std::pair<int, int>> pairs; ///< permute: source, target
  std::vector<int> callOrder;             ///< the order in which the ranks call
  int repeat = 1;                         ///< in a loop when above 1
  bool addsTrip = false; ///< the scalar grows by the number of the trip
};

struct RandomProgram {
  int numDevices = 1;
  std::vector<Root> roots;
  std::vector<int> streamDevices;              ///< by stream
  std::vector<std::vector<int>> communicators; ///< device of each rank
  std::vector<Op> ops;
  struct Loop {
    size_t begin = 0, end = 0; ///< range of `ops`
    int trips = 0;
  };
  std::optional<Loop> loop;
  std::vector<std::vector<double>> initial; ///< arguments' values, by root
  std::vector<std::vector<double>> final;   ///< all values after the run
};

/// The same program for the same seed, on every machine.
RandomProgram makeRandomProgram(uint64_t seed);

/// Puts some ops in one loop and runs all again. False, and the program is of
/// no use, if nothing can be put there or values outgrow their types.
bool addRandomLoop(RandomProgram &program, uint64_t seed);

std::string printProgram(const RandomProgram &program);
std::string argumentName(int root);

/// The reference: values of every root, run op by op.
class Machine {
public:
  explicit Machine(const RandomProgram &program) : program(program) {}
  std::vector<std::vector<double>> memory; ///< by root

  /// False, and no effect, if a value would leave the exact range of its type.
  bool run(const Op &op);

private:
  bool runOnce(const Op &op);
  std::vector<double> read(const View &view) const;
  bool write(const View &view, const std::vector<double> &values);
  bool launch(const Op &op);
  // MachineCollectives.cpp
  bool collect(const Op &op);
  std::optional<std::vector<double>> reduced(const Op &op) const;

  const RandomProgram &program;
};

/// Largest whole number up to which all are exact.
double exactLimit(ElementType type);

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_RANDOMPROGRAM_H
