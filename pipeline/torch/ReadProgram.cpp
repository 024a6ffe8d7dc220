// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/torch/ExportedGraph.h"

#include "pipeline/torch/SizeSymbols.h"
#include "support/Escape.h"
#include "support/Pt2.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>

namespace mgpu::pipeline::torch {

using Json = nlohmann::json;

void refuse(ErrorKind kind, std::string why) {
  throw Refused{{kind, std::move(why)}};
}

std::string toText(const TensorType &type) {
  return describe(type.element, type.sizes);
}

namespace {

class Reader {
public:
  Reader(const Json &json, const std::string &file,
         const std::map<std::string, std::string> &dims)
      : json(json), file(file), dims(dims) {}

  Program read() {
    checkVersion();
    const Json &module = at(json, "graph_module");
    graph = &at(module, "graph");
    const Json &signature = at(module, "signature");
    findSymbols(signature);
    readTypes();
    for (const Json &spec : list(signature, "input_specs"))
      readInput(spec);
    for (const Json &node : list(*graph, "nodes"))
      readNode(node);
    readOutputs(signature);
    dropUnused();
    return std::move(program);
  }

private:
  [[noreturn]] void broken(const std::string &what) const {
    refuse(ErrorKind::Invalid,
           fmt::format("'{}' is not a valid .pt2 file: {}", file, what));
  }
  [[noreturn]] void unsupported(const std::string &what) const {
    refuse(ErrorKind::Unsupported, fmt::format("'{}': {}", file, what));
  }

  const Json &at(const Json &object, const char *key) const {
    auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end())
      broken(fmt::format("its graph has no '{}' where there must be one",
                         escaped(key, 200)));
    return *found;
  }
  const Json &list(const Json &object, const char *key) const {
    const Json &found = at(object, key);
    if (!found.is_array())
      broken(fmt::format("'{}' of its graph is no list", key));
    return found;
  }
  std::string text(const Json &object, const char *key) const {
    const Json &found = at(object, key);
    if (!found.is_string())
      broken(fmt::format("'{}' of its graph is no text", key));
    return found.get<std::string>();
  }
  int64_t whole(const Json &value) const {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() &&
         value.get<uint64_t>() > uint64_t(INT64_MAX)))
      broken("a number of its graph is not whole");
    return value.get<int64_t>();
  }
  double real(const Json &value) const {
    if (value == "Infinity")
      return INFINITY;
    if (value == "-Infinity")
      return -INFINITY;
    if (value == "NaN")
      return NAN;
    if (!value.is_number())
      broken("a number of its graph is none");
    return value.get<double>();
  }
  /// The one key of a union, and its value.
  std::pair<std::string, const Json *> unionOf(const Json &value) const {
    if (!value.is_object() || value.size() != 1)
      broken("a union of its graph has not one member");
    return {value.begin().key(), &*value.begin()};
  }

  void checkVersion() const {
    const Json &version = at(json, "schema_version");
    const int64_t major = whole(at(version, "major")),
                  minor = whole(at(version, "minor"));
    if (major != 8)
      unsupported(fmt::format("its schema is version {}.{}, and 8 is read: "
                              "save it again with torch 2.8 or newer, or with "
                              "an older one if it is of a newer schema",
                              major, minor));
  }

  // Symbols.

  void findSymbols(const Json &signature) {
    const Json &types = at(*graph, "tensor_values");
    for (const Json &spec : list(signature, "input_specs")) {
      auto [kind, about] = unionOf(spec);
      if (kind != "user_input")
        continue;
      auto [of, argument] = unionOf(at(*about, "arg"));
      if (of != "as_tensor")
        continue;
      const std::string name = text(*argument, "name");
      int64_t dimension = 0;
      for (const Json &size : list(at(types, name.c_str()), "sizes"))
        addSymbols(size, fmt::format("{}.{}", name, dimension++));
    }
    setSymbols();
  }
  void addSymbols(const Json &size, const std::string &where) {
    auto [kind, value] = unionOf(size);
    if (kind != "as_expr")
      return;
    const std::string expression = text(*value, "expr_str");
    const std::vector<std::string> names = symbolsOf(expression);
    for (const std::string &name : names) {
      auto [known, isNew] = symbols.try_emplace(name);
      // A dimension that is a sum of symbols tells none of them.
      if (isNew || (known->second.where.empty() && names.size() == 1))
        known->second.where =
            names.size() == 1 && evaluate(expression, {{name, 7}}) == 7 ? where
                                                                        : "";
      auto hint = value->find("hint");
      if (names.size() == 1 && hint != value->end() && hint->is_object() &&
          hint->contains("as_int") && !known->second.where.empty())
        known->second.example = whole((*hint)["as_int"]);
    }
  }
  /// Takes the sizes that the user gave.
  void setSymbols() {
    std::set<std::string> used;
    for (auto &[name, symbol] : symbols) {
      takeRange(name, symbol);
      const std::string *given = nullptr;
      for (const auto &[key, value] : dims)
        if (key == name || key == symbol.where ||
            (symbols.size() == 1 && dims.size() == 1))
          given = &value, used.insert(key);
      const std::string where =
          symbol.where.empty() ? name
                               : fmt::format("{} ({})", name, symbol.where);
      const std::string range =
          symbol.most == INT64_MAX
              ? fmt::format("from {} on", symbol.least)
              : fmt::format("{} to {}", symbol.least, symbol.most);
      if (!given)
        refuse(ErrorKind::Usage,
               fmt::format("'{}' leaves the size {} open, {}: give --dim "
                           "{}={}",
                           file, where, range, name,
                           std::max<int64_t>(symbol.example, 1)));
      int64_t value = 0;
      auto [end, error] =
          std::from_chars(given->data(), given->data() + given->size(), value);
      if (error != std::errc() || end != given->data() + given->size() ||
          value < symbol.least || value > symbol.most)
        refuse(ErrorKind::Usage,
               fmt::format("--dim {}={}: the size {} of '{}' is {}", name,
                           *given, where, file, range));
      sizes[name] = value;
    }
    for (const auto &[key, value] : dims)
      if (!used.contains(key))
        refuse(ErrorKind::Usage,
               fmt::format("--dim {}: '{}' has no open size of that name; "
                           "there are: {}",
                           key, file, symbolNames()));
  }
  std::string symbolNames() const {
    std::vector<std::string> names;
    for (const auto &[name, symbol] : symbols)
      names.push_back(symbol.where.empty()
                          ? name
                          : fmt::format("{} ({})", name, symbol.where));
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  }
  void takeRange(const std::string &name, Symbol &symbol) const {
    auto ranges = json.find("range_constraints");
    if (ranges == json.end() || !ranges->is_object())
      return;
    auto range = ranges->find(name);
    if (range == ranges->end() || !range->is_object())
      return;
    auto bound = [&](const char *key, int64_t &into) {
      auto value = range->find(key);
      if (value != range->end() && value->is_number_integer())
        into = whole(*value);
    };
    bound("min_val", symbol.least);
    bound("max_val", symbol.most);
    symbol.least = std::max<int64_t>(symbol.least, 0);
  }
  /// A SymInt: {"as_int": 3} or {"as_expr": {"expr_str": ...}}.
  int64_t size(const Json &value) const {
    auto [kind, of] = unionOf(value);
    if (kind == "as_int")
      return whole(*of);
    if (kind != "as_expr")
      broken(fmt::format("a size of its graph is '{}'", escaped(kind, 40)));
    const std::string expression = text(*of, "expr_str");
    auto number = evaluate(expression, sizes);
    if (!number)
      unsupported(fmt::format("the size '{}' has no value that is known before "
                              "the program runs",
                              escaped(expression, 200)));
    return *number;
  }
  /// A SymIntArgument: {"as_name": "sym_size_int_1"} or {"as_int": 3}.
  int64_t symInt(const Json &value) const {
    auto [kind, of] = unionOf(value);
    if (kind == "as_int")
      return whole(*of);
    if (kind != "as_name" || !of->is_string())
      broken(fmt::format("a size of its graph is '{}'", escaped(kind, 40)));
    return size(at(at(*graph, "sym_int_values"),
                   of->get_ref<const std::string &>().c_str()));
  }

  // Types.

  std::optional<TensorType> typeOf(const Json &meta) const {
    TensorType type;
    const auto element = torchElementType(whole(at(meta, "dtype")));
    if (!element)
      return std::nullopt;
    type.element = *element;
    for (const Json &each : list(meta, "sizes"))
      type.sizes.push_back(size(each));
    if (!arrayBytes(type.element, type.sizes))
      broken("a tensor of its graph is too large");
    return type;
  }
  void readTypes() {
    const Json &types = at(*graph, "tensor_values");
    if (!types.is_object())
      broken("'tensor_values' of its graph is no object");
    for (const auto &[name, meta] : types.items()) {
      if (std::optional<TensorType> type = typeOf(meta))
        program.types.emplace(name, std::move(*type));
      else
        unsupported(fmt::format("tensor '{}' has PyTorch's type {}, which is "
                                "not supported",
                                escaped(name, 200), whole(at(meta, "dtype"))));
    }
  }

  // Inputs, nodes, outputs.

  void readInput(const Json &spec) {
    static const std::map<std::string, const char *> weights = {
        {"parameter", "parameter_name"},
        {"buffer", "buffer_name"},
        {"tensor_constant", "tensor_constant_name"}};
    auto [kind, about] = unionOf(spec);
    if (kind == "constant_input")
      return;
    Input input;
    if (auto weight = weights.find(kind); weight != weights.end()) {
      input.kind = Input::Kind::Weight;
      input.name = text(at(*about, "arg"), "name");
      input.target = text(*about, weight->second);
    } else if (kind == "user_input") {
      auto [of, argument] = unionOf(at(*about, "arg"));
      if (of != "as_tensor") // a number, or None: it is in the graph
        return;
      input.name = text(*argument, "name");
    } else {
      unsupported(
          fmt::format("it has an input of the kind '{}'", escaped(kind, 40)));
    }
    auto type = program.types.find(input.name);
    if (type == program.types.end())
      broken(
          fmt::format("its input '{}' has no type", escaped(input.name, 200)));
    input.type = type->second;
    for (const Input &other : program.inputs)
      if (other.name == input.name)
        broken(fmt::format("two inputs are called '{}'",
                           escaped(input.name, 200)));
    program.inputs.push_back(std::move(input));
  }

  TensorName optionalTensor(const Json &value) const {
    auto [kind, of] = unionOf(value);
    return kind == "as_tensor" ? TensorName{text(*of, "name")} : TensorName{};
  }

  Value argument(const Json &value, const std::string &where) const {
    auto [kind, of] = unionOf(value);
    auto each = [&](auto make) {
      std::vector<decltype(make(*of))> all;
      if (!of->is_array())
        broken(fmt::format("'{}' of its graph is no list", escaped(kind, 40)));
      for (const Json &one : *of)
        all.push_back(make(one));
      return all;
    };
    auto named = [&](const Json &one) { return TensorName{text(one, "name")}; };
    auto boolean = [&](const Json &one) {
      if (!one.is_boolean())
        broken("a truth value of its graph is none");
      return Scalar{Scalar::Kind::Bool, one.get<bool>(),
                    double(one.get<bool>())};
    };
    if (kind == "as_none")
      return {};
    if (kind == "as_tensor")
      return named(*of);
    if (kind == "as_tensors")
      return each(named);
    if (kind == "as_optional_tensors")
      return each([&](const Json &one) { return optionalTensor(one); });
    if (kind == "as_optional_tensor") {
      const TensorName name = optionalTensor(*of);
      return name.name.empty() ? Value() : Value(name);
    }
    if (kind == "as_int")
      return Scalar::of(whole(*of));
    if (kind == "as_ints")
      return each([&](const Json &one) { return Scalar::of(whole(one)); });
    if (kind == "as_float")
      return Scalar::of(real(*of));
    if (kind == "as_floats")
      return each([&](const Json &one) { return Scalar::of(real(one)); });
    if (kind == "as_bool")
      return boolean(*of);
    if (kind == "as_bools")
      return each(boolean);
    if (kind == "as_sym_int")
      return Scalar::of(symInt(*of));
    if (kind == "as_sym_ints")
      return each([&](const Json &one) { return Scalar::of(symInt(one)); });
    if (kind == "as_string" && of->is_string())
      return of->get<std::string>();
    if (kind == "as_scalar_type") {
      if (auto type = torchElementType(whole(*of)))
        return *type;
      unsupported(fmt::format("{} asks for PyTorch's type {}, which is not "
                              "supported",
                              where, whole(*of)));
    }
    if (kind == "as_device" || kind == "as_layout" ||
        kind == "as_memory_format")
      return Ignored{};
    unsupported(fmt::format("{} has an argument of the kind '{}'", where,
                            escaped(kind, 40)));
  }

  void readNode(const Json &json) {
    Node node;
    node.target = text(json, "target");
    for (const char *prefix : {"torch.ops.", "torch._ops."})
      if (node.target.starts_with(prefix))
        node.target.erase(0, std::string_view(prefix).size());
    for (const Json &output : list(json, "outputs")) {
      auto [kind, of] = unionOf(output);
      if (kind == "as_tensor")
        node.results.push_back({text(*of, "name")});
      else if (kind == "as_tensors" && of->is_array())
        for (const Json &one : *of)
          node.results.push_back({text(one, "name")});
      else if (kind == "as_none" || kind == "as_optional_tensor")
        node.results.push_back({});
      else if (!kind.starts_with("as_sym_"))
        unsupported(fmt::format("'{}' gives a '{}'", escaped(node.target, 200),
                                escaped(kind, 40)));
    }
    // Nodes that compute sizes, or assert something of them, are known by now.
    if (node.results.empty())
      return;
    node.name = node.results.front().name;
    const std::string where = fmt::format(
        "node '{}' ({})", escaped(node.name, 200), escaped(node.target, 200));
    for (const Json &input : list(json, "inputs"))
      if (!node.arguments
               .emplace(text(input, "name"), argument(at(input, "arg"), where))
               .second)
        broken(where + " has an argument twice");
    program.nodes.push_back(std::move(node));
  }

  /// The user's results come before the next state of what the program changes.
  void readOutputs(const Json &signature) {
    std::vector<Output> states;
    for (const Json &spec : list(signature, "output_specs")) {
      auto [kind, about] = unionOf(spec);
      if (kind == "user_output") {
        auto [of, argument] = unionOf(at(*about, "arg"));
        if (of == "as_tensor")
          program.outputs.push_back({text(*argument, "name"), ""});
        continue; // a number, or None
      }
      if (kind == "token")
        unsupported("it has an output of the kind 'token'");
      Output output{text(at(*about, "arg"), "name"), ""};
      if (kind == "buffer_mutation")
        output.replaces = inputOf(text(*about, "buffer_name"));
      else if (kind == "parameter_mutation")
        output.replaces = inputOf(text(*about, "parameter_name"));
      else if (kind == "user_input_mutation")
        output.replaces = text(*about, "user_input_name");
      (output.replaces.empty() ? program.outputs : states)
          .push_back(std::move(output));
    }
    program.outputs.insert(program.outputs.end(), states.begin(), states.end());
    if (program.outputs.empty())
      unsupported("it gives no tensor");
  }
  /// Nodes whose results nothing takes go, and other results lose their names.
  void dropUnused() {
    std::set<std::string> used;
    for (const Output &output : program.outputs)
      used.insert(output.name);
    std::vector<Node> kept;
    for (Node &node : std::views::reverse(program.nodes)) {
      bool isUsed = false;
      for (TensorName &result : node.results)
        if (used.contains(result.name))
          isUsed = true;
        else
          result.name.clear();
      if (!isUsed)
        continue;
      for (const auto &[name, value] : node.arguments)
        if (const auto *one = std::get_if<TensorName>(&value))
          used.insert(one->name);
        else if (const auto *all = std::get_if<std::vector<TensorName>>(&value))
          for (const TensorName &each : *all)
            used.insert(each.name);
      kept.push_back(std::move(node));
    }
    std::ranges::reverse(kept);
    program.nodes = std::move(kept);
  }
  std::string inputOf(const std::string &weight) const {
    for (const Input &input : program.inputs)
      if (input.kind == Input::Kind::Weight && input.target == weight)
        return input.name;
    broken(
        fmt::format("it changes '{}', which it has not", escaped(weight, 200)));
  }

  const Json &json;
  const std::string &file;
  const std::map<std::string, std::string> &dims;
  const Json *graph = nullptr;
  std::map<std::string, Symbol> symbols;
  std::map<std::string, int64_t> sizes;
  Program program;
};

} // namespace

Program readProgram(const std::string &text, const std::string &name,
                    const std::map<std::string, std::string> &dims) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    refuse(ErrorKind::Invalid,
           fmt::format("'{}' is not a valid .pt2 file: its graph is not JSON",
                       name));
  return Reader(json, name, dims).read();
}

} // namespace mgpu::pipeline::torch
