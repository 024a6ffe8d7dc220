// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/RandomSharded.h"

#include "support/Random.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::conformance {

namespace {

using Shape = std::vector<int64_t>;

struct ShardedTensor {
  std::string name;
  Shape shape;
  double most = 0; ///< no float is larger, so that all are exact
};

class ShardedWriter {
public:
  explicit ShardedWriter(uint64_t seed) : random(seed) {}
  RandomSpmd write();

private:
  std::string type(const Shape &shape) const {
    return fmt::format("tensor<{}x{}>", fmt::join(shape, "x"), element);
  }
  std::string type(const ShardedTensor &tensor) const {
    return type(tensor.shape);
  }
  template <typename... Args>
  void line(fmt::format_string<Args...> text, Args &&...args) {
    std::string made = "  " + fmt::format(text, std::forward<Args>(args)...);
    one += made + "\n";
    many += made + "\n";
  }
  std::string fresh() { return fmt::format("v{}", next++); }
  const ShardedTensor &any() { return values[random.below(values.size())]; }
  /// Keeps a value; the program of many devices may annotate it.
  void keep(ShardedTensor tensor);
  std::string annotation(const Shape &shape);
  std::string sizesOf(const Shape &shape, const std::vector<Shape> &split);
  std::string filled(const Shape &shape, double value);
  std::string number(double value) const {
    return isFloat ? fmt::format("{:.1f}", value)
                   : fmt::format("{}", int64_t(value));
  }

  void addBinary();
  void addInto();
  void addMatmul();
  void addEinsum();
  void addReduce();
  void addBroadcast();
  void addTranspose();
  void addReshape();
  void addSlice();
  void addInsert();
  void addPad();
  void addConcat();
  void addGather();
  void addStencil();
  void addConvolution();
  void addCollective();
  void addDeviceNumber();
  void addIndex();
  void addLoop();
  void addBranch();

  Random random;
  Shape grid;
  std::string element, one, many;
  bool isFloat = false;
  std::vector<ShardedTensor> values;
  int next = 0;
};

/// Axes at random, for dimensions of at least as many elements as parts; often
/// such that parts differ in size.
std::string ShardedWriter::annotation(const Shape &shape) {
  std::vector<Shape> split(shape.size());
  Shape left = shape;
  Shape axes(grid.size());
  for (size_t k = 0; k < axes.size(); ++k)
    axes[k] = int64_t(k);
  if (random.below(2))
    std::ranges::reverse(axes);
  for (int64_t axis : axes) {
    size_t dim = random.below(shape.size() + 1);
    if (dim == shape.size() || left[dim] < grid[axis])
      continue;
    left[dim] /= grid[axis];
    split[dim].push_back(axis);
  }
  return fmt::format("[{}]{}", fmt::join(split, ", "), sizesOf(shape, split));
}

/// Sometimes parts of any sizes, or halos.
std::string ShardedWriter::sizesOf(const Shape &shape,
                                   const std::vector<Shape> &split) {
  uint64_t kind = random.below(4);
  Shape numbers;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (split[dim].empty())
      continue;
    if (kind == 0) {
      numbers.insert(numbers.end(), {1, int64_t(random.below(3))});
      continue;
    }
    int64_t parts = 1, at = 0;
    for (int64_t axis : split[dim])
      parts *= grid[axis];
    for (int64_t left = parts; left > 0; --left) {
      numbers.push_back(at);
      at += 1 + int64_t(random.below(uint64_t(shape[dim] - at - left + 1)));
    }
    numbers.push_back(shape[dim]);
  }
  if (kind > 1 || numbers.empty())
    return "";
  return fmt::format(" {} = [{}]",
                     kind == 0 ? "halo_sizes" : "sharded_dims_offsets",
                     fmt::join(numbers, ", "));
}

void ShardedWriter::keep(ShardedTensor tensor) {
  bool annotates = random.below(3) == 0;
  if (annotates) {
    std::string name = fresh();
    one += fmt::format("  %{} = tensor.cast %{} : {} to {}\n", name,
                       tensor.name, type(tensor), type(tensor));
    many +=
        fmt::format("  %{0}s = shard.sharding @grid split_axes = {1} : "
                    "!shard.sharding\n"
                    "  %{0} = shard.shard %{2} to %{0}s {3}: {4}\n",
                    name, annotation(tensor.shape), tensor.name,
                    random.below(2) ? "annotate_for_users " : "", type(tensor));
    tensor.name = name;
  }
  values.push_back(std::move(tensor));
}

std::string ShardedWriter::filled(const Shape &shape, double value) {
  std::string name = fresh();
  if (random.below(2)) {
    line("%{} = arith.constant dense<{}> : {}", name, number(value),
         type(shape));
    return name;
  }
  line("%{}c = arith.constant {} : {}", name, number(value), element);
  line("%{}e = tensor.empty() : {}", name, type(shape));
  line("%{0} = linalg.fill ins(%{0}c : {1}) outs(%{0}e : {2}) -> {2}", name,
       element, type(shape));
  return name;
}

void ShardedWriter::addBinary() {
  static const char *floats[] = {"addf", "subf", "maximumf", "minimumf"};
  static const char *integers[] = {"addi", "subi", "maxsi", "muli"};
  ShardedTensor a = any();
  std::vector<ShardedTensor> fit;
  std::ranges::copy_if(
      values, std::back_inserter(fit), [&](const ShardedTensor &b) {
        return b.shape == a.shape && a.most + b.most <= mostExact;
      });
  if (fit.empty())
    return;
  const ShardedTensor &b = fit[random.below(fit.size())];
  std::string name = fresh();
  line("%{} = arith.{} %{}, %{} : {}", name,
       (isFloat ? floats : integers)[random.below(4)], a.name, b.name, type(a));
  keep({name, a.shape, a.most + b.most});
}

/// One program reads what the operation writes to, the other does not.
void ShardedWriter::addInto() {
  ShardedTensor a = any(), b = any();
  if (a.shape != b.shape || a.most + b.most > mostExact)
    return;
  const char *operation = isFloat ? "arith.subf" : "arith.subi";
  std::string name = fresh();
  one += fmt::format("  %{} = {} %{}, %{} : {}\n", name, operation, a.name,
                     b.name, type(a));
  many += writtenInto(name, operation, a.name, b.name, type(a), a.shape.size(),
                      element);
  keep({name, a.shape, a.most + b.most});
}

void ShardedWriter::addMatmul() {
  ShardedTensor a = any(), b = any();
  if (a.shape.size() != 2 || b.shape.size() != 2 || a.shape[1] != b.shape[0])
    return;
  double start = random.below(2) ? 0 : 3;
  double most = a.most * b.most * double(a.shape[1]) + start;
  if (isFloat && most > mostExact)
    return;
  Shape shape{a.shape[0], b.shape[1]};
  std::string init = filled(shape, start), name = fresh();
  line("%{} = linalg.matmul ins(%{}, %{} : {}, {}) outs(%{} : {}) -> {}", name,
       a.name, b.name, type(a), type(b), init, type(shape), type(shape));
  keep({name, shape, most});
}

/// c[m, n, b] += a[m, k] * d[k, n] with an index that only c has.
void ShardedWriter::addEinsum() {
  ShardedTensor a = any(), b = any();
  if (a.shape.size() != 2 || b.shape.size() != 2 || a.shape[0] != b.shape[0])
    return;
  double most = a.most * b.most * double(a.shape[0]);
  if (isFloat && most > mostExact)
    return;
  Shape shape{b.shape[1], 2, a.shape[1]};
  std::string init = filled(shape, 0), name = fresh();
  line(
      "%{} = linalg.generic {{indexing_maps = [affine_map<(m, n, b, k) -> (k, "
      "m)>, affine_map<(m, n, b, k) -> (k, n)>, affine_map<(m, n, b, k) -> "
      "(n, b, m)>], iterator_types = [\"parallel\", \"parallel\", "
      "\"parallel\", \"reduction\"]}} ins(%{}, %{} : {}, {}) outs(%{} : {}) {{",
      name, a.name, b.name, type(a), type(b), init, type(shape));
  line("^bb0(%x: {0}, %y: {0}, %z: {0}):", element);
  line("  %p = arith.mul{} %x, %y : {}", isFloat ? "f" : "i", element);
  line("  %q = arith.add{} %z, %p : {}", isFloat ? "f" : "i", element);
  line("  linalg.yield %q : {}\n  }} -> {}", element, type(shape));
  keep({name, shape, most});
}

void ShardedWriter::addReduce() {
  ShardedTensor a = any();
  if (a.shape.size() < 2)
    return;
  size_t dim = random.below(a.shape.size());
  bool isMax = random.below(2) == 0;
  double most =
      isMax ? std::max(a.most, 4096.0) : a.most * double(a.shape[dim]);
  if (isFloat && most > mostExact)
    return;
  Shape shape = a.shape;
  shape.erase(shape.begin() + int64_t(dim));
  double start = !isMax ? 0 : random.below(2) ? -4096 : -1e9;
  if (isFloat && start < -5000)
    start = -4096;
  std::string init = filled(shape, start), name = fresh();
  const char *combine =
      isFloat ? (isMax ? "maximumf" : "addf") : (isMax ? "maxsi" : "addi");
  line("%{} = linalg.reduce {{ arith.{} }} ins(%{} : {}) outs(%{} : {}) "
       "dimensions = [{}]",
       name, combine, a.name, type(a), init, type(shape), dim);
  keep({name, shape, most});
}

void ShardedWriter::addBroadcast() {
  ShardedTensor a = any();
  if (a.shape.size() > 2)
    return;
  size_t dim = random.below(a.shape.size() + 1);
  Shape shape = a.shape;
  shape.insert(shape.begin() + int64_t(dim), a.shape.size() == 1 ? 24 : 4);
  std::string name = fresh();
  line("%{}e = tensor.empty() : {}", name, type(shape));
  line("%{0} = linalg.broadcast ins(%{1} : {2}) outs(%{0}e : {3}) dimensions = "
       "[{4}]",
       name, a.name, type(a), type(shape), dim);
  keep({name, shape, a.most});
}

void ShardedWriter::addTranspose() {
  ShardedTensor a = any();
  Shape order(a.shape.size()), shape;
  for (size_t k = 0; k < order.size(); ++k)
    order[k] = int64_t((k + 1) % order.size());
  for (int64_t dim : order)
    shape.push_back(a.shape[dim]);
  std::string name = fresh();
  line("%{}e = tensor.empty() : {}", name, type(shape));
  line("%{0} = linalg.transpose ins(%{1} : {2}) outs(%{0}e : {3}) permutation "
       "= [{4}]",
       name, a.name, type(a), type(shape), fmt::join(order, ", "));
  keep({name, shape, a.most});
}

/// Cuts a dimension in two, or makes one of the first two.
void ShardedWriter::addReshape() {
  ShardedTensor a = any();
  std::string name = fresh();
  Shape shape = a.shape;
  size_t rank = shape.size();
  if (rank > 1 && random.below(2)) {
    shape.erase(shape.begin());
    shape[0] *= a.shape[0];
    line("%{} = tensor.collapse_shape %{} {} : {} into {}", name, a.name,
         rank == 2 ? "[[0, 1]]" : "[[0, 1], [2]]", type(a), type(shape));
  } else if (rank < 3 && shape[0] % 6 == 0) {
    shape.insert(shape.begin(), 6);
    shape[1] /= 6;
    line("%{} = tensor.expand_shape %{} {} output_shape [{}] : {} into {}",
         name, a.name, rank == 1 ? "[[0, 1]]" : "[[0, 1], [2]]",
         fmt::join(shape, ", "), type(a), type(shape));
  } else {
    return;
  }
  keep({name, shape, a.most});
}

void ShardedWriter::addSlice() {
  ShardedTensor a = any();
  size_t dim = random.below(a.shape.size());
  if (a.shape[dim] < 4)
    return;
  Shape shape = a.shape, offsets(a.shape.size(), 0), ones(a.shape.size(), 1);
  shape[dim] /= 2;
  offsets[dim] = int64_t(random.below(uint64_t(shape[dim])));
  std::string name = fresh();
  line("%{} = tensor.extract_slice %{}[{}] [{}] [{}] : {} to {}", name, a.name,
       fmt::join(offsets, ", "), fmt::join(shape, ", "), fmt::join(ones, ", "),
       type(a), type(shape));
  keep({name, shape, a.most});
}

void ShardedWriter::addInsert() {
  ShardedTensor a = any();
  size_t dim = random.below(a.shape.size());
  Shape shape = a.shape, offsets(a.shape.size(), 0), ones(a.shape.size(), 1);
  shape[dim] += 24;
  offsets[dim] = int64_t(random.below(24));
  std::string init = filled(shape, 1), name = fresh();
  line("%{} = tensor.insert_slice %{} into %{}[{}] [{}] [{}] : {} into {}",
       name, a.name, init, fmt::join(offsets, ", "), fmt::join(a.shape, ", "),
       fmt::join(ones, ", "), type(a), type(shape));
  keep({name, shape, std::max(a.most, 1.0)});
}

void ShardedWriter::addPad() {
  ShardedTensor a = any();
  size_t rank = a.shape.size(), dim = random.below(rank);
  Shape shape = a.shape, low(rank, 0), high(rank, 0);
  low[dim] = int64_t(random.below(13));
  high[dim] = 12 - low[dim];
  shape[dim] += 12;
  std::string name = fresh(), indices;
  for (size_t k = 0; k < rank; ++k)
    indices += fmt::format("{}%i{}: index", k ? ", " : "", k);
  line("%{}c = arith.constant {} : {}", name, number(2), element);
  line("%{} = tensor.pad %{} low[{}] high[{}] {{", name, a.name,
       fmt::join(low, ", "), fmt::join(high, ", "));
  line("^bb0({}):\n    tensor.yield %{}c : {}\n  }} : {} to {}", indices, name,
       element, type(a), type(shape));
  keep({name, shape, std::max(a.most, 2.0)});
}

void ShardedWriter::addConcat() {
  ShardedTensor a = any();
  size_t dim = random.below(a.shape.size());
  Shape shape = a.shape;
  shape[dim] *= 2;
  std::string name = fresh();
  line("%{} = tensor.concat dim({}) %{}, %{} : ({}, {}) -> {}", name, dim,
       a.name, a.name, type(a), type(a), type(shape));
  keep({name, shape, a.most});
}

/// Rows, columns or planes in an order at random, some of them twice.
void ShardedWriter::addGather() {
  ShardedTensor a = any();
  size_t rank = a.shape.size(), dim = random.below(rank);
  Shape picked(12), shape{12};
  for (int64_t &index : picked)
    index = int64_t(random.below(uint64_t(a.shape[dim])));
  for (size_t k = 0; k < rank; ++k)
    if (k != dim)
      shape.push_back(a.shape[k]);
  std::string name = fresh();
  line("%{}i = arith.constant dense<[[{}]]> : tensor<12x1xindex>", name,
       fmt::join(picked, "], ["));
  line("%{0} = tensor.gather %{1}[%{0}i] gather_dims([{2}]) : ({3}, "
       "tensor<12x1xindex>) -> {4}",
       name, a.name, dim, type(a), type(shape));
  keep({name, shape, a.most});
}

/// Each element and the one after the next.
void ShardedWriter::addStencil() {
  ShardedTensor a = any();
  size_t dim = random.below(a.shape.size());
  if (a.shape[dim] < 4 || (isFloat && 2 * a.most > mostExact))
    return;
  Shape shape = a.shape, offsets(a.shape.size(), 0), ones(a.shape.size(), 1);
  shape[dim] -= 2;
  std::string name = fresh();
  for (const char *side : {"l", "h"}) {
    line("%{}{} = tensor.extract_slice %{}[{}] [{}] [{}] : {} to {}", name,
         side, a.name, fmt::join(offsets, ", "), fmt::join(shape, ", "),
         fmt::join(ones, ", "), type(a), type(shape));
    offsets[dim] += 2;
  }
  line("%{0} = arith.add{1} %{0}l, %{0}h : {2}", name, isFloat ? "f" : "i",
       type(shape));
  keep({name, shape, 2 * a.most});
}

/// Sums of windows of 3 or 3 x 3 elements.
void ShardedWriter::addConvolution() {
  ShardedTensor a = any();
  size_t rank = a.shape.size();
  Shape shape = a.shape;
  for (int64_t &size : shape)
    size -= 2;
  double most = a.most * (rank == 1 ? 3 : 9);
  if (rank > 2 || *std::ranges::min_element(shape) < 1 ||
      (isFloat && most > mostExact))
    return;
  Shape window(rank, 3);
  std::string filter = filled(window, 1), init = filled(shape, 0),
              name = fresh();
  line("%{} = linalg.conv_{}d ins(%{}, %{} : {}, {}) outs(%{} : {}) -> {}",
       name, rank, a.name, filter, type(a), type(window), init, type(shape),
       type(shape));
  keep({name, shape, most});
}

/// Devices that have the same gather or compare it.
void ShardedWriter::addCollective() {
  ShardedTensor a = any();
  size_t axis = random.below(grid.size());
  std::string name = fresh();
  if (random.below(2)) {
    one += fmt::format("  %{} = tensor.cast %{} : {} to {}\n", name, a.name,
                       type(a), type(a));
    many += fmt::format("  %{} = shard.all_reduce %{} on @grid grid_axes = "
                        "[{}] reduction = max : {} -> {}\n",
                        name, a.name, axis, type(a), type(a));
    keep({name, a.shape, a.most});
    return;
  }
  Shape shape = a.shape;
  size_t dim = random.below(shape.size());
  shape[dim] *= grid[axis];
  if (shape[dim] > 96)
    return;
  std::vector<std::string> values(size_t(grid[axis]), "%" + a.name);
  std::vector<std::string> types(size_t(grid[axis]), type(a));
  one +=
      fmt::format("  %{} = tensor.concat dim({}) {} : ({}) -> {}\n", name, dim,
                  fmt::join(values, ", "), fmt::join(types, ", "), type(shape));
  many += fmt::format("  %{} = shard.all_gather %{} on @grid grid_axes = [{}] "
                      "gather_axis = {} : {} -> {}\n",
                      name, a.name, axis, dim, type(a), type(shape));
  keep({name, shape, a.most});
}

/// Each device adds its number; the largest sum counts.
void ShardedWriter::addDeviceNumber() {
  ShardedTensor a = any();
  if (isFloat)
    return;
  int64_t last = -1;
  std::string name = fresh();
  Shape axes;
  for (size_t k = 0; k < grid.size(); ++k) {
    last = (last < 0 ? 1 : last) * grid[k];
    axes.push_back(int64_t(k));
  }
  one += fmt::format("  %{0}i = arith.constant {1} : index\n", name, last - 1);
  many += fmt::format("  %{}i = shard.process_linear_index on @grid : index\n",
                      name);
  line("%{0}c = arith.index_cast %{0}i : index to i32", name);
  line("%{0}t = tensor.splat %{0}c : {1}", name, type(a));
  line("%{0}s = arith.addi %{1}, %{0}t : {2}", name, a.name, type(a));
  one +=
      fmt::format("  %{0} = tensor.cast %{0}s : {1} to {1}\n", name, type(a));
  many += fmt::format("  %{0} = shard.all_reduce %{0}s on @grid grid_axes = "
                      "[{1}] reduction = max : {2} -> {2}\n",
                      name, fmt::join(axes, ", "), type(a));
  keep({name, a.shape, a.most + double(last)});
}

/// Each element plus its place in the first dimension.
void ShardedWriter::addIndex() {
  ShardedTensor a = any();
  size_t rank = a.shape.size();
  double most = a.most + double(a.shape[0]);
  if (isFloat && most > mostExact)
    return;
  std::string name = fresh(), dims, kinds;
  for (size_t k = 0; k < rank; ++k) {
    dims += fmt::format("{}d{}", k ? ", " : "", k);
    kinds += fmt::format("{}\"parallel\"", k ? ", " : "");
  }
  std::string map = fmt::format("affine_map<({}) -> ({})>", dims, dims);
  line("%{}e = tensor.empty() : {}", name, type(a));
  line("%{0} = linalg.generic {{indexing_maps = [{1}, {1}], iterator_types = "
       "[{2}]}} ins(%{3} : {4}) outs(%{0}e : {4}) {{",
       name, map, kinds, a.name, type(a));
  line("^bb0(%x: {0}, %z: {0}):\n    %i = linalg.index 0 : index", element);
  line("  %j = arith.index_cast %i : index to i32");
  if (isFloat)
    line("  %n = arith.sitofp %j : i32 to f32\n    %q = arith.addf %x, %n : "
         "f32");
  else
    line("  %q = arith.addi %x, %j : i32");
  line("  linalg.yield %q : {}\n  }} -> {}", element, type(a));
  keep({name, a.shape, most});
}

void ShardedWriter::addLoop() {
  ShardedTensor a = any(), b = any();
  if (a.shape != b.shape || isFloat)
    return;
  std::string name = fresh();
  line("%{0}l = arith.constant 0 : index\n  %{0}h = arith.constant 3 : index\n"
       "  %{0}s = arith.constant 1 : index",
       name);
  line("%{0} = scf.for %i = %{0}l to %{0}h step %{0}s iter_args(%x = %{1}) -> "
       "({2}) {{\n    %y = arith.addi %x, %{3} : {2}",
       name, a.name, type(a), b.name);
  line("  scf.yield %y : {}\n  }}", type(a));
  keep({name, a.shape, a.most});
}

void ShardedWriter::addBranch() {
  ShardedTensor a = any(), b = any();
  if (a.shape != b.shape)
    return;
  std::string name = fresh();
  line("%{}c = arith.constant {}", name, random.below(2) ? "true" : "false");
  line("%{0} = scf.if %{0}c -> ({1}) {{\n    scf.yield %{2} : {1}\n  }} else "
       "{{\n    scf.yield %{3} : {1}\n  }}",
       name, type(a), a.name, b.name);
  keep({name, a.shape, std::max(a.most, b.most)});
}

RandomSpmd ShardedWriter::write() {
  static const std::vector<Shape> grids = {{2},    {3},    {4},    {8},
                                           {2, 2}, {2, 3}, {4, 2}, {2, 2, 2}};
  grid = grids[random.below(grids.size())];
  isFloat = random.below(2) == 0;
  element = isFloat ? "f32" : "i32";
  RandomSpmd program;
  program.type = isFloat ? ElementType::F32 : ElementType::I32;
  program.devices = 1;
  for (int64_t size : grid)
    program.devices *= uint32_t(size);
  std::string signature;
  for (size_t k = 0; k < 2 + random.below(2); ++k) {
    std::string name = fmt::format("a{}", k);
    signature += fmt::format("{}%{}: {}", k ? ", " : "", name,
                             type(Shape{spmdSide, spmdSide}));
    program.arguments.push_back(name);
  }
  for (const std::string &name : program.arguments)
    keep({name, {spmdSide, spmdSide}, 3});
  using Add = void (ShardedWriter::*)();
  static const Add adds[] = {
      &ShardedWriter::addBinary,      &ShardedWriter::addMatmul,
      &ShardedWriter::addEinsum,      &ShardedWriter::addReduce,
      &ShardedWriter::addBroadcast,   &ShardedWriter::addTranspose,
      &ShardedWriter::addReshape,     &ShardedWriter::addSlice,
      &ShardedWriter::addInsert,      &ShardedWriter::addPad,
      &ShardedWriter::addConcat,      &ShardedWriter::addIndex,
      &ShardedWriter::addLoop,        &ShardedWriter::addBranch,
      &ShardedWriter::addStencil,     &ShardedWriter::addConvolution,
      &ShardedWriter::addGather,      &ShardedWriter::addCollective,
      &ShardedWriter::addInto,        &ShardedWriter::addInto,
      &ShardedWriter::addDeviceNumber};
  for (size_t k = 0; k < 10; ++k)
    (this->*adds[random.below(std::size(adds))])();
  ShardedTensor result = values.back();
  std::string annotated = fresh(); // so that there is an annotation
  one += fmt::format("  %{} = tensor.cast %{} : {} to {}\n", annotated,
                     result.name, type(result), type(result));
  many += fmt::format("  %{0}s = shard.sharding @grid split_axes = {1} : "
                      "!shard.sharding\n"
                      "  %{0} = shard.shard %{2} to %{0}s : {3}\n",
                      annotated, annotation(result.shape), result.name,
                      type(result));
  std::string head =
      fmt::format("func.func @main({}) -> {} {{\n", signature, type(result));
  std::string end =
      fmt::format("  return %{} : {}\n}}\n", annotated, type(result));
  program.one = head + one + end;
  program.many =
      fmt::format("shard.grid @grid(shape = {})\n", fmt::join(grid, "x")) +
      head + many + end;
  return program;
}

} // namespace

RandomSpmd randomSharded(uint64_t seed) { return ShardedWriter(seed).write(); }

} // namespace mgpu::conformance
