// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/RandomSpmd.h"

#include "support/Array.h"
#include "support/Random.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <map>
#include <numeric>

namespace mgpu::conformance {

namespace {

using Axes = std::vector<int64_t>; ///< of the mesh, the outermost first

/// A value of both programs: which axes cut each of its two dimensions.
struct SpmdTensor {
  std::string name;
  std::array<Axes, 2> split;
  double most = 0; ///< no float is larger, so that all are exact
};

class SpmdWriter {
public:
  explicit SpmdWriter(uint64_t seed) : random(seed) {}
  RandomSpmd write();

private:
  // What the devices are.
  void chooseMesh();
  int64_t parts(const Axes &axes) const;
  Axes unused(const SpmdTensor &tensor) const;
  std::string groups(const Axes &axes) const;
  std::string shifted(int64_t axis, bool rotates) const;

  // Texts.
  std::string full() const {
    return fmt::format("tensor<{0}x{0}x{1}>", spmdSide, element);
  }
  std::string local(const SpmdTensor &tensor) const;
  std::string layout(const SpmdTensor &tensor) const;
  std::string zeros(const SpmdTensor &tensor);
  SpmdTensor fresh(std::array<Axes, 2> split, double most) {
    return {fmt::format("v{}", next++), std::move(split), most};
  }
  void keep(SpmdTensor tensor) { values.push_back(std::move(tensor)); }
  /// The same value in both, where the one program needs nothing for it.
  void same(const SpmdTensor &to, const SpmdTensor &from);
  const SpmdTensor &any() { return values[random.below(values.size())]; }
  const SpmdTensor *anyWith(const std::array<Axes, 2> &split);

  // Operations. Each may do nothing where no value suits it.
  void addArgument();
  void addBinary();
  void addInto();
  void addMatmul();
  void addRowSum();
  void addGather();
  void addSlice();
  void addAllToAll();
  void addShift();
  void addOverReplicas();
  void addLoop();
  void addBranch();
  std::string binary(const std::string &a, const std::string &b);

  Random random;
  Axes mesh;
  std::string element, one, many, arguments[2], results[2];
  bool isFloat = false;
  std::vector<SpmdTensor> values;
  std::vector<std::string> names;
  int next = 0;
};

std::string listOf(const Axes &numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

void SpmdWriter::chooseMesh() {
  static const std::vector<Axes> meshes = {{1},    {2},    {3},    {4},
                                           {6},    {8},    {2, 2}, {2, 3},
                                           {3, 2}, {4, 2}, {2, 4}, {2, 2, 2}};
  mesh = meshes[random.below(meshes.size())];
  isFloat = random.below(2) == 0;
  element = isFloat ? "f32" : "i32";
}

int64_t SpmdWriter::parts(const Axes &axes) const {
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= mesh[axis];
  return count;
}

Axes SpmdWriter::unused(const SpmdTensor &tensor) const {
  Axes left;
  for (int64_t axis = 0; axis < int64_t(mesh.size()); ++axis)
    if (std::ranges::count(tensor.split[0], axis) == 0 &&
        std::ranges::count(tensor.split[1], axis) == 0)
      left.push_back(axis);
  return left;
}

/// Devices that differ along `axes` alone, ordered with the first outermost.
std::string SpmdWriter::groups(const Axes &axes) const {
  Axes all(mesh.size());
  std::iota(all.begin(), all.end(), 0);
  std::map<Axes, std::map<Axes, int64_t>> found; // by the rest, by place
  for (int64_t device = 0; device < parts(all); ++device) {
    Axes place(mesh.size()), inside, outside;
    int64_t rest = device;
    for (size_t axis = mesh.size(); axis-- > 0; rest /= mesh[axis])
      place[axis] = rest % mesh[axis];
    for (int64_t axis : axes)
      inside.push_back(place[axis]);
    for (int64_t axis : all)
      if (std::ranges::count(axes, axis) == 0)
        outside.push_back(place[axis]);
    found[outside][inside] = device;
  }
  std::vector<std::string> lists;
  for (const auto &[outside, members] : found) {
    Axes group;
    for (const auto &[inside, device] : members)
      group.push_back(device);
    lists.push_back(listOf(group));
  }
  return fmt::format("[{}]", fmt::join(lists, ", "));
}

/// Pairs that send from each place along `axis` to the next.
std::string SpmdWriter::shifted(int64_t axis, bool rotates) const {
  int64_t stride = 1, devices = 1;
  for (size_t k = 0; k < mesh.size(); ++k) {
    devices *= mesh[k];
    if (int64_t(k) > axis)
      stride *= mesh[k];
  }
  std::vector<std::string> pairs;
  for (int64_t device = 0; device < devices; ++device) {
    int64_t place = device / stride % mesh[axis];
    int64_t to = (place + 1) % mesh[axis];
    if (to != 0 || rotates)
      pairs.push_back(
          fmt::format("[{}, {}]", device, device + (to - place) * stride));
  }
  return fmt::format("[{}]", fmt::join(pairs, ", "));
}

std::string SpmdWriter::local(const SpmdTensor &tensor) const {
  return fmt::format("tensor<{}x{}x{}>", spmdSide / parts(tensor.split[0]),
                     spmdSide / parts(tensor.split[1]), element);
}

std::string SpmdWriter::layout(const SpmdTensor &tensor) const {
  return fmt::format(
      "{{spmd.layout = #spmd.layout<mesh = {}, split = [{}, {}]>}}",
      listOf(mesh), listOf(tensor.split[0]), listOf(tensor.split[1]));
}

/// A tensor of zeros in both programs, by name.
std::string SpmdWriter::zeros(const SpmdTensor &tensor) {
  std::string name = fmt::format("z{}", next++);
  const char *zero = isFloat ? "0.0" : "0";
  one += fmt::format("  %{} = arith.constant dense<{}> : {}\n", name, zero,
                     full());
  many += fmt::format("  %{} = arith.constant dense<{}> : {}\n", name, zero,
                      local(tensor));
  return name;
}

void SpmdWriter::same(const SpmdTensor &to, const SpmdTensor &from) {
  one += fmt::format("  %{} = tensor.cast %{} : {} to {}\n", to.name, from.name,
                     full(), full());
}

const SpmdTensor *SpmdWriter::anyWith(const std::array<Axes, 2> &split) {
  std::vector<const SpmdTensor *> found;
  for (const SpmdTensor &tensor : values)
    if (tensor.split == split)
      found.push_back(&tensor);
  return found.empty() ? nullptr : found[random.below(found.size())];
}

void SpmdWriter::addArgument() {
  SpmdTensor whole = fresh({}, 3);
  names.push_back(whole.name);
  SpmdTensor shard = fresh({}, 3);
  for (int64_t axis = 0; axis < int64_t(mesh.size()); ++axis)
    if (uint64_t dim = random.below(3); dim < 2)
      shard.split[dim].push_back(axis);
  for (Axes &axes : shard.split)
    if (random.below(2))
      std::ranges::reverse(axes);
  const char *comma = names.size() > 1 ? ", " : "";
  arguments[0] += fmt::format("{}%{}: {}", comma, whole.name, full());
  arguments[1] +=
      fmt::format("{}%{}: {} {}", comma, whole.name, full(), layout(shard));
  same(shard, whole);
  many += fmt::format("  %{} = spmd.full_to_shard %{} : {} to {}\n", shard.name,
                      whole.name, full(), local(shard));
  keep(shard);
}

std::string SpmdWriter::binary(const std::string &a, const std::string &b) {
  static const char *floats[] = {"addf", "subf", "maximumf", "minimumf"};
  static const char *integers[] = {"addi", "subi", "maxsi", "muli"};
  return fmt::format("arith.{} %{}, %{}",
                     (isFloat ? floats : integers)[random.below(4)], a, b);
}

void SpmdWriter::addBinary() {
  SpmdTensor a = any();
  SpmdTensor b = *anyWith(a.split), c = fresh(a.split, a.most + b.most);
  if (isFloat && c.most > mostExact)
    return;
  std::string text =
      fmt::format("  %{} = {} : ", c.name, binary(a.name, b.name));
  one += text + full() + "\n";
  many += text + local(c) + "\n";
  keep(c);
}

/// One program reads what the operation writes to, the other does not.
void SpmdWriter::addInto() {
  SpmdTensor a = any();
  SpmdTensor b = *anyWith(a.split), c = fresh(a.split, a.most + b.most);
  if (isFloat && c.most > mostExact)
    return;
  const std::string operation = binary("x", "y");
  one += fmt::format("  %{} = {} %{}, %{} : {}\n", c.name,
                     operation.substr(0, operation.find(' ')), a.name, b.name,
                     full());
  many += writtenInto(c.name, operation.substr(0, operation.find(' ')), a.name,
                      b.name, local(c), 2, element);
  keep(c);
}

void SpmdWriter::addMatmul() {
  SpmdTensor a = any(), b = any();
  if (a.split[1] != b.split[0])
    return;
  for (int64_t axis : a.split[0])
    if (std::ranges::count(b.split[1], axis))
      return;
  Axes inner = a.split[1];
  SpmdTensor c = fresh({a.split[0], b.split[1]}, a.most * b.most * spmdSide);
  if (isFloat && c.most > mostExact)
    return;
  std::string init = zeros(c);
  auto product = [&](const std::string &ta, const std::string &tb,
                     const std::string &tc) {
    return fmt::format("  %{} = linalg.matmul ins(%{}, %{} : {}, {}) outs(%{} "
                       ": {}) -> {}\n",
                       c.name, a.name, b.name, ta, tb, init, tc, tc);
  };
  one += product(full(), full(), full());
  many += product(local(a), local(b), local(c));
  if (inner.empty())
    return keep(c);
  SpmdTensor sum = fresh(c.split, c.most);
  uint64_t dim = random.below(3); // 2: every member gets all
  if (dim < 2)
    sum.split[dim].insert(sum.split[dim].end(), inner.begin(), inner.end());
  same(sum, c);
  if (dim == 2) {
    many += fmt::format(
        "  %{} = spmd.all_reduce sum ins(%{} : {}) outs(%{} : {}) "
        "groups {} -> {}\n",
        sum.name, c.name, local(c), c.name, local(c), groups(inner), local(c));
    return keep(sum);
  }
  std::string out = sum.name + "e";
  many += fmt::format("  %{} = tensor.empty() : {}\n", out, local(sum));
  many +=
      fmt::format("  %{} = spmd.reduce_scatter sum ins(%{} : {}) outs(%{} : "
                  "{}) axis = {} groups {} -> {}\n",
                  sum.name, c.name, local(c), out, local(sum), dim,
                  groups(inner), local(sum));
  keep(sum);
}

/// Sums rows or columns, and copies the sum to each element of them.
void SpmdWriter::addRowSum() {
  SpmdTensor a = any();
  uint64_t dim = random.below(2);
  SpmdTensor out = fresh({}, std::max(a.most, 4096.0));
  out.split[1 - dim] = a.split[1 - dim];
  const char *add = isFloat ? "arith.maximumf" : "arith.addi";
  const char *kind = isFloat ? "max" : "sum";
  const char *start = isFloat ? "-4096.0" : "0";
  std::string name = out.name;
  auto write = [&](const std::string &from, const std::string &to, int64_t size,
                   const std::string &reduce) {
    std::string row = fmt::format("tensor<{}x{}>", size, element);
    return fmt::format(
        "  %{0}i = arith.constant dense<{1}> : {2}\n"
        "  %{0}p = linalg.reduce {{ {3} }} ins(%{4} : {5}) outs(%{0}i : {2}) "
        "dimensions = [{6}]\n{7}"
        "  %{0}e = tensor.empty() : {8}\n"
        "  %{0} = linalg.broadcast ins(%{0}s : {2}) outs(%{0}e : {8}) "
        "dimensions = [{6}]\n",
        name, start, row, add, a.name, from, dim,
        fmt::vformat(reduce, fmt::make_format_args(row)), to);
  };
  one += write(full(), full(), spmdSide,
               "  %" + name + "s = tensor.cast %" + name + "p : {0} to {0}\n");
  std::string reduce = "  %" + name + "s = spmd.all_reduce " + kind + " ins(%" +
                       name + "p : {0}) outs(%" + name + "p : {0}) groups " +
                       groups(a.split[dim]) + " -> {0}\n";
  many +=
      write(local(a), local(out), spmdSide / parts(a.split[1 - dim]), reduce);
  keep(out);
}

void SpmdWriter::addGather() {
  SpmdTensor a = any();
  uint64_t dim = random.below(2);
  if (a.split[dim].empty())
    return;
  SpmdTensor out = fresh(a.split, a.most);
  int64_t axis = out.split[dim].back();
  out.split[dim].pop_back();
  same(out, a);
  many +=
      fmt::format("  %{0}e = tensor.empty() : {1}\n"
                  "  %{0} = spmd.all_gather ins(%{2} : {3}) outs(%{0}e : {1}) "
                  "axis = {4} groups {5} -> {1}\n",
                  out.name, local(out), a.name, local(a), dim, groups({axis}));
  keep(out);
}

/// Each device keeps its part of what it has: what it does depends on it.
void SpmdWriter::addSlice() {
  SpmdTensor a = any();
  Axes free = unused(a);
  if (free.empty())
    return;
  int64_t axis = free[random.below(free.size())], stride = 1;
  for (size_t k = axis + 1; k < mesh.size(); ++k)
    stride *= mesh[k];
  uint64_t dim = random.below(2);
  SpmdTensor out = fresh(a.split, a.most);
  out.split[dim].push_back(axis);
  same(out, a);
  int64_t sizes[] = {spmdSide / parts(out.split[0]),
                     spmdSide / parts(out.split[1])};
  std::string at = "%" + out.name + "o";
  many += fmt::format(
      "  %{0}d = spmd.device_index : index\n"
      "  %{0}c = arith.constant {1} : index\n  %{0}m = arith.constant {2} : "
      "index\n"
      "  %{0}n = arith.constant {3} : index\n"
      "  %{0}q = arith.divui %{0}d, %{0}c : index\n"
      "  %{0}r = arith.remui %{0}q, %{0}m : index\n"
      "  %{0}o = arith.muli %{0}r, %{0}n : index\n"
      "  %{0} = tensor.extract_slice %{4}[{5}, {6}] [{7}, {8}] [1, 1] : {9} to "
      "{10}\n",
      out.name, stride, mesh[axis], sizes[dim], a.name, dim == 0 ? at : "0",
      dim == 1 ? at : "0", sizes[0], sizes[1], local(a), local(out));
  keep(out);
}

void SpmdWriter::addAllToAll() {
  SpmdTensor a = any();
  uint64_t dim = random.below(2);
  if (a.split[dim].empty())
    return;
  SpmdTensor out = fresh(a.split, a.most);
  int64_t axis = out.split[dim].back();
  out.split[dim].pop_back();
  out.split[1 - dim].push_back(axis);
  same(out, a);
  many += fmt::format(
      "  %{0}e = tensor.empty() : {1}\n"
      "  %{0} = spmd.all_to_all ins(%{2} : {3}) outs(%{0}e : {1}) "
      "split = {4} concat = {5} groups {6} -> {1}\n",
      out.name, local(out), a.name, local(a), 1 - dim, dim, groups({axis}));
  keep(out);
}

/// Parts move to the next device: whole tensors rotate, or shift in zeros.
void SpmdWriter::addShift() {
  SpmdTensor a = any();
  uint64_t dim = random.below(2);
  if (a.split[dim].size() != 1)
    return;
  int64_t axis = a.split[dim][0], part = spmdSide / mesh[axis];
  bool rotates = random.below(2) == 0;
  SpmdTensor out = fresh(a.split, a.most);
  std::string zero = zeros(a);
  auto slice = [&](int64_t from, int64_t size) {
    int64_t offsets[] = {0, 0}, sizes[] = {spmdSide, spmdSide};
    offsets[dim] = from;
    sizes[dim] = size;
    return fmt::format("[{}, {}] [{}, {}] [1, 1]", offsets[0], offsets[1],
                       sizes[0], sizes[1]);
  };
  auto type = [&](int64_t size) {
    return dim == 0 ? fmt::format("tensor<{}x{}x{}>", size, spmdSide, element)
                    : fmt::format("tensor<{}x{}x{}>", spmdSide, size, element);
  };
  int64_t rest = spmdSide - part;
  one += fmt::format(
      "  %{0}a = tensor.extract_slice %{1}{2} : {3} to {4}\n"
      "  %{0}b = tensor.extract_slice %{5}{6} : {3} to {7}\n"
      "  %{0} = tensor.concat dim({8}) %{0}b, %{0}a : ({7}, {4}) -> {3}\n",
      out.name, a.name, slice(0, rest), full(), type(rest),
      rotates ? a.name : zero, slice(rest, part), type(part), dim);
  many += fmt::format("  %{0}e = tensor.empty() : {1}\n"
                      "  %{0} = spmd.permute ins(%{2} : {1}) outs(%{0}e : {1}) "
                      "pairs {3} -> {1}\n",
                      out.name, local(out), a.name, shifted(axis, rotates));
  keep(out);
}

/// Replicas have equal values, so their maximum, and any one of them, is it.
void SpmdWriter::addOverReplicas() {
  SpmdTensor a = any();
  Axes free = unused(a);
  if (free.empty())
    return;
  int64_t axis = free[random.below(free.size())];
  SpmdTensor out = fresh(a.split, a.most);
  same(out, a);
  std::string operation = random.below(2) ? "all_reduce max" : "broadcast";
  std::string root = operation == "broadcast"
                         ? fmt::format("root = {} ", random.below(mesh[axis]))
                         : "";
  many += fmt::format("  %{0}e = tensor.empty() : {1}\n"
                      "  %{0} = spmd.{2} ins(%{3} : {1}) outs(%{0}e : {1}) "
                      "{4}groups {5} -> {1}\n",
                      out.name, local(out), operation, a.name, root,
                      groups({axis}));
  keep(out);
}

/// Three trips over what `binary` makes of the carried tensor and another.
void SpmdWriter::addLoop() {
  SpmdTensor a = any();
  SpmdTensor b = *anyWith(a.split), out = fresh(a.split, a.most + 3 * b.most);
  if (isFloat && out.most > mostExact)
    return;
  std::string inside = binary(out.name + "t", b.name);
  auto loop = [&](const std::string &type) {
    return fmt::format(
        "  %{0}l = arith.constant 0 : index\n  %{0}s = arith.constant 1 : "
        "index\n"
        "  %{0}u = arith.constant 3 : index\n"
        "  %{0} = scf.for %{0}k = %{0}l to %{0}u step %{0}s iter_args(%{0}t = "
        "%{1}) -> {2} {{\n    %{0}x = {3} : {2}\n    scf.yield %{0}x : {2}\n  "
        "}}\n",
        out.name, a.name, type, inside);
  };
  one += loop(full());
  many += loop(local(out));
  keep(out);
}

/// Devices below a number add in one order, the others in the other.
void SpmdWriter::addBranch() {
  SpmdTensor a = any();
  SpmdTensor b = *anyWith(a.split), out = fresh(a.split, a.most + b.most);
  if (isFloat && out.most > mostExact)
    return;
  const char *add = isFloat ? "arith.addf" : "arith.addi";
  one += fmt::format("  %{} = {} %{}, %{} : {}\n", out.name, add, a.name,
                     b.name, full());
  many +=
      fmt::format("  %{0}d = spmd.device_index : index\n"
                  "  %{0}n = arith.constant {1} : index\n"
                  "  %{0}c = arith.cmpi ult, %{0}d, %{0}n : index\n"
                  "  %{0} = scf.if %{0}c -> {2} {{\n"
                  "    %{0}x = {3} %{4}, %{5} : {2}\n"
                  "    scf.yield %{0}x : {2}\n  }} else {{\n"
                  "    %{0}y = {3} %{5}, %{4} : {2}\n"
                  "    scf.yield %{0}y : {2}\n  }}\n",
                  out.name, random.below(3), local(out), add, a.name, b.name);
  keep(out);
}

RandomSpmd SpmdWriter::write() {
  chooseMesh();
  for (uint64_t count = 2 + random.below(2); count > 0; --count)
    addArgument();
  using Step = void (SpmdWriter::*)();
  static const Step steps[] = {
      &SpmdWriter::addBinary,       &SpmdWriter::addBinary,
      &SpmdWriter::addMatmul,       &SpmdWriter::addMatmul,
      &SpmdWriter::addRowSum,       &SpmdWriter::addGather,
      &SpmdWriter::addSlice,        &SpmdWriter::addAllToAll,
      &SpmdWriter::addShift,        &SpmdWriter::addLoop,
      &SpmdWriter::addOverReplicas, &SpmdWriter::addBranch,
      &SpmdWriter::addInto,         &SpmdWriter::addInto,
  };
  for (int count = 0; count < 8; ++count)
    (this->*steps[random.below(std::size(steps))])();
  SpmdTensor last = values.back(), whole = fresh({}, 0);
  one += fmt::format("  return %{} : {}\n}}\n", last.name, full());
  many += fmt::format("  %{0} = spmd.shard_to_full %{1} : {2} to {3}\n  return "
                      "%{0} : {3}\n}}\n",
                      whole.name, last.name, local(last), full());
  RandomSpmd program;
  program.one = fmt::format("func.func @main({}) -> {} {{\n{}", arguments[0],
                            full(), one);
  program.many = fmt::format("func.func @main({}) -> ({} {}) {{\n{}",
                             arguments[1], full(), layout(last), many);
  program.type = isFloat ? ElementType::F32 : ElementType::I32;
  program.devices = std::accumulate(mesh.begin(), mesh.end(), int64_t(1),
                                    std::multiplies<>());
  program.arguments = names;
  return program;
}

} // namespace

std::string writtenInto(const std::string &name, const std::string &operation,
                        const std::string &a, const std::string &b,
                        const std::string &type, size_t rank,
                        const std::string &element) {
  std::string dims, kinds;
  for (size_t k = 0; k < rank; ++k) {
    dims += fmt::format("{}d{}", k ? ", " : "", k);
    kinds += fmt::format("{}\"parallel\"", k ? ", " : "");
  }
  const std::string map = fmt::format("affine_map<({0}) -> ({0})>", dims);
  return fmt::format(
      "  %{0} = linalg.generic {{indexing_maps = [{1}, {1}], iterator_types = "
      "[{2}]}} ins(%{3} : {5}) outs(%{4} : {5}) {{\n"
      "  ^bb0(%x: {6}, %y: {6}):\n    %z = {7} %x, %y : {6}\n"
      "    linalg.yield %z : {6}\n  }} -> {5}\n",
      name, map, kinds, a, b, type, element, operation);
}

RandomSpmd randomSpmd(uint64_t seed) { return SpmdWriter(seed).write(); }

HostData spmdInputs(const RandomSpmd &program, uint64_t seed) {
  HostData inputs;
  Random random(seed);
  for (const std::string &name : program.arguments) {
    std::vector<std::byte> bytes(spmdSide * spmdSide * sizeBytes(program.type));
    for (size_t at = 0; at < bytes.size(); at += sizeBytes(program.type))
      EXPECT_TRUE(
          storeNumber(double(random.below(7)) - 3, program.type, &bytes[at]));
    inputs[name] = std::move(bytes);
  }
  return inputs;
}

} // namespace mgpu::conformance
