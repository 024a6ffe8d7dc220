// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TORCH_EXPORTEDGRAPH_H
#define MGPU_PIPELINE_TORCH_EXPORTEDGRAPH_H

// An ExportedProgram of PyTorch as its `models/*.json` says it (schema
// torch/_export/serde/schema.py, major 8), with numbers for its symbols.

#include "support/Array.h"

#include <map>
#include <optional>
#include <variant>

namespace mgpu::pipeline::torch {

/// A reason that stops the reading of a program. It is thrown within this
/// folder alone; lowerProgram() returns it.
struct Refused {
  Error error;
};
[[noreturn]] void refuse(ErrorKind kind, std::string why);

using Sizes = std::vector<int64_t>;

struct TensorType {
  ElementType element = ElementType::F32;
  Sizes sizes;
  bool operator==(const TensorType &) const = default;
};
/// "2x3xf32".
std::string toText(const TensorType &type);

/// A number of Python.
struct Scalar {
  enum class Kind : uint8_t { Bool, Int, Float } kind = Kind::Int;
  int64_t whole = 0;
  double real = 0; ///< the number itself, of all kinds
  static Scalar of(int64_t value) { return {Kind::Int, value, double(value)}; }
  static Scalar of(double value) { return {Kind::Float, 0, value}; }
  bool isFloat() const { return kind == Kind::Float; }
};

struct TensorName {
  std::string name; ///< empty: None in a list
};
/// A device, layout or memory format: it has no meaning here.
struct Ignored {};
/// An argument of a node; monostate is None.
using Value =
    std::variant<std::monostate, TensorName, std::vector<TensorName>, Scalar,
                 std::vector<Scalar>, ElementType, std::string, Ignored>;

struct Node {
  std::string target; ///< "aten.add.Tensor"
  std::string name;
  std::map<std::string, Value> arguments;
  std::vector<TensorName> results; ///< empty where nothing takes it
};

struct Input {
  enum class Kind : uint8_t { User, Weight } kind = Kind::User;
  std::string name;   ///< in the graph
  std::string target; ///< the weight's name in the module
  TensorType type;
};

struct Output {
  std::string name;     ///< of the tensor in the graph
  std::string replaces; ///< the graph's input whose next state it is, if any
};

/// One dimension whose size the program leaves open.
struct Symbol {
  std::string where; ///< "x.0", the first input that has it, and its dimension
  int64_t least = 0, most = INT64_MAX, example = 0;
};

struct Program {
  std::vector<Input> inputs;
  std::vector<Node> nodes;
  std::vector<Output> outputs;
  std::map<std::string, TensorType> types; ///< of results, as the file has them
};

/// The program in `text`, the JSON of `name`, with sizes for its symbols from
/// `dims`: by symbol, by "input.dimension", or by any name where there is one
/// symbol alone. Throws Refused: Invalid for what is not of the schema,
/// Unsupported for another major version and for operators of a higher order,
/// Usage for a symbol without a size or out of its range.
Program readProgram(const std::string &text, const std::string &name,
                    const std::map<std::string, std::string> &dims);

} // namespace mgpu::pipeline::torch

#endif // MGPU_PIPELINE_TORCH_EXPORTEDGRAPH_H
