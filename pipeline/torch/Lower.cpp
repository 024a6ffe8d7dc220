// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/torch/Lower.h"

#include "pipeline/torch/AtenOps.h"
#include "support/Escape.h"
#include "support/Pt2.h"
#include "support/Spelling.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace mgpu::pipeline::torch {

namespace {

/// Letters that an MLIR name may have.
std::string plainName(const std::string &name) {
  std::string plain = "v";
  for (char c : name)
    plain += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c >= '0' && c <= '9')
                 ? c
                 : '_';
  return plain == "v" + name ? name : plain;
}

/// A string of MLIR: what is not plain is \HH.
std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text)
    if (c >= ' ' && c < 127 && c != '"' && c != '\\')
      result += c;
    else
      result += fmt::format("\\{:02X}", static_cast<unsigned char>(c));
  return result + "\"";
}

class Lowering {
public:
  explicit Lowering(const Program &program) : program(program) {}

  Lowered lower() {
    const std::string arguments = declareArguments();
    for (const Node &node : program.nodes)
      lowerNode(node);
    const auto [types, names] = declareResults();
    lowered.text =
        fmt::format("module {{\n  func.func public @main({}) -> ({}) {{\n{}    "
                    "\"func.return\"({}) : ({}) -> ()\n  }}\n}}\n",
                    arguments, types, builder.text(), names, types);
    return std::move(lowered);
  }

private:
  std::string declareArguments() {
    std::string text;
    std::set<std::string> taken;
    for (const Input &input : program.inputs)
      if (input.kind == Input::Kind::User)
        taken.insert(input.name);
    for (size_t k = 0; k < program.inputs.size(); ++k) {
      const Input &input = program.inputs[k];
      std::string name = input.name;
      std::string attributes;
      if (input.kind == Input::Kind::Weight) {
        if (taken.insert(input.target).second)
          name = input.target;
        lowered.weights.push_back({k, name, input.target});
      }
      auto alias =
          std::ranges::find(program.outputs, input.name, &Output::replaces);
      if (alias != program.outputs.end())
        attributes = fmt::format(", tf.aliasing_output = {} : i32",
                                 alias - program.outputs.begin());
      else if (input.kind == Input::Kind::Weight)
        attributes = ", mgpu.role = \"resident\"";
      const Tensor value{&builder, fmt::format("%arg{}", k), input.type.element,
                         input.type.sizes};
      text += fmt::format("{}{}: {} {{mgpu.name = {}{}}}", k ? ", " : "",
                          value.name, mlirType(value.element, value.sizes),
                          quoted(name), attributes);
      environment.emplace(input.name, value);
    }
    return text;
  }

  void lowerNode(const Node &node) {
    std::string_view name = node.target;
    if (!name.starts_with("aten."))
      refuse(
          ErrorKind::Unsupported,
          fmt::format("node '{}' calls {}, and of PyTorch's operations those "
                      "of ATen are read",
                      escaped(node.name, 200), escaped(node.target, 200)));
    name.remove_prefix(5);
    if (name.ends_with(".default"))
      name.remove_suffix(8);
    const Operation *operation = findOperation(name);
    if (!operation)
      refuse(ErrorKind::Unsupported, missing(node, name));
    builder.begin(plainName(node.name));
    try {
      Results results =
          operation->make(builder, Call(node, *operation, environment));
      for (size_t k = 0; k < node.results.size() && k < results.size(); ++k)
        define(node, node.results[k].name, results[k]);
    } catch (Refused &refused) {
      if (!refused.error.message.starts_with("node "))
        refused.error.message =
            fmt::format("node '{}' ({}): {}", escaped(node.name, 200),
                        escaped(node.target, 200), refused.error.message);
      throw;
    }
  }

  static std::string missing(const Node &node, std::string_view name) {
    std::vector<std::string> names;
    for (std::string_view each : operationSignatures())
      names.emplace_back(each.substr(0, each.find('(')));
    return fmt::format("node '{}' calls aten.{}, which is not read{}",
                       escaped(node.name, 200), escaped(name, 200),
                       didYouMean(std::string(name), names));
  }

  void define(const Node &node, const std::string &name, const Tensor &value) {
    if (name.empty() || !value.builder) // not asked for, or not made
      return;
    auto type = program.types.find(name);
    if (type != program.types.end() &&
        type->second != TensorType{value.element, value.sizes})
      refuse(ErrorKind::Invalid,
             fmt::format("it gives {}, and the file says {}",
                         toText({value.element, value.sizes}),
                         toText(type->second)));
    if (!environment.emplace(name, value).second)
      refuse(ErrorKind::Invalid,
             fmt::format("'{}' is there already", escaped(name, 200)));
  }

  /// The types and the names of what is returned.
  std::pair<std::string, std::string> declareResults() {
    std::string types, names;
    for (const Output &output : program.outputs) {
      auto value = environment.find(output.name);
      if (value == environment.end())
        refuse(ErrorKind::Invalid,
               fmt::format("it returns '{}', which no node gives",
                           escaped(output.name, 200)));
      names += (names.empty() ? "" : ", ") + value->second.name;
      types += (types.empty() ? "" : ", ") +
               mlirType(value->second.element, value->second.sizes);
    }
    return {types, names};
  }

  const Program &program;
  Builder builder;
  Call::Environment environment;
  Lowered lowered;
};

} // namespace

bool isArchive(const std::string &path) {
  return path != "-" && isZipFile(path);
}

Result<Lowered> lowerProgram(const std::string &path,
                             const std::map<std::string, std::string> &dims) {
  MGPU_TRY_ASSIGN(Pt2Archive archive, Pt2Archive::open(path));
  MGPU_TRY_ASSIGN(std::string text, archive.model());
  try {
    return Lowering(readProgram(text, path, dims)).lower();
  } catch (Refused &refused) {
    if (!refused.error.message.starts_with("'") &&
        !refused.error.message.starts_with("--"))
      refused.error.message.insert(0, fmt::format("'{}': ", path));
    return fail(std::move(refused.error));
  }
}

} // namespace mgpu::pipeline::torch
