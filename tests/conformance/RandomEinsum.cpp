// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/RandomEinsum.h"

#include "support/Random.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::conformance {

namespace {

using Shape = std::vector<int64_t>;
using Indices = std::vector<size_t>; ///< of a tensor's dimensions

struct Tensor {
  std::string name;
  Indices indices;
  std::vector<int32_t> values;
};

class EinsumWriter {
public:
  explicit EinsumWriter(uint64_t seed) : random(seed) {}
  RandomEinsum write();

private:
  size_t newIndex() {
    sizes.push_back(random.below(2) ? 4 : 6); // few, so that kernels repeat
    return sizes.size() - 1;
  }
  Shape shapeOf(const Tensor &tensor) const;
  std::string type(const Tensor &tensor) const {
    return fmt::format("tensor<{}x{}>", fmt::join(shapeOf(tensor), "x"),
                       element);
  }
  void shuffle(Indices &indices);
  Tensor argument(Indices indices);
  Tensor product(const Tensor &a, const Tensor &b);
  Tensor annotated(Tensor tensor);
  std::string map(const Indices &loops, const Indices &indices) const;
  int32_t &at(Tensor &tensor, const Shape &place) const;
  void evaluate(Tensor a, Tensor b, Tensor &out, const Indices &loops) const;
  std::vector<std::byte> bytesOf(const Tensor &tensor) const;

  Random random;
  Shape grid, sizes;
  std::string element, body, signature;
  int next = 0;
  RandomEinsum made;
};

Shape EinsumWriter::shapeOf(const Tensor &tensor) const {
  Shape shape;
  for (size_t index : tensor.indices)
    shape.push_back(sizes[index]);
  return shape;
}

void EinsumWriter::shuffle(Indices &indices) {
  for (size_t k = indices.size(); k > 1; --k)
    std::swap(indices[k - 1], indices[random.below(k)]);
}

std::vector<std::byte> EinsumWriter::bytesOf(const Tensor &tensor) const {
  std::vector<std::byte> bytes(4 * tensor.values.size());
  for (size_t k = 0; k < tensor.values.size(); ++k) {
    const float number = float(tensor.values[k]);
    const void *from = &tensor.values[k];
    std::memcpy(&bytes[4 * k], element == "f32" ? &number : from, 4);
  }
  return bytes;
}

Tensor EinsumWriter::argument(Indices indices) {
  Tensor tensor{fmt::format("a{}", made.inputs.size()), std::move(indices), {}};
  int64_t count = 1;
  for (int64_t size : shapeOf(tensor))
    count *= size;
  for (int64_t k = 0; k < count; ++k)
    tensor.values.push_back(int32_t(random.below(5)) - 2);
  signature += fmt::format("{}%{}: {}", signature.empty() ? "" : ", ",
                           tensor.name, type(tensor));
  made.inputs[tensor.name] = bytesOf(tensor);
  return annotated(std::move(tensor));
}

/// Cuts dimensions along axes at random, or leaves the tensor as it is.
Tensor EinsumWriter::annotated(Tensor tensor) {
  if (random.below(3) == 0)
    return tensor;
  Shape left = shapeOf(tensor);
  std::vector<Shape> split(left.size());
  for (size_t axis = 0; axis < grid.size(); ++axis) {
    size_t dim = random.below(left.size() + 1);
    if (dim == left.size() || left[dim] < grid[axis])
      continue;
    left[dim] /= grid[axis];
    split[dim].push_back(int64_t(axis));
  }
  std::string name = fmt::format("v{}", next++);
  body += fmt::format("  %{0}s = shard.sharding @grid split_axes = [{1}] : "
                      "!shard.sharding\n"
                      "  %{0} = shard.shard %{2} to %{0}s : {3}\n",
                      name, fmt::join(split, ", "), tensor.name, type(tensor));
  tensor.name = name;
  return tensor;
}

std::string EinsumWriter::map(const Indices &loops,
                              const Indices &indices) const {
  auto text = [](const Indices &each) {
    return fmt::format("i{}", fmt::join(each, ", i"));
  };
  return fmt::format("affine_map<({}) -> ({})>", text(loops), text(indices));
}

/// The element at `place`, which has a number for each index.
int32_t &EinsumWriter::at(Tensor &tensor, const Shape &place) const {
  int64_t offset = 0;
  for (size_t index : tensor.indices)
    offset = offset * sizes[index] + place[index];
  return tensor.values[size_t(offset)];
}

void EinsumWriter::evaluate(Tensor a, Tensor b, Tensor &out,
                            const Indices &loops) const {
  Shape place(sizes.size(), 0);
  for (bool isDone = false; !isDone;) {
    at(out, place) += at(a, place) * at(b, place);
    isDone = true;
    for (size_t loop : loops) {
      if (++place[loop] < sizes[loop]) {
        isDone = false;
        break;
      }
      place[loop] = 0;
    }
  }
}

/// Some indices of both are in the result, in some order; others are summed.
Tensor EinsumWriter::product(const Tensor &a, const Tensor &b) {
  Indices loops = a.indices;
  for (size_t index : b.indices)
    if (std::ranges::find(loops, index) == loops.end())
      loops.push_back(index);
  std::ranges::sort(loops);
  Tensor out{fmt::format("v{}", next++), {}, {}};
  for (size_t loop : loops)
    if (out.indices.size() < 3 && (random.below(3) || out.indices.empty()))
      out.indices.push_back(loop);
  std::vector<std::string> kinds;
  for (size_t loop : loops)
    kinds.push_back(std::ranges::count(out.indices, loop) ? "\"parallel\""
                                                          : "\"reduction\"");
  shuffle(out.indices);
  int64_t count = 1;
  for (int64_t size : shapeOf(out))
    count *= size;
  out.values.assign(size_t(count), 0);
  evaluate(a, b, out, loops);
  const char kind = element[0];
  body += fmt::format(
      "  %{0}z = arith.constant dense<0{8}> : {7}\n"
      "  %{0} = linalg.generic {{indexing_maps = [{1}, {2}, {3}], "
      "iterator_types = [{4}]}} ins(%{5}, %{6} : {9}, {10}) outs(%{0}z : {7}) "
      "{{\n  ^bb0(%x: {11}, %y: {11}, %z: {11}):\n"
      "    %p = arith.mul{12} %x, %y : {11}\n"
      "    %q = arith.add{12} %z, %p : {11}\n"
      "    linalg.yield %q : {11}\n  }} -> {7}\n",
      out.name, map(loops, a.indices), map(loops, b.indices),
      map(loops, out.indices), fmt::join(kinds, ", "), a.name, b.name,
      type(out), kind == 'f' ? ".0" : "", type(a), type(b), element, kind);
  return annotated(std::move(out));
}

RandomEinsum EinsumWriter::write() {
  static const std::vector<Shape> grids = {{2}, {3}, {2, 2}, {2, 3}, {2, 2, 2}};
  grid = grids[random.below(grids.size())];
  element = random.below(8) ? "i32" : "f32"; // mostly one, as kernels repeat
  Tensor value = argument({newIndex(), newIndex()});
  for (size_t step = 0, steps = random.below(3) ? 1 : 2; step < steps; ++step) {
    Indices indices;
    for (size_t index : value.indices)
      if (random.below(2))
        indices.push_back(index);
    if (indices.size() < 2 && (random.below(2) || indices.empty()))
      indices.push_back(newIndex());
    shuffle(indices);
    value = product(value, argument(std::move(indices)));
  }
  // There must be an annotation.
  if (body.find("shard.shard ") == std::string::npos) {
    body += fmt::format("  %end = shard.sharding @grid split_axes = [[]] : "
                        "!shard.sharding\n  %last = shard.shard %{} to %end : "
                        "{}\n",
                        value.name, type(value));
    value.name = "last";
  }
  made.text = fmt::format(
      "shard.grid @grid(shape = {})\nfunc.func @main({}) -> {} {{\n{}"
      "  return %{} : {}\n}}\n",
      fmt::join(grid, "x"), signature, type(value), body, value.name,
      type(value));
  made.expected = bytesOf(value);
  return std::move(made);
}

} // namespace

RandomEinsum randomEinsum(uint64_t seed) { return EinsumWriter(seed).write(); }

} // namespace mgpu::conformance
