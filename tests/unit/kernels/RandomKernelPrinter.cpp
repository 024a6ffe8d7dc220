// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomKernelText.h"

namespace mgpu::kernels::random {

/// What gpu.subgroup_reduce calls an operation of arith.
static std::string reductionOf(const std::string &name) {
  return name.starts_with("m") && name != "muli"
             ? name
             : name.substr(0, name.size() - 1);
}

void Printer::printSimple(const Op &op) {
  const std::string r = name(op.results[0]), u = fresh(),
                    type = this->type(op.results[0]);
  auto operand = [&](int k) { return name(op.operands[k]); };
  auto operandType = [&] { return this->type(op.operands[0]); };
  auto line = [&](const std::string &what) { text += what + "\n"; };
  const std::string both =
      op.operands.size() < 2 ? "" : operand(0) + ", " + operand(1);
  switch (op.code) {
  case Op::Constant:
    if (type == "f32")
      return line(u + " = arith.constant " + std::to_string(op.bits) +
                  " : i32\n" + r + " = arith.bitcast " + u + " : i32 to f32");
    return line(r + " = arith.constant " + std::to_string(int64_t(op.bits)) +
                " : " + type);
  case Op::Thread:
    return line(r + " = gpu.thread_id " + "xyz"[op.bits]);
  case Op::BlockX:
    return line(r + " = gpu.block_id x");
  case Op::Arith: // the index dialect's names have no i at their end
    return line(
        r + " = " +
        (op.bits ? "index." + op.name.substr(0, op.name.size() - 1) + " " + both
                 : "arith." + op.name + " " + both + " : " + type));
  case Op::Compare:
    return line(r + " = arith.cmpi " + op.name + ", " + both + " : " +
                operandType());
  case Op::Select:
    return line(r + " = arith.select " + both + ", " + operand(2) + " : " +
                type);
  case Op::ToFloat:
    return line(r + " = arith.sitofp " + operand(0) + " : " + operandType() +
                " to f32");
  case Op::ToBits:
    return line(u + "n = arith.cmpf ord, " + operand(0) + ", " + operand(0) +
                " : f32\n" + u + "b = arith.bitcast " + operand(0) +
                " : f32 to i32\n" + r + " = arith.select " + u + "n, " + u +
                "b, %zero : i32");
  case Op::Cast:
    return line(r + " = arith." + op.name + " " + operand(0) + " : " +
                operandType() + " to " + type);
  case Op::Load:
    return line(u + " = arith.remui " + operand(0) + ", %total : index\n" + r +
                " = memref.load %in[" + u + "] : !all");
  case Op::Exchange:
    return line("gpu.barrier\nmemref.store " + operand(0) +
                ", %tile[%t] : !tile\ngpu.barrier\n" + u + " = arith.remui " +
                operand(1) + ", %threads : index\n" + r +
                " = memref.load %tile[" + u + "] : !tile");
  case Op::Lane:
    return line(r + " = gpu.lane_id");
  case Op::Subgroup:
    return line(r + " = gpu.subgroup_id : index");
  case Op::FromLane:
    return line(r + ", " + u + " = gpu.shuffle idx " + operand(0) +
                ", %zero, %lanes : " + type);
  case Op::Shuffle:
    return line(u + " = arith.constant " + std::to_string(op.bits) +
                " : i32\n" + named(op.results) + " = gpu.shuffle " + op.name +
                " " + both + ", " + u + " : " + type);
  case Op::Rotate:
    return line(named(op.results) + " = gpu.rotate " + operand(0) + ", " +
                std::to_string(op.bits) + ", 32 : " + type);
  case Op::Reduce:
    return line(r + " = gpu.subgroup_reduce " + reductionOf(op.name) + " " +
                operand(0) + " : (" + type + ") -> " + type);
  default:
    return;
  }
}

/// Its operations and, if there are any, yields.
void Printer::printBody(const Body &body) {
  print(body.ops);
  if (!body.yields.empty())
    text +=
        "scf.yield " + named(body.yields) + " : " + typed(body.yields) + "\n";
}

void Printer::printFor(const Op &op) {
  const Body &body = op.bodies[0];
  const std::string step = fresh(), type = this->type(op.operands[0]),
                    types = typed(op.results);
  text += step + " = arith.constant " + std::to_string(op.bits) + " : " + type +
          "\n" + (op.results.empty() ? "" : named(op.results) + " = ") +
          "scf.for " + name(body.arguments[0]) + " = " + name(op.operands[0]) +
          " to " + name(op.operands[1]) + " step " + step;
  if (!op.results.empty()) {
    text += " iter_args(";
    for (size_t k = 0; k < op.results.size(); ++k)
      text += (k ? ", " : "") + name(body.arguments[k + 1]) + " = " +
              name(op.operands[k + 2]);
    text += ") -> (" + types + ")";
  }
  text += (type == "index" ? "" : " : " + type) + " {\n";
  printBody(body);
  text += "}\n";
}

void Printer::printWhile(const Op &op) {
  const Body &before = op.bodies[0], &after = op.bodies[1];
  const std::string u = fresh(), count = name(before.arguments[0]),
                    type = this->type(op.operands[0]);
  text += u + "z = arith.constant 0 : " + type + "\n" + named(op.results) +
          " = scf.while (" + count + " = " + u + "z";
  for (size_t k = 1; k < op.operands.size(); ++k)
    text += ", " + name(before.arguments[k]) + " = " + name(op.operands[k]);
  text += ") : (" + typed(before.arguments) + ") -> (" + typed(op.results) +
          ") {\n";
  print(before.ops);
  std::vector<int> passed = {before.arguments[0]};
  passed.insert(passed.end(), before.yields.begin(), before.yields.end());
  text += u + "c = arith.cmpi slt, " + count + ", " + name(op.operands[0]) +
          " : " + type + "\nscf.condition(" + u + "c) " + named(passed) +
          " : " + typed(passed) + "\n} do {\n^bb0(";
  for (size_t k = 0; k < after.arguments.size(); ++k)
    text += (k ? ", " : "") + name(after.arguments[k]) + ": " +
            this->type(after.arguments[k]);
  text += "):\n";
  print(after.ops);
  text += u + "o = arith.constant 1 : " + type + "\n" + u + "n = arith.addi " +
          name(after.arguments[0]) + ", " + u + "o : " + type + "\nscf.yield " +
          u + "n" + (after.yields.empty() ? "" : ", ") + named(after.yields) +
          " : " + typed(before.arguments) + "\n}\n";
}

void Printer::print(const std::vector<Op> &ops) {
  for (const Op &op : ops)
    switch (op.code) {
    case Op::Count: {
      const std::string u = fresh();
      text += u + " = memref.atomic_rmw addi " + name(op.operands[0]) +
              ", %out[%total] : (i32, !more) -> i32\n";
      break;
    }
    case Op::Array:
      printArray(op);
      break;
    case Op::Put:
    case Op::Take:
    case Op::PutAt:
    case Op::TakeAt:
      printAccess(op);
      break;
    case Op::If:
      text += op.results.empty() ? "" : named(op.results) + " = ";
      text += "scf.if " + name(op.operands[0]) +
              (op.results.empty() ? "" : " -> (" + typed(op.results) + ")") +
              " {\n";
      printBody(op.bodies[0]);
      if (op.bodies.size() > 1) {
        text += "} else {\n";
        printBody(op.bodies[1]);
      }
      text += "}\n";
      break;
    case Op::For:
      printFor(op);
      break;
    case Op::While:
      printWhile(op);
      break;
    default:
      printSimple(op);
    }
}

} // namespace mgpu::kernels::random
