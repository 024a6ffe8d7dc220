// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random kernels, printed as MLIR for the emitter and interpreted here, all
// threads of a block in step under a mask, so that a barrier needs nothing.
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <utility>

namespace mgpu::kernels {
namespace {

enum Kind { I32, I64, F32, Index, Bool };
const char *const typeNames[] = {"i32", "i64", "f32", "index", "i1"};

struct Op {
  enum Code {
    Constant, ///< of `bits`
    Thread,   ///< thread id in x, y or z (`bits`)
    BlockX,
    Arith,   ///< `name` of two operands
    Compare, ///< arith.cmpi `name`
    Select,
    ToFloat,  ///< sitofp of an i32
    ToBits,   ///< the bits of an f32, 0 of a NaN
    Cast,     ///< `name` of one operand
    Load,     ///< the input at operand 0, modulo its size
    Exchange, ///< operand 0 of the thread whose number is operand 1 modulo the
              ///< threads of the block, through workgroup memory
    If,       ///< operand 0; both bodies yield
    For,      ///< operand 0 modulo 4 times; carries operand 1
    While,    ///< operand 0 modulo 8 times; carries operand 1
  } code;
  int result = -1;
  std::vector<int> operands = {};
  std::string name = {};
  uint64_t bits = 0;
  std::vector<std::vector<Op>> bodies = {};
  std::vector<int> arguments = {},
                   yields = {}; ///< of bodies; argument 0 counts
};

/// A kernel that writes one i32 per thread of the launch.
struct Kernel {
  Dim3 block;
  uint32_t blocks = 3;
  std::vector<Op> body;
  std::vector<Kind> kinds;      ///< of each value
  std::vector<bool> uniform;    ///< whether threads surely agree
  std::string bodyText() const; ///< leaves the result in name(result())
  int result() const { return body.back().result; }
  std::vector<int32_t> interpret(const std::vector<int32_t> &input) const;
};

// ---- making

class Maker {
public:
  explicit Maker(uint64_t seed) : random(seed) {}
  Kernel make();

private:
  uint32_t below(uint32_t limit) { return uint32_t(random() % limit); }
  int value(Kind kind, bool uniform) {
    kernel.kinds.push_back(kind);
    kernel.uniform.push_back(uniform);
    return int(kernel.kinds.size()) - 1;
  }
  int pick(Kind kind, bool uniformOnly = false);
  bool allUniform(const std::vector<int> &values) const {
    for (int value : values)
      if (!kernel.uniform[value])
        return false;
    return true;
  }
  int add(Op op, Kind kind) {
    op.result = value(kind, allUniform(op.operands) && op.code != Op::Thread &&
                                op.code != Op::Exchange);
    visible.push_back(op.result);
    out->push_back(std::move(op));
    return visible.back();
  }
  void addRandom(int depth, bool shared);
  void addControl(int depth, bool shared);
  int fillBody(std::vector<Op> &body, Kind kind, int depth, bool shared,
               const std::vector<int> &arguments);

  std::mt19937_64 random;
  Kernel kernel;
  std::vector<Op> *out = nullptr;
  std::vector<int> visible;
};

int Maker::pick(Kind kind, bool uniformOnly) {
  std::vector<int> found;
  for (int value : visible)
    if (kernel.kinds[value] == kind && (!uniformOnly || kernel.uniform[value]))
      found.push_back(value);
  if (!found.empty() && below(8) != 0)
    return found[below(uint32_t(found.size()))];
  if (kind == Bool) {
    static const char *const predicates[] = {"slt", "sle", "sgt", "uge",
                                             "ult", "eq",  "ne",  "ugt"};
    Kind of = Kind(std::array{I32, I64, Index}[below(3)]);
    int x = pick(of, uniformOnly), y = pick(of, uniformOnly);
    return add({Op::Compare, 0, {x, y}, predicates[below(8)]}, Bool);
  }
  uint64_t bits = below(40) - 8ull;
  if (kind == F32)
    bits = std::bit_cast<uint32_t>(float(int(below(64)) - 32) / 4);
  return add({Op::Constant, 0, {}, "", bits}, kind);
}

int Maker::fillBody(std::vector<Op> &body, Kind kind, int depth, bool shared,
                    const std::vector<int> &arguments) {
  std::vector<Op> *outer = std::exchange(out, &body);
  size_t before = visible.size();
  visible.insert(visible.end(), arguments.begin(), arguments.end());
  for (uint32_t k = 0, count = 1 + below(5); k < count; ++k)
    addRandom(depth + 1, shared);
  int result = pick(kind);
  visible.resize(before);
  out = outer;
  return result;
}

void Maker::addControl(int depth, bool shared) {
  Kind kind = Kind(below(4));
  Op op{Op::If, 0, {}, ""};
  if (below(2)) {
    int condition = pick(Bool, /*uniformOnly=*/below(3) == 0);
    op.operands = {condition};
    bool inside = shared && kernel.uniform[condition];
    op.bodies.resize(2);
    for (std::vector<Op> &body : op.bodies)
      op.yields.push_back(fillBody(body, kind, depth, inside, {}));
  } else {
    op.code = below(2) ? Op::For : Op::While;
    int trips = pick(Index, /*uniformOnly=*/below(2) == 0), init = pick(kind);
    op.operands = {trips, init};
    // A while's count goes through its arguments: taken to differ.
    bool inside = shared && op.code == Op::For && kernel.uniform[trips];
    op.arguments = {value(Index, inside), value(kind, false)};
    op.bodies.resize(1);
    op.yields = {fillBody(op.bodies[0], kind, depth, inside, op.arguments)};
  }
  int result = add(std::move(op), kind);
  kernel.uniform[result] = false; // never relied upon
}

void Maker::addRandom(int depth, bool shared) {
  static const char *const integer[] = {"addi", "subi", "muli",  "andi",
                                        "ori",  "xori", "maxsi", "minui"};
  static const char *const floating[] = {"addf", "subf", "mulf"};
  Kind kind = Kind(below(4));
  auto binary = [&](Kind kind, const char *name) {
    int x = pick(kind), y = pick(kind);
    add({Op::Arith, 0, {x, y}, name}, kind);
  };
  switch (below(depth < 3 ? 12 : 8)) {
  case 0:
  case 1:
    return binary(kind, kind == F32 ? floating[below(3)] : integer[below(8)]);
  case 2:
    return binary(Bool, below(2) ? "andi" : "xori");
  case 3: {
    int c = pick(Bool), x = pick(kind), y = pick(kind);
    add({Op::Select, 0, {c, x, y}}, kind);
    return;
  }
  case 4:
    add({Op::Load, 0, {pick(Index)}}, I32);
    kernel.uniform.back() = false;
    return;
  case 5:
    if (below(2))
      add({Op::ToFloat, 0, {pick(I32)}}, F32);
    else
      add({Op::ToBits, 0, {pick(F32)}}, I32);
    return;
  case 6: {
    struct {
      Kind from, to;
      const char *name;
    } static const casts[] = {
        {I32, I64, "extsi"},        {I64, I32, "trunci"},
        {I32, Index, "index_cast"}, {Index, I32, "index_cast"},
        {I64, Index, "index_cast"}, {Bool, I32, "extui"}};
    const auto &cast = casts[below(6)];
    add({Op::Cast, 0, {pick(cast.from)}, cast.name}, cast.to);
    return;
  }
  case 7:
    if (shared) {
      int x = pick(I32), from = pick(Index);
      add({Op::Exchange, 0, {x, from}}, I32);
    }
    return;
  default:
    return addControl(depth, shared);
  }
}

Kernel Maker::make() {
  static const Dim3 blocks[] = {{32},    {64},      {17}, {8, 4},
                                {16, 3}, {5, 2, 3}, {1},  {4, 1, 2}};
  kernel.block = blocks[below(8)];
  out = &kernel.body;
  for (uint64_t k = 0; k < 3; ++k)
    add({Op::Thread, 0, {}, "", k}, Index);
  add({Op::BlockX, 0, {}}, Index);
  for (uint32_t k = 0, count = 6 + below(10); k < count; ++k)
    addRandom(0, true);
  // The last operation gathers what the kernel computed.
  int sum = pick(I32);
  for (size_t k = 0, count = visible.size(); k < count; ++k) {
    int v = visible[k];
    Kind kind = kernel.kinds[v];
    if (kind == F32)
      v = add({Op::ToBits, 0, {v}}, I32);
    else if (kind != I32)
      v = add({Op::Cast,
               0,
               {v},
               kind == I64     ? "trunci"
               : kind == Index ? "index_cast"
                               : "extui"},
              I32);
    int three = add({Op::Constant, 0, {}, "", 3}, I32);
    sum = add({Op::Arith, 0, {sum, three}, "muli"}, I32);
    sum = add({Op::Arith, 0, {sum, v}, "xori"}, I32);
  }
  return std::move(kernel);
}

// ---- printing

std::string name(int value) { return "%v" + std::to_string(value); }

void print(const Kernel &kernel, const std::vector<Op> &body,
           std::string &text) {
  for (const Op &op : body) {
    Kind kind = kernel.kinds[op.result];
    std::string r = name(op.result), type = typeNames[kind];
    auto operand = [&](int k) { return name(op.operands[k]); };
    auto typeOf = [&](int k) {
      return std::string(typeNames[kernel.kinds[op.operands[k]]]);
    };
    auto line = [&](const std::string &what) { text += what + "\n"; };
    auto sub = [&](int k) { print(kernel, op.bodies[k], text); };
    auto yield = [&](int k) {
      line("scf.yield " + name(op.yields[k]) + " : " + type);
    };
    switch (op.code) {
    case Op::Constant:
      if (kind == F32)
        line(r + "b = arith.constant " + std::to_string(op.bits) + " : i32\n" +
             r + " = arith.bitcast " + r + "b : i32 to f32");
      else
        line(r + " = arith.constant " + std::to_string(int64_t(op.bits)) +
             " : " + type);
      break;
    case Op::Thread:
      line(r + " = gpu.thread_id " + "xyz"[op.bits]);
      break;
    case Op::BlockX:
      line(r + " = gpu.block_id x");
      break;
    case Op::Arith:
      line(r + " = arith." + op.name + " " + operand(0) + ", " + operand(1) +
           " : " + type);
      break;
    case Op::Compare:
      line(r + " = arith.cmpi " + op.name + ", " + operand(0) + ", " +
           operand(1) + " : " + typeOf(0));
      break;
    case Op::Select:
      line(r + " = arith.select " + operand(0) + ", " + operand(1) + ", " +
           operand(2) + " : " + type);
      break;
    case Op::ToFloat:
      line(r + " = arith.sitofp " + operand(0) + " : i32 to f32");
      break;
    case Op::ToBits:
      line(r + "n = arith.cmpf ord, " + operand(0) + ", " + operand(0) +
           " : f32\n" + r + "b = arith.bitcast " + operand(0) +
           " : f32 to i32\n" + r + " = arith.select " + r + "n, " + r +
           "b, %zero : i32");
      break;
    case Op::Cast:
      line(r + " = arith." + op.name + " " + operand(0) + " : " + typeOf(0) +
           " to " + type);
      break;
    case Op::Load:
      line(r + "i = arith.remui " + operand(0) + ", %total : index\n" + r +
           " = memref.load %in[" + r + "i] : !all");
      break;
    case Op::Exchange:
      line("gpu.barrier\nmemref.store " + operand(0) +
           ", %tile[%t] : !tile\ngpu.barrier\n" + r + "i = arith.remui " +
           operand(1) + ", %threads : index\n" + r + " = memref.load %tile[" +
           r + "i] : !tile");
      break;
    case Op::If:
      line(r + " = scf.if " + operand(0) + " -> " + type + " {");
      sub(0);
      yield(0);
      line("} else {");
      sub(1);
      yield(1);
      line("}");
      break;
    case Op::For:
      line(r + "n = arith.remui " + operand(0) + ", %four : index\n" + r +
           " = scf.for " + name(op.arguments[0]) + " = %none to " + r +
           "n step %one iter_args(" + name(op.arguments[1]) + " = " +
           operand(1) + ") -> (" + type + ") {");
      sub(0);
      yield(0);
      line("}");
      break;
    case Op::While: {
      std::string n = name(op.arguments[0]), a = name(op.arguments[1]);
      line(r + "n = arith.remui " + operand(0) + ", %eight : index\n" + r +
           "k, " + r + " = scf.while (" + n + " = " + r + "n, " + a + " = " +
           operand(1) + ") : (index, " + type + ") -> (index, " + type +
           ") {\n" + r + "c = arith.cmpi ne, " + n +
           ", %none : index\nscf.condition(" + r + "c) " + n + ", " + a +
           " : index, " + type + "\n} do {\n^bb0(" + n + ": index, " + a +
           ": " + type + "):");
      sub(0);
      line(r + "m = arith.subi " + n + ", %one : index\nscf.yield " + r +
           "m, " + name(op.yields[0]) + " : index, " + type + "\n}");
      break;
    }
    }
  }
}

std::string Kernel::bodyText() const {
  std::string text;
  print(*this, body, text);
  return text;
}

/// A function that runs the one of `kernels`, all of one launch shape, that
/// its last argument names, where there are several: compiling many at once
/// saves what each module costs.
std::string textOf(const std::vector<Kernel> &kernels) {
  Dim3 block = kernels[0].block;
  uint64_t threads = block.volume(), blocks = kernels[0].blocks;
  auto number = [](uint64_t value) { return std::to_string(value); };
  std::string text =
      "!all = memref<" + number(threads * blocks) + "xi32>\n!tile = memref<" +
      number(threads) +
      "xi32, #gpu.address_space<workgroup>>\n"
      "func.func @entry(%in: !all, %out: !all, %which: index) {\n"
      "%tile = memref.alloca() : !tile\n"
      "%zero = arith.constant 0 : i32\n";
  std::pair<const char *, uint64_t> constants[] = {
      {"none", 0},     {"one", 1},           {"four", 4},
      {"eight", 8},    {"threads", threads}, {"total", threads * blocks},
      {"nx", block.x}, {"ny", block.y}};
  for (auto [name, value] : constants)
    text += std::string("%") + name + " = arith.constant " + number(value) +
            " : index\n";
  text += "%tx = gpu.thread_id x\n%ty = gpu.thread_id y\n"
          "%tz = gpu.thread_id z\n%b = gpu.block_id x\n"
          "%tzn = arith.muli %tz, %ny : index\n"
          "%ln = arith.addi %tzn, %ty : index\n"
          "%lnn = arith.muli %ln, %nx : index\n"
          "%t = arith.addi %lnn, %tx : index\n"
          "%bn = arith.muli %b, %threads : index\n"
          "%at = arith.addi %bn, %t : index\n";
  auto whole = [](const Kernel &kernel) {
    return kernel.bodyText() + "memref.store " + name(kernel.result()) +
           ", %out[%at] : !all\n";
  };
  if (kernels.size() == 1)
    return text + whole(kernels[0]) + "return\n}\n";
  text += "scf.index_switch %which\n";
  for (size_t k = 0; k < kernels.size(); ++k)
    text += "case " + number(k) + " {\n" + whole(kernels[k]) + "scf.yield\n}\n";
  return text + "default {\n}\nreturn\n}\n";
}

// ---- interpreting

class Interpreter {
public:
  Interpreter(const Kernel &kernel, const std::vector<int32_t> &input,
              uint32_t blockId)
      : kernel(kernel), input(input), blockId(blockId),
        threads(uint32_t(kernel.block.volume())),
        values(kernel.kinds.size(), std::vector<uint64_t>(threads)) {}

  using Mask = std::vector<bool>;
  void run(const std::vector<Op> &body, const Mask &mask);
  int32_t result(uint32_t thread) const {
    return int32_t(values[kernel.body.back().result][thread]);
  }

private:
  uint64_t compute(const Op &op, uint32_t thread) const;
  static uint64_t arith(const std::string &name, Kind kind, uint64_t x,
                        uint64_t y);

  const Kernel &kernel;
  const std::vector<int32_t> &input;
  uint32_t blockId, threads;
  std::vector<std::vector<uint64_t>> values; ///< integers sign-extended
};

/// The bits of a value of `kind` as they are kept.
uint64_t kept(Kind kind, uint64_t bits) {
  return kind == I32    ? uint64_t(int64_t(int32_t(bits)))
         : kind == F32  ? uint32_t(bits)
         : kind == Bool ? bits & 1
                        : bits;
}

uint64_t Interpreter::arith(const std::string &name, Kind kind, uint64_t x,
                            uint64_t y) {
  if (kind == F32) {
    float a = std::bit_cast<float>(uint32_t(x)),
          b = std::bit_cast<float>(uint32_t(y));
    volatile float result = name == "addf"   ? a + b
                            : name == "subf" ? a - b
                                             : a * b;
    return std::bit_cast<uint32_t>(float(result));
  }
  if (name == "addi")
    return x + y;
  if (name == "subi")
    return x - y;
  if (name == "muli")
    return x * y;
  if (name == "andi")
    return x & y;
  if (name == "ori")
    return x | y;
  if (name == "xori")
    return x ^ y;
  if (name == "maxsi")
    return uint64_t(std::max(int64_t(x), int64_t(y)));
  return std::min(x, y); // minui: sign extension keeps the unsigned order
}

bool holds(const std::string &predicate, uint64_t x, uint64_t y) {
  int64_t a = int64_t(x), b = int64_t(y);
  return predicate == "slt"   ? a < b
         : predicate == "sle" ? a <= b
         : predicate == "sgt" ? a > b
         : predicate == "uge" ? x >= y
         : predicate == "ult" ? x < y
         : predicate == "ugt" ? x > y
         : predicate == "eq"  ? x == y
                              : x != y;
}

uint64_t Interpreter::compute(const Op &op, uint32_t thread) const {
  auto operand = [&](int k) { return values[op.operands[k]][thread]; };
  Kind kind = kernel.kinds[op.result];
  switch (op.code) {
  case Op::Constant:
    return op.bits;
  case Op::Thread:
    return op.bits == 0   ? thread % kernel.block.x
           : op.bits == 1 ? thread / kernel.block.x % kernel.block.y
                          : thread / kernel.block.x / kernel.block.y;
  case Op::BlockX:
    return blockId;
  case Op::Arith:
    return arith(op.name, kind, operand(0), operand(1));
  case Op::Compare:
    return holds(op.name, operand(0), operand(1));
  case Op::Select:
    return operand(0) ? operand(1) : operand(2);
  case Op::ToFloat:
    return std::bit_cast<uint32_t>(float(int32_t(operand(0))));
  case Op::ToBits:
    return std::isnan(std::bit_cast<float>(uint32_t(operand(0)))) ? 0
                                                                  : operand(0);
  case Op::Cast:
    return operand(0);
  case Op::Load:
    return uint64_t(int64_t(input[operand(0) % input.size()]));
  case Op::Exchange:
    return values[op.operands[0]][operand(1) % threads];
  default:
    return 0;
  }
}

void Interpreter::run(const std::vector<Op> &body, const Mask &mask) {
  for (const Op &op : body) {
    Kind kind = kernel.kinds[op.result];
    auto assign = [&](int to, int from, const Mask &where) {
      for (uint32_t t = 0; t < threads; ++t)
        if (where[t])
          values[to][t] = values[from][t];
    };
    if (op.code == Op::If) {
      for (int side = 0; side < 2; ++side) {
        Mask inside = mask;
        for (uint32_t t = 0; t < threads; ++t)
          inside[t] =
              mask[t] && (values[op.operands[0]][t] != 0) == (side == 0);
        run(op.bodies[side], inside);
        assign(op.result, op.yields[side], inside);
      }
      continue;
    }
    if (op.code == Op::For || op.code == Op::While) {
      uint64_t modulus = op.code == Op::For ? 4 : 8;
      assign(op.arguments[1], op.operands[1], mask);
      std::vector<uint64_t> trips = values[op.operands[0]];
      for (uint64_t trip = 0; trip < modulus; ++trip) {
        Mask inside = mask;
        for (uint32_t t = 0; t < threads; ++t) {
          uint64_t count = trips[t] % modulus;
          inside[t] = mask[t] && trip < count;
          if (inside[t])
            values[op.arguments[0]][t] =
                op.code == Op::For ? trip : count - trip;
        }
        run(op.bodies[0], inside);
        assign(op.arguments[1], op.yields[0], inside);
      }
      assign(op.result, op.arguments[1], mask);
      continue;
    }
    std::vector<uint64_t> results(threads);
    for (uint32_t t = 0; t < threads; ++t)
      results[t] = kept(kind, compute(op, t));
    for (uint32_t t = 0; t < threads; ++t)
      if (mask[t])
        values[op.result][t] = results[t];
  }
}

std::vector<int32_t>
Kernel::interpret(const std::vector<int32_t> &input) const {
  std::vector<int32_t> output;
  for (uint32_t id = 0; id < blocks; ++id) {
    Interpreter interpreter(*this, input, id);
    interpreter.run(body, Interpreter::Mask(block.volume(), true));
    for (uint32_t t = 0; t < block.volume(); ++t)
      output.push_back(interpreter.result(t));
  }
  return output;
}

std::vector<int32_t> randomInput(const Kernel &kernel, uint64_t seed) {
  std::mt19937 random{uint32_t(seed)};
  std::vector<int32_t> input(kernel.block.volume() * kernel.blocks);
  for (int32_t &value : input)
    value = random() % 3 ? int32_t(random() % 100) - 50 : int32_t(random());
  return input;
}

/// Compiles kernels of one shape together and compares each.
void testBatch(const std::vector<uint64_t> &seeds,
               const std::vector<Kernel> &kernels) {
  std::string text = textOf(kernels);
  auto loaded = LoadedKernel::fromText(text, kernels[0].block);
  ASSERT_TRUE(loaded) << "first seed " << seeds[0] << ": "
                      << loaded.error().message << "\n"
                      << text;
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::vector<int32_t> input = randomInput(kernels[k], seeds[k]);
    std::vector<int32_t> output(input.size());
    (*loaded)->run({kernels[k].blocks},
                   {arg(input), arg(output), arg(int64_t(k))});
    ASSERT_EQ(output, kernels[k].interpret(input))
        << "seed " << seeds[k] << ", case " << k << " of " << kernels.size()
        << "\n"
        << textOf({kernels[k]});
  }
}

/// MGPU_KERNEL_SEEDS asks for other seeds, as FIRST:COUNT.
std::pair<uint64_t, uint64_t> seedRange(uint64_t first, uint64_t count) {
  if (const char *asked = std::getenv("MGPU_KERNEL_SEEDS"))
    std::sscanf(asked, "%lu:%lu", &first, &count);
  return {first, count};
}

TEST(RandomKernel, EmitterAgreesWithTheInterpreterBitForBit) {
  auto [first, count] = seedRange(1, 24);
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure();
       ++seed)
    testBatch({seed}, {Maker(seed).make()});
}

TEST(RandomKernel, BatchesUnderASwitchAgreeToo) {
  auto [first, count] = seedRange(1000, 200);
  constexpr size_t batch = 10;
  struct Waiting {
    std::vector<uint64_t> seeds;
    std::vector<Kernel> kernels;
  };
  std::map<std::array<uint32_t, 3>, Waiting> shapes;
  auto test = [](Waiting &waiting) {
    testBatch(waiting.seeds, waiting.kernels);
    waiting = {};
  };
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure();
       ++seed) {
    Kernel kernel = Maker(seed).make();
    Dim3 block = kernel.block;
    Waiting &waiting = shapes[{block.x, block.y, block.z}];
    waiting.seeds.push_back(seed);
    waiting.kernels.push_back(std::move(kernel));
    if (waiting.seeds.size() == batch)
      test(waiting);
  }
  for (auto &[shape, waiting] : shapes)
    if (!waiting.seeds.empty() && !HasFatalFailure())
      test(waiting);
}

} // namespace
} // namespace mgpu::kernels
