// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomKernel.h"

#include <algorithm>

namespace mgpu::kernels::random {

static const char *const typeNames[] = {"i32", "i64", "f32", "index", "i1"};

static std::string name(int value) { return "%v" + std::to_string(value); }

static void print(const Kernel &kernel, const std::vector<Op> &body,
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
    case Op::Lane:
      line(r + " = gpu.lane_id");
      break;
    case Op::Subgroup:
      line(r + " = gpu.subgroup_id : index");
      break;
    case Op::FromLane:
      line(r + ", " + r + "ok = gpu.shuffle idx " + operand(0) +
           ", %zero, %lanes : i32");
      break;
    case Op::Swap: // a lane that is not there leaves its own
      line(r + "d = arith.constant " + std::to_string(op.bits) + " : i32\n" +
           r + "s, " + r + "ok = gpu.shuffle xor " + operand(0) + ", " + r +
           "d, %lanes : i32\n" + r + " = arith.select " + r + "ok, " + r +
           "s, " + operand(0) + " : i32");
      break;
    case Op::Sum:
      line(r + " = gpu.subgroup_reduce add " + operand(0) + " : (i32) -> i32");
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

std::string textOf(const std::vector<Kernel> &kernels) {
  Dim3 block = kernels[0].block;
  uint64_t threads = block.volume(), blocks = kernels[0].blocks;
  auto number = [](uint64_t value) { return std::to_string(value); };
  std::string text =
      "!all = memref<" + number(threads * blocks) + "xi32>\n!tile = memref<" +
      number(threads) +
      "xi32, #gpu.address_space<workgroup>>\n"
      "func.func @entry(%in: !all, %out: !all, %which: index) {\n" +
      (std::any_of(kernels.begin(), kernels.end(),
                   [](const Kernel &each) { return each.exchanges(); })
           ? "%tile = memref.alloca() : !tile\n"
           : "") +
      "%zero = arith.constant 0 : i32\n%lanes = arith.constant 32 : i32\n";
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

} // namespace mgpu::kernels::random
