// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_PROGRAM_H
#define MGPU_PLANNER_DAG_PROGRAM_H

// A specialised program: its DAG, and what a user binds to it.

#include "planner/dag/Dag.h"

#include <optional>
#include <string>
#include <vector>

namespace mgpu::planner {

enum class ArgumentRole : uint8_t {
  Input,
  Output,
  InOut,
  Resident,
  Specialised,
  Dynamic
};
/// "input", "output", "inout", "resident", "specialised", "dynamic".
std::string_view toString(ArgumentRole role);

/// One argument or result of the entry function, as a user binds it.
struct ProgramArgument {
  std::string name; ///< `mgpu.name`, else the SSA name, else its number
  ArgumentRole role = ArgumentRole::Input;
  ElementType elementType = ElementType::F32;
  std::vector<int64_t> shape;     ///< empty for a scalar
  std::optional<BufferId> buffer; ///< none for a specialised scalar
  std::string value; ///< the specialised scalar's value, as the user wrote it
  bool operator==(const ProgramArgument &) const = default;
};

/// A value that a program expects: `found` is compared with `expected`, of the
/// same type and shape, once both are fetched.
struct Expectation {
  enum class How : uint8_t {
    Equal,      ///< in bits; a NaN equals any
    Close,      ///< within `ulps` units in the last place
    AlmostEqual ///< signs are equal, and the distance is within `tolerance`
  };
  How how = How::Equal;
  BufferId found, expected;
  uint64_t ulps = 0;
  double tolerance = 0;
  std::string place; ///< "model.mlir:12:5"
  bool operator==(const Expectation &) const = default;
};

/// An output that the host prints or checks once the program has run.
struct HostOutput {
  enum class Kind : uint8_t { Text, Memref, Value, Check, Shape, Flops };
  Kind kind = Kind::Text;
  std::string text;               ///< printed, or the check's message
  std::optional<BufferId> buffer; ///< what the memory held at that point
  int64_t offset = 0;             ///< where the printed memref begins
  std::vector<int64_t> strides;
  bool isUnsigned = false;
  std::string place; ///< "model.mlir:12:5"
  bool operator==(const HostOutput &) const = default;
};

struct Program {
  Dag dag;
  std::vector<ProgramArgument> arguments, results;
  /// `run` checks them; programs in bundles have none.
  std::vector<Expectation> expectations;
  /// In program order; programs in bundles have none.
  std::vector<HostOutput> outputs;
  bool operator==(const Program &) const = default;

  /// Dag::check(), and: arguments and results are whole buffers of their type
  /// and shape, results on the host, and every copy and collective lists its
  /// boxes among its node's uses, on which the proof of a plan rests. The first
  /// fault found.
  Result<void> check() const;
};

/// By buffer: whether its first use, in program order, reads. An argument's
/// bytes then need a value.
std::vector<bool> readsFirst(const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_PROGRAM_H
