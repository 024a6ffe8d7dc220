// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/torch/AtenOps.h"

#include "support/Escape.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace mgpu::pipeline::torch {

namespace {

std::string_view nameOf(std::string_view signature) {
  return signature.substr(0, signature.find('('));
}

std::map<std::string_view, const Operation *, std::less<>> makeTable() {
  std::map<std::string_view, const Operation *, std::less<>> table;
  for (auto operations :
       {pointwiseOperations, activationOperations, shapeOperations,
        creationOperations, reductionOperations, productOperations,
        convolutionOperations, indexOperations, poolOperations, normOperations,
        lossOperations})
    for (const Operation &each : operations())
      table.emplace(nameOf(each.signature), &each);
  return table;
}

const auto &operationTable() {
  static const auto table = makeTable();
  return table;
}

/// A default of a signature: a number, True, False, None, [] or text.
Value parseDefault(std::string_view text) {
  if (text == "None")
    return {};
  if (text == "True" || text == "False")
    return Scalar{Scalar::Kind::Bool, text == "True", double(text == "True")};
  if (text == "[]")
    return std::vector<Scalar>();
  int64_t whole = 0;
  double real = 0;
  const char *end = text.data() + text.size();
  if (std::from_chars(text.data(), end, whole).ptr == end)
    return Scalar::of(whole);
  if (std::from_chars(text.data(), end, real).ptr == end)
    return Scalar::of(real);
  return std::string(text);
}

} // namespace

const Operation *findOperation(std::string_view name) {
  auto found = operationTable().find(name);
  return found == operationTable().end() ? nullptr : found->second;
}

std::vector<std::string_view> operationSignatures() {
  std::vector<std::string_view> all;
  for (const auto &[name, operation] : operationTable())
    all.push_back(operation->signature);
  return all;
}

Call::Call(const Node &node, const Operation &operation,
           const Environment &environment)
    : node(node), detail(operation.detail), environment(environment) {
  std::string_view rest = operation.signature;
  rest.remove_prefix(nameOf(rest).size() + 1);
  rest.remove_suffix(1);
  while (!rest.empty()) {
    std::string_view one = rest.substr(0, rest.find(", "));
    rest.remove_prefix(std::min(rest.size(), one.size() + 2));
    const size_t equals = one.find('=');
    const std::string name(one.substr(0, equals));
    auto given = node.arguments.find(name);
    if (given != node.arguments.end())
      values.emplace(name, given->second);
    else if (equals != one.npos)
      values.emplace(name, parseDefault(one.substr(equals + 1)));
    else
      refuse(fmt::format("it has no argument '{}'", name), ErrorKind::Invalid);
  }
  for (const auto &[name, value] : node.arguments)
    if (!values.contains(name) && !std::holds_alternative<Ignored>(value) &&
        !std::holds_alternative<std::monostate>(value) &&
        name != "pin_memory" && name != "non_blocking")
      refuse(fmt::format("its argument '{}' is not known: {} is read",
                         escaped(name, 100), operation.signature));
}

void Call::refuse(const std::string &why, ErrorKind kind) const {
  torch::refuse(kind, fmt::format("node '{}' ({}): {}", escaped(node.name, 200),
                                  escaped(node.target, 200), why));
}

const Value &Call::value(const char *name) const {
  auto found = values.find(name);
  if (found == values.end())
    refuse(fmt::format("'{}' is no argument of it", name), ErrorKind::Internal);
  return found->second;
}

bool Call::isNone(const char *name) const {
  const Value &found = value(name);
  return std::holds_alternative<std::monostate>(found) ||
         std::holds_alternative<Ignored>(found);
}

template <typename T>
const T &Call::as(const char *name, const char *what) const {
  if (const T *found = std::get_if<T>(&value(name)))
    return *found;
  refuse(fmt::format("its argument '{}' is not {}", name, what),
         ErrorKind::Invalid);
}

Tensor Call::find(const std::string &name) const {
  auto found = environment.find(name);
  if (found == environment.end())
    refuse(fmt::format("it takes '{}', which no node before it gives",
                       escaped(name, 200)),
           ErrorKind::Invalid);
  return found->second;
}

Tensor Call::tensor(const char *name) const {
  return find(as<TensorName>(name, "a tensor").name);
}
bool Call::isTensor(const char *name) const {
  return std::holds_alternative<TensorName>(value(name));
}
std::optional<Tensor> Call::maybeTensor(const char *name) const {
  return isNone(name) ? std::nullopt : std::optional(tensor(name));
}
std::vector<std::optional<Tensor>> Call::maybeTensors(const char *name) const {
  std::vector<std::optional<Tensor>> all;
  for (const TensorName &each :
       as<std::vector<TensorName>>(name, "a list of tensors"))
    all.push_back(each.name.empty() ? std::nullopt
                                    : std::optional(find(each.name)));
  return all;
}
std::vector<Tensor> Call::tensors(const char *name) const {
  std::vector<Tensor> all;
  for (const std::optional<Tensor> &each : maybeTensors(name)) {
    if (!each)
      refuse(fmt::format("its argument '{}' has no tensor", name),
             ErrorKind::Invalid);
    all.push_back(*each);
  }
  if (all.empty())
    refuse(fmt::format("its argument '{}' is empty", name), ErrorKind::Invalid);
  return all;
}

Scalar Call::scalar(const char *name) const {
  return as<Scalar>(name, "a number");
}
int64_t Call::integer(const char *name) const {
  const Scalar number = scalar(name);
  if (number.isFloat())
    refuse(fmt::format("its argument '{}' is not whole", name),
           ErrorKind::Invalid);
  return number.whole;
}
Sizes Call::integers(const char *name) const {
  Sizes all;
  if (std::holds_alternative<Scalar>(value(name)))
    return {integer(name)};
  for (const Scalar &each :
       as<std::vector<Scalar>>(name, "a list of numbers")) {
    if (each.isFloat())
      refuse(fmt::format("its argument '{}' is not whole", name),
             ErrorKind::Invalid);
    all.push_back(each.whole);
  }
  return all;
}
std::vector<double> Call::reals(const char *name) const {
  std::vector<double> all;
  for (const Scalar &each : as<std::vector<Scalar>>(name, "a list of numbers"))
    all.push_back(each.real);
  return all;
}
Sizes Call::integers(const char *name, size_t count) const {
  Sizes all = integers(name);
  if (all.size() == 1)
    all.resize(count, all.front());
  if (all.size() != count)
    refuse(fmt::format("its argument '{}' has not {} numbers", name, count),
           ErrorKind::Invalid);
  return all;
}
Sizes Call::dims(const char *name, const Tensor &x) const {
  Sizes all = isNone(name) ? Sizes() : integers(name);
  if (x.rank() == 0) // the one dimension of a scalar is none
    return {};
  if (all.empty())
    return countUp(x.rank());
  for (int64_t &dim : all)
    dim = dimOf(dim, x.rank());
  std::ranges::sort(all);
  if (std::ranges::adjacent_find(all) != all.end())
    refuse(fmt::format("its argument '{}' names a dimension twice", name),
           ErrorKind::Invalid);
  return all;
}
std::string Call::text(const char *name) const {
  return as<std::string>(name, "text");
}
ElementType Call::element(const char *name, ElementType otherwise) const {
  return isNone(name) ? otherwise : as<ElementType>(name, "a type");
}

} // namespace mgpu::pipeline::torch
